package shadowpod

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// C2: a cache of the past shows the ShadowPod before the present one of the name, whose Pod runs. To it that Pod is an earlier one's, and
// would be sent away.
func TestACacheOfThePastEndsNoPodOfASuccessor(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod, *offloadingv1beta1.ShadowPod){
		"a pod that its end is recorded of": func(*corev1.Pod, *offloadingv1beta1.ShadowPod) {},
		"a pod without a finalizer":         func(p *corev1.Pod, _ *offloadingv1beta1.ShadowPod) { p.Finalizers = nil },
		"the earlier one was being deleted": func(p *corev1.Pod, s *offloadingv1beta1.ShadowPod) {
			p.Finalizers = nil
			s.DeletionTimestamp, s.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, job())
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			earlier := w.shadow()
			earlier.UID = "earlier"
			pod := w.pod()
			change(pod, earlier)
			if err := w.Update(context.Background(), pod); err != nil {
				t.Fatal(err)
			}
			before := w.pod().ResourceVersion
			w.reconciler.Client = w.Lagging(t, earlier, w.pod())
			result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
			if err != nil || result.RequeueAfter == 0 {
				t.Errorf("again in %s, error %v", result.RequeueAfter, err)
			}
			if now := w.pod(); now == nil || now.ResourceVersion != before {
				t.Errorf("the pod of the present ShadowPod is now %v", now)
			}
		})
	}
}

// A ShadowPod that the cache does not show yet keeps the finalizer of its Pod: without it the end of the pod may go unrecorded, and it runs
// once more.
func TestAShadowPodThatIsNotSeenKeepsItsPod(t *testing.T) {
	w := newWorld(t, job())
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if !held(w.pod()) {
		t.Fatal("the pod has no finalizer")
	}
	w.reconciler.Client = w.Lagging(t, w.pod())
	result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter == 0 || !held(w.pod()) {
		t.Errorf("again in %s, error %v, finalizers %v", result.RequeueAfter, err, w.pod().Finalizers)
	}
}
