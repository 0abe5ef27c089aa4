package pod

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"liqo.io/liqo/pkg/kube/freshness"
	"liqo.io/liqo/pkg/kube/selection"
	"liqo.io/liqo/pkg/reflection"
)

const nodeNameField = "spec.nodeName"

// newLocalInformer watches the pods that are bound to the node: all that a node may see.
func newLocalInformer(client kubernetes.Interface, node string) cache.SharedIndexInformer {
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	source := selection.ListerWatcher(selection.Where(nodeNameField, node), pods.List, pods.Watch, client)
	// A pod of the past, which may run elsewhere by now, would be started once more.
	informer := freshness.NewInformer(source, &corev1.Pod{}, 0, cache.Indexers{usesIndex: indexUses})
	// The transform cannot fail to be set before the informer runs.
	_ = informer.SetTransform(holdLocal)
	return informer
}

// holdLocal keeps of a pod what somebody here reads.
func holdLocal(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields = nil
	held, err := pack(pod)
	if err != nil {
		return nil, err
	}
	held.uses, held.counted = useKeys(pod), countedOf(pod)
	return held, nil
}

// localOf is the pod that an informer tells of; nil if there is none.
func localOf(object any) *corev1.Pod {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, _ := object.(*packed)
	return pod.pod()
}

func (r *Reconciler) localHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, listed bool) {
			r.budget.Expect(expected)
			if pod := localOf(object); pod != nil {
				r.memory.unasked.came(pod, listed)
				r.demand(pod)
				r.await(pod)
				r.Signs.Came(pod)
				r.enqueue(keyOf(pod), false)
				r.tellUses(pod)
			}
		},
		UpdateFunc: func(before, after any) {
			old, new := localOf(before), localOf(after)
			if old == nil || new == nil {
				return
			}
			if old.UID != new.UID {
				r.forget(old)
				r.memory.unasked.came(new, false)
				r.await(new)
				r.Signs.Went(old.UID)
				r.Signs.Came(new)
				r.tellUses(old)
				r.tellUses(new)
			}
			r.arrive(old, new)
			if old.UID != new.UID || specChanged(old, new) || !old.DeletionTimestamp.Equal(new.DeletionTimestamp) ||
				!maps.Equal(old.Labels, new.Labels) || !maps.Equal(old.Annotations, new.Annotations) ||
				len(old.Spec.EphemeralContainers) != len(new.Spec.EphemeralContainers) || ended(old) != ended(new) || len(old.Finalizers) != len(new.Finalizers) ||
				!slices.Equal(reflection.OpenGates(old), reflection.OpenGates(new)) {
				r.work.Add(keyOf(new))
			}
			r.status.Add(keyOf(new))
		},
		DeleteFunc: func(object any) {
			r.budget.Expect(-expected)
			if pod := localOf(object); pod != nil {
				r.goneFor(object, pod)
				r.forget(pod)
				r.Signs.Went(pod.UID)
				r.work.Add(keyOf(pod))
				r.tellUses(pod)
			}
		},
	}
}

func (r *Reconciler) forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.forget(pod.UID)
}

// local returns the pod of the cache, which must not be changed, or nil.
func (r *Reconciler) local(k key) *corev1.Pod { return r.heldLocal(k).pod() }

// heldLocal returns what the cache holds of a pod, or nil.
func (r *Reconciler) heldLocal(k key) *packed {
	object, ok, err := r.locals.GetStore().GetByKey(k.String())
	if err != nil || !ok {
		return nil
	}
	held, _ := object.(*packed)
	return held
}

// ended tells whether the pod is over. No other phase matters to its ShadowPod.
func ended(pod *corev1.Pod) bool { return reflection.Terminal(pod.Status.Phase) }

// specChanged tells whether the specification of a pod changed. Before Kubernetes 1.34 nothing counts its changes.
func specChanged(old, new *corev1.Pod) bool {
	if old.Generation == 0 && new.Generation == 0 {
		return !apiequality.Semantic.DeepEqual(old.Spec, new.Spec)
	}
	return old.Generation != new.Generation
}
