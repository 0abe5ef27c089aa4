package namespacemap

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/pkg/kube/reconcile"
)

// lookAgain asks for another pass, the soonest that anything asked for; 0 asks for none.
func (s *scope) lookAgain(after time.Duration) {
	if after > 0 && (s.again == 0 || after < s.again) {
		s.again = after
	}
}

// next tells when the pass after this one is, which ended with err. What another twin waits for, or cannot get over, does not delay
// what has to be looked at again. An error that passes is tried again at once, and more and more slowly, as everywhere.
func (s *scope) next(err error) (ctrl.Result, error) {
	result, failed := reconcile.Result(err)
	switch {
	case s.again == 0:
		return result, failed
	case failed != nil && reconcile.Classify(err) != reconcile.Terminal:
		return result, failed
	case failed != nil:
		// A controller does not look again after a terminal error. This one is in the map's status, and comes back with the last pass.
		return ctrl.Result{RequeueAfter: s.again}, nil
	case err == nil:
		return ctrl.Result{RequeueAfter: s.again}, nil
	default:
		return ctrl.Result{RequeueAfter: min(result.RequeueAfter, s.again)}, nil
	}
}
