package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Place is where a local pod runs, for those who bring it what else it needs there.
type Place struct {
	// Local is the local pod.
	Local *corev1.Pod
	// Lost says that the provider was asked and does not answer.
	Lost bool
	// UID of the pod's ShadowPod; empty while none is known for certain. The fields below are set with it.
	UID types.UID
	// Shadow is the ShadowPod; nil as long as the cache does not show it.
	Shadow *offloadingv1beta1.ShadowPod
	// Namespace is the twin namespace.
	Namespace string
	// Provider is the client of the provider. Epoch grows when what is watched there is to be begun anew.
	Provider kubernetes.Interface
	Epoch    int64
}

// Place tells where a pod runs, from memory; false if there is no such pod. Options.Placed is called when it may have changed.
func (r *Reconciler) Place(k types.NamespacedName) (Place, bool) {
	local := r.local(k)
	if local == nil {
		return Place{}, false
	}
	v := r.look(k, local.UID)
	p := Place{Local: local, Lost: v.lost}
	switch {
	case !v.ready:
		return p, true
	case v.shadow != nil && v.shadow.DeletionTimestamp == nil && standsFor(v.shadow, local):
		p.UID, p.Shadow = v.shadow.UID, v.shadow
	case v.shadow == nil && v.made != nil:
		p.UID = v.made.shadow
	}
	if p.UID != "" {
		p.Namespace, p.Provider, p.Epoch = v.namespace, v.clients.Kube, v.epoch
	}
	return p, true
}
