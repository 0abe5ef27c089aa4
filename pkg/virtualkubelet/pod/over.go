package pod

import (
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// overLimit gives up the watches of a twin that holds more than is accepted, and opens them again later. Until then nothing is made there,
// and nothing is concluded from what is there. The caches of the twin call it, also late: once the link is closed, nobody waits any more for
// what it would start.
func (r *Reconciler) overLimit(l *link, t *twin) {
	t.cancel()
	t.over.Do(func() {
		r.mu.Lock()
		current := r.link == l && l.twins[t.local] == t
		if current {
			delete(l.twins, t.local)
			l.shut[t.local] = true
			timer := r.options.Clock.NewTimer(reconcile.RefusedRetry)
			l.group.Go(func() { r.reopen(l, t, timer) })
		}
		r.mu.Unlock()
		if !current {
			return
		}
		klog.FromContext(l.ctx).Info("What a provider shows is not followed for a while", "provider", r.options.Remote, "namespace", t.local,
			"reason", offloadingv1beta1.ReasonRemoteOverLimit)
		r.enqueueLocals(t.local, false)
	})
}

// reopen has a twin watched again after a while.
func (r *Reconciler) reopen(l *link, t *twin, timer clock.Timer) {
	defer timer.Stop()
	select {
	case <-l.ctx.Done():
		return
	case <-timer.C():
	}
	r.mu.Lock()
	delete(l.shut, t.local)
	r.mu.Unlock()
	r.reconnect.Raise()
}
