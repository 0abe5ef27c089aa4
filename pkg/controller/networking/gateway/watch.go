package gateway

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// ofPart finds the gateway that something belongs to; of which side it is, its controller sees.
func ofPart(_ context.Context, o client.Object) []ctrl.Request {
	name := o.GetLabels()[networkingv1beta1.GatewayNameLabel]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// ofTemplate finds the gateways that are rendered from a template.
func (r *reconciler) ofTemplate(ctx context.Context, o client.Object) []ctrl.Request {
	return r.which(ctx, func(g gateway) bool {
		from, err := r.templateOf(g.templateRef)
		return err == nil && from == client.ObjectKeyFromObject(o)
	})
}

// all finds all gateways.
func (r *reconciler) all(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.which(ctx, func(gateway) bool { return true })
}

// which finds gateways, of this side.
func (r *reconciler) which(ctx context.Context, wanted func(gateway) bool) []ctrl.Request {
	list := r.side.newList()
	if err := r.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Gateways that are concerned could not be found", "kind", r.side.gateway)
		return nil
	}
	var requests []ctrl.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if g := viewGateway(item.(client.Object)); wanted(g) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
		}
		return nil
	})
	return requests
}

// nodeChanged leaves out what does not change where a gateway is reached.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1.Node)
		after, is := e.ObjectNew.(*corev1.Node)
		return was && is && (isReady(before) != isReady(after) || kept(before) != kept(after) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses))
	}}
}
