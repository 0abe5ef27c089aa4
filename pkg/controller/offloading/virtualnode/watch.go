package virtualnode

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

// ofNode finds the VirtualNode of a Node.
func ofNode(o client.Object) client.ObjectKey {
	labels := o.GetLabels()
	cluster := labels[corev1beta1.RemoteClusterIDLabel]
	if labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType || cluster == "" {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + cluster, Name: labels[offloadingv1beta1.VirtualNodeLabel]}
}

// nodeChanged leaves out the heartbeats.
func nodeChanged() predicate.Predicate {
	return watch.Changed(func(node *corev1.Node) any {
		ready := ptr.Deref(nodeReady(node), corev1.NodeCondition{})
		held := ptr.Deref(conditionOf(node, offloadingv1beta1.RemovalsHeldCondition), corev1.NodeCondition{})
		return []any{ready.Type, ready.Status, ready.Reason, held.Type, held.Message, node.Labels, node.Annotations, node.Spec,
			node.Status.NodeInfo, node.DeletionTimestamp}
	})
}

// answerChanged selects ResourceSlices whose denial or cordon comes or goes.
func answerChanged() predicate.Predicate {
	return watch.Changed(func(s *authv1beta1.ResourceSlice) any {
		return []string{s.WhyDenied(), s.WhyCordoned(), s.WhyOverCommitted()}
	})
}

// cameOrWent selects what comes and goes, for the peer that its label names.
func cameOrWent() predicate.Predicate {
	return watch.Changed(func(o client.Object) any { return o.GetLabels()[corev1beta1.RemoteClusterIDLabel] })
}

// removed selects deletions.
func removed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !e.ObjectNew.GetDeletionTimestamp().IsZero() },
	}
}

// ofPeer selects the VirtualNodes of the provider that an object is about.
func ofPeer(o client.Object) []client.ListOption {
	cluster := o.GetLabels()[corev1beta1.RemoteClusterIDLabel]
	if fc, ok := o.(*corev1beta1.ForeignCluster); ok {
		cluster = string(fc.Spec.ClusterID)
	}
	return []client.ListOption{client.InNamespace(corev1beta1.TenantNamespacePrefix + cluster)}
}
