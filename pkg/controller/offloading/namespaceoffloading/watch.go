package namespaceoffloading

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func requestFor(namespace string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
}

// local selects the NamespaceMaps that this cluster makes.
func local() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[corev1beta1.ReplicationLabel] == "true" })
}

// selectable selects the events of virtual nodes that can change what a selector selects.
func selectable() predicate.Predicate {
	virtual := func(o client.Object) bool {
		if vn, ok := o.(*offloadingv1beta1.VirtualNode); ok {
			return vn != nil
		}
		return o.GetLabels()[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return virtual(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return virtual(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if !virtual(e.ObjectNew) && !virtual(e.ObjectOld) {
				return false
			}
			leaving := e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
			return leaving || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				!equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
		},
	}
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

func ofNamespace(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{requestFor(o.GetName())}
}

func ofBinding(_ context.Context, o client.Object) []ctrl.Request {
	if cluster := o.GetLabels()[corev1beta1.RemoteClusterIDLabel]; cluster == "" || !ours(o.GetName(), cluster) {
		return nil
	}
	return []ctrl.Request{requestFor(o.GetNamespace())}
}

// ofMap finds the namespaces that a NamespaceMap speaks of.
func (r *reconciler) ofMap(ctx context.Context, o client.Object) []ctrl.Request {
	nm, ok := o.(*offloadingv1beta1.NamespaceMap)
	if !ok {
		return nil
	}
	if len(nm.Spec.DesiredMapping) == 0 && len(nm.Status.CurrentMapping) == 0 {
		// A new map: every namespace may want to be in it.
		return r.all(ctx, o)
	}
	// Only objects that exist are woken up: what the provider reports cannot fill the queue with names of its own.
	return r.those(ctx, func(nso *offloadingv1beta1.NamespaceOffloading) bool {
		_, wanted := nm.Spec.DesiredMapping[nso.Namespace]
		_, answered := nm.Status.CurrentMapping[nso.Namespace]
		return wanted || answered
	})
}

// all finds every NamespaceOffloading.
func (r *reconciler) all(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.those(ctx, func(*offloadingv1beta1.NamespaceOffloading) bool { return true })
}

// leaving finds the NamespaceOffloadings that are being deleted: a peer that died lets them go.
func (r *reconciler) leaving(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.those(ctx, func(nso *offloadingv1beta1.NamespaceOffloading) bool { return !nso.DeletionTimestamp.IsZero() })
}

func (r *reconciler) those(ctx context.Context, which func(*offloadingv1beta1.NamespaceOffloading) bool) []ctrl.Request {
	var list offloadingv1beta1.NamespaceOffloadingList
	if err := r.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing NamespaceOffloadings failed")
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if which(&list.Items[i]) {
			requests = append(requests, requestFor(list.Items[i].Namespace))
		}
	}
	return requests
}
