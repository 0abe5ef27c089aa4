package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Reflected returns the local pod that is known to stand behind the ShadowPod of the name, or, if shadow is false, behind the
// remote pod.
func (r *Reconciler) Reflected(namespace, name string, shadow bool) (*corev1.Pod, bool) {
	k := key{Namespace: namespace, Name: name}
	local := r.local(k)
	if local == nil {
		return nil, false
	}
	v := r.look(k, local.UID)
	if shadow {
		return local, v.shadow != nil && standsFor(v.shadow, local)
	}
	return local, v.remote != nil && standsFor(v.remote, local)
}

// Occupied tells whether a pod of a namespace is bound to the node.
func (r *Reconciler) Occupied(namespace string) bool {
	for _, object := range r.locals.GetStore().List() {
		if pod, ok := object.(*packed); ok && pod.namespace == namespace {
			return true
		}
	}
	return false
}

// Bound has f called with the namespace of each pod that is bound to the node, those of the past included. f does not block.
func (r *Reconciler) Bound(f func(namespace string)) error {
	_, err := r.locals.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if pod, ok := object.(*packed); ok {
			f(pod.namespace)
		}
	}})
	if err != nil {
		return fmt.Errorf("watching the pods of node %q: %w", r.options.Node, err)
	}
	return nil
}
