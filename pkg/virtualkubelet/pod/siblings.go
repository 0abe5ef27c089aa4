package pod

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// siblingPause is how long to wait between two looks at what another virtual node left: no event tells when it goes.
const siblingPause = 3 * time.Second

// siblings tells whether a ShadowPod is of another virtual node of this cluster for the same provider.
func (r *Reconciler) siblings(shadow *offloadingv1beta1.ShadowPod) bool {
	node := shadow.Labels[offloadingv1beta1.NodeNameLabel]
	return reflection.IsOurs(shadow, r.options.Home, r.options.Remote) && node != "" && node != r.options.Node
}

// awaitSibling waits for the ShadowPod of an earlier pod of the same name, such as a StatefulSet's, that ran on another virtual node:
// that node removes it. The pod says so; it is no failure.
func (r *Reconciler) awaitSibling(local *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) error {
	what := "is to be removed by it"
	if shadow.DeletionTimestamp != nil {
		what = "is ending"
	}
	message := fmt.Sprintf("waiting for the earlier pod of that name: in cluster %q its ShadowPod, of virtual node %q, %s",
		r.options.Remote, shadow.Labels[offloadingv1beta1.NodeNameLabel], what)
	r.show(local, refusal{reason: offloadingv1beta1.ReasonEarlierPod, message: message})
	return reconcile.Wait(offloadingv1beta1.ReasonEarlierPod, message, siblingPause)
}
