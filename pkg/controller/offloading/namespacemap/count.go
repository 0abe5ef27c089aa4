package namespacemap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/reconcile"
)

const (
	// patience is how long Kubernetes' quota controller gets to count for a new ResourceQuota; it needs a fraction of a second.
	patience = 5 * time.Second
	// uncounted is the age after which nothing is asked again: by then the quota controller counted everything of its own accord,
	// which it does every 5 minutes (--resource-quota-sync-period).
	uncounted = 10 * time.Minute
)

// recount sees to it that a ResourceQuota is counted in full. Kubernetes' quota controller looks for new resource types every 30 s
// only, and leaves what it does not know out of the used amounts of a quota that is made before that, until the next full pass. All the
// time the API server refuses such objects ("status unknown for quota"). On a cluster that has just got its CRDs, this would keep
// EndpointSlices away for minutes. A changed limit makes the quota controller count again: so it is raised by one, and restored
// in the next pass.
func (r *reconciler) recount(ctx context.Context, s *scope, live *corev1.ResourceQuota) error {
	age := r.Clock.Since(live.CreationTimestamp.Time)
	raised := live.DeepCopy()
	missing := false
	for name, limit := range live.Spec.Hard {
		if _, counted := live.Status.Used[name]; !counted {
			limit.Add(*resource.NewQuantity(1, limit.Format))
			raised.Spec.Hard[name], missing = limit, true
		}
	}
	switch {
	case !missing || age > uncounted:
		return nil
	case age < patience:
		s.lookAgain(patience - age)
		return nil
	}
	s.lookAgain(time.Second)
	if err := r.Patch(ctx, raised, client.MergeFrom(live)); err != nil {
		return fmt.Errorf("having ResourceQuota %s/%s counted: %w", live.Namespace, live.Name, err)
	}
	return nil
}

// lookAgain asks for another pass, the soonest that anything asked for.
func (s *scope) lookAgain(after time.Duration) {
	if s.again == 0 || after < s.again {
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
