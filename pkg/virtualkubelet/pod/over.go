package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// overLimit gives up the watches of a twin that holds more than is accepted, and opens them again later. Until then nothing is made there,
// and nothing is concluded from what is there. The caches of the twin call it, so the link's group is not empty.
func (r *Reconciler) overLimit(l *link, t *twin) {
	t.cancel()
	t.over.Do(func() {
		r.mu.Lock()
		current := l.twins[t.local] == t
		if current {
			delete(l.twins, t.local)
			l.shut[t.local] = true
		}
		r.mu.Unlock()
		if !current {
			return
		}
		klog.FromContext(l.ctx).Info("What a provider shows is not followed for a while", "provider", r.options.Remote, "namespace", t.local,
			"reason", offloadingv1beta1.ReasonRemoteOverLimit)
		r.enqueueLocals(t.local, false)
		timer := r.options.Clock.NewTimer(reconcile.RefusedRetry)
		l.group.Go(func() {
			defer timer.Stop()
			select {
			case <-l.ctx.Done():
				return
			case <-timer.C():
			}
			r.mu.Lock()
			delete(l.shut, t.local)
			r.mu.Unlock()
			r.wakeLink()
		})
	})
}

// unfollowed is the status of a pod of whose ShadowPod nothing is known: it stays, unless the pod waits because the provider shows more
// in the twin than is followed.
func (r *Reconciler) unfollowed(local *corev1.Pod, v view, started bool) *corev1.PodStatus {
	if !v.over || started {
		return nil
	}
	return ptrTo(reflection.WaitingStatus(local, offloadingv1beta1.ReasonRemoteOverLimit, fmt.Sprintf(
		"cluster %q shows more pods in namespace %q than are followed (%d in a namespace, %d MiB of all together): have those removed there that are not yours",
		r.options.Remote, v.namespace, r.options.MaxRemotePods, r.options.MaxRemoteBytes>>20), r.options.Clock.Now()))
}
