package gateway

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

// ofPart finds the gateway that something belongs to; of which side it is, its controller sees.
func ofPart(o client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[networkingv1beta1.GatewayNameLabel]}
}

// ofTemplate selects the gateways that are rendered from a template.
func (r *reconciler) ofTemplate(template client.Object) []client.ListOption {
	return []client.ListOption{watch.If(func(o client.Object) bool {
		from, err := r.templateOf(viewGateway(o).templateRef)
		return err == nil && from == client.ObjectKeyFromObject(template)
	})}
}

// nodeChanged leaves out what does not change where a gateway is reached.
func nodeChanged() predicate.Predicate {
	return watch.Changed(func(node *corev1.Node) any {
		return []any{isReady(node), kept(node), node.DeletionTimestamp.IsZero(), node.Status.Addresses}
	})
}
