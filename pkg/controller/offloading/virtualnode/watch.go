package virtualnode

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// ofNode finds the VirtualNode of a Node.
func ofNode(_ context.Context, o client.Object) []ctrl.Request {
	labels := o.GetLabels()
	cluster, name := labels[corev1beta1.RemoteClusterIDLabel], labels[offloadingv1beta1.VirtualNodeLabel]
	if labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType || cluster == "" || name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + cluster, Name: name}}}
}

// nodeChanged leaves out the heartbeats.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, isNode := e.ObjectNew.(*corev1.Node)
		if !ok || !isNode {
			return false
		}
		was, is := nodeReady(before), nodeReady(after)
		held, still := conditionOf(before, offloadingv1beta1.RemovalsHeldCondition), conditionOf(after, offloadingv1beta1.RemovalsHeldCondition)
		sameReady := (was == nil) == (is == nil) && (was == nil || was.Status == is.Status && was.Reason == is.Reason)
		return differs(before, after) || !sameReady ||
			(held == nil) != (still == nil) || held != nil && held.Message != still.Message ||
			before.Status.NodeInfo != after.Status.NodeInfo || !equality.Semantic.DeepEqual(before.DeletionTimestamp, after.DeletionTimestamp)
	}}
}

// answerChanged selects ResourceSlices whose denial or cordon comes or goes.
func answerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*authv1beta1.ResourceSlice)
		after, isSlice := e.ObjectNew.(*authv1beta1.ResourceSlice)
		return ok && isSlice && (before.WhyDenied() != after.WhyDenied() || before.WhyCordoned() != after.WhyCordoned() ||
			before.WhyOverCommitted() != after.WhyOverCommitted())
	}}
}

// cameOrWent selects what comes and goes, for the peer that its label names.
func cameOrWent() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetLabels()[corev1beta1.RemoteClusterIDLabel] != e.ObjectNew.GetLabels()[corev1beta1.RemoteClusterIDLabel]
	}}
}

// removed selects deletions.
func removed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !e.ObjectNew.GetDeletionTimestamp().IsZero() },
	}
}

// ofPeer finds the VirtualNodes of the provider that an object is about.
func (r *reconciler) ofPeer(ctx context.Context, o client.Object) []ctrl.Request {
	cluster := o.GetLabels()[corev1beta1.RemoteClusterIDLabel]
	if fc, ok := o.(*corev1beta1.ForeignCluster); ok {
		cluster = string(fc.Spec.ClusterID)
	}
	return r.those(ctx, client.InNamespace(corev1beta1.TenantNamespacePrefix+cluster))
}

// all finds every VirtualNode.
func (r *reconciler) all(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.those(ctx)
}

func (r *reconciler) those(ctx context.Context, options ...client.ListOption) []ctrl.Request {
	var list offloadingv1beta1.VirtualNodeList
	if err := r.List(ctx, &list, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VirtualNodes failed")
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
