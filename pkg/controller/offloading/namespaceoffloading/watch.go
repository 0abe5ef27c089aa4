package namespaceoffloading

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

func keyIn(namespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}
}

// selectable selects the events of virtual nodes that can change what a selector selects.
func selectable() predicate.Predicate {
	return watch.Changed(func(o client.Object) any {
		if _, ok := o.(*offloadingv1beta1.VirtualNode); !ok && o.GetLabels()[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
			return nil
		}
		return []any{o.GetDeletionTimestamp().IsZero(), o.GetGeneration(), o.GetLabels()}
	})
}

// labelled selects deletions and changes of labels, by which somebody may have undone what we did, and of the annotation by
// which users keep a namespace at home.
func labelled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if ns, ok := e.ObjectNew.(*corev1.Namespace); ok {
				_, skippedBefore := e.ObjectOld.GetAnnotations()[offloadingv1beta1.SkipReflectionAnnotation]
				_, skippedNow := ns.Annotations[offloadingv1beta1.SkipReflectionAnnotation]
				return skippedBefore != skippedNow ||
					e.ObjectOld.GetLabels()[corev1beta1.TenantNamespaceLabel] != ns.Labels[corev1beta1.TenantNamespaceLabel] ||
					e.ObjectOld.GetLabels()[offloadingv1beta1.SchedulingLabel] != ns.Labels[offloadingv1beta1.SchedulingLabel]
			}
			return e.ObjectOld.GetLabels()[corev1beta1.ManagedLabel] == "true"
		},
	}
}

func ofNamespace(o client.Object) client.ObjectKey { return keyIn(o.GetName()) }

func ofBinding(o client.Object) client.ObjectKey {
	if cluster := o.GetLabels()[corev1beta1.RemoteClusterIDLabel]; cluster == "" || !ours(o.GetName(), cluster) {
		return client.ObjectKey{}
	}
	return keyIn(o.GetNamespace())
}

// ofMap selects the namespaces that a NamespaceMap speaks of. If it is new, every namespace may want to be in it.
func ofMap(nm *offloadingv1beta1.NamespaceMap) []client.ListOption {
	isNew := len(nm.Spec.DesiredMapping) == 0 && len(nm.Status.CurrentMapping) == 0
	// Only objects that exist are woken up: what the provider reports cannot fill the queue with names of its own.
	return []client.ListOption{watch.If(func(nso *offloadingv1beta1.NamespaceOffloading) bool {
		_, wanted := nm.Spec.DesiredMapping[nso.Namespace]
		_, answered := nm.Status.CurrentMapping[nso.Namespace]
		return isNew || wanted || answered
	})}
}

// leaving tells whether a NamespaceOffloading is being deleted: a peer that died lets it go.
func leaving(nso *offloadingv1beta1.NamespaceOffloading) bool { return !nso.DeletionTimestamp.IsZero() }
