package pod

import (
	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/reflection"
)

// usesIndex finds the pods that use an object.
const usesIndex = "uses"

func useKey(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

func indexUses(object any) ([]string, error) {
	pod, ok := object.(*packed)
	if !ok {
		return nil, nil
	}
	return pod.uses, nil
}

func useKeys(pod *corev1.Pod) []string {
	references := reflection.References(&pod.Spec)
	keys := make([]string, len(references))
	for i, reference := range references {
		keys[i] = useKey(pod.Namespace, reference.Kind, reference.Name)
	}
	return keys
}

// Uses tells whether a pod of the node uses an object: a ConfigMap or a Secret of the pod's namespace. Until the node's pods
// were read nothing is known.
func (r *Reconciler) Uses(namespace, kind, name string) (used, known bool) {
	if !r.locals.HasSynced() {
		return false, false
	}
	keys, err := r.locals.GetIndexer().IndexKeys(usesIndex, useKey(namespace, kind, name))
	return len(keys) > 0, err == nil
}

// tellUses tells whoever wants to know that the use of the pod's objects may have changed.
func (r *Reconciler) tellUses(pod *corev1.Pod) {
	if r.options.UsesChanged == nil {
		return
	}
	for _, reference := range reflection.References(&pod.Spec) {
		r.options.UsesChanged(pod.Namespace, reference.Kind, reference.Name)
	}
}
