package fabric

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/external"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/networking/inputs"
)

// +kubebuilder:rbac:groups=networking.liqo.io,resources=gatewayservers;gatewayclients;configurations;connections,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=gatewayservers/finalizers;gatewayclients/finalizers,verbs=update
// +kubebuilder:rbac:groups=networking.liqo.io,resources=internalfabrics,verbs=get;list;watch;create;update;patch

// takenRetry is how soon a gateway is looked at again whose address another one has, or whose node is not known to have it.
const takenRetry = 2 * time.Second

// gateways keeps the InternalFabrics.
type gateways struct {
	client client.Client
	live   client.Reader
	ledger *external.Ledger
}

// Reconcile makes or updates the InternalFabric of one gateway. The API server deletes it with the gateway, which owns it.
func (r *gateways) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	owner, endpoint, err := r.owner(ctx, request)
	if err != nil {
		return reconcile.Result(err)
	}
	if owner == nil {
		return reconcile.Result(r.release(ctx, request))
	}
	if !owner.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil
	}
	found, err := r.gather(ctx, owner, endpoint)
	if err != nil {
		return reconcile.Result(err)
	}
	if err := r.ensure(ctx, owner, &found); err != nil || found.taken == "" {
		return reconcile.Result(err)
	}
	return ctrl.Result{RequeueAfter: takenRetry}, nil
}

// owner finds the gateway of a name, whichever end of the tunnel it is; nil if there is none.
func (r *gateways) owner(ctx context.Context, request ctrl.Request) (client.Object, *networkingv1beta1.InternalGatewayEndpoint, error) {
	server, peerClient := &networkingv1beta1.GatewayServer{}, &networkingv1beta1.GatewayClient{}
	err := r.client.Get(ctx, request.NamespacedName, server)
	if err == nil {
		return server, server.Status.InternalEndpoint, nil
	}
	if apierrors.IsNotFound(err) {
		err = r.client.Get(ctx, request.NamespacedName, peerClient)
	}
	if err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	return peerClient, peerClient.Status.InternalEndpoint, nil
}

// gather reads what a gateway's InternalFabric is made of. The objects of one peering are found by the peer's cluster ID.
func (r *gateways) gather(ctx context.Context, owner client.Object, endpoint *networkingv1beta1.InternalGatewayEndpoint) (gateway, error) {
	var found gateway
	if endpoint != nil && endpoint.IP != nil {
		found.address, found.host = *endpoint.IP, ptr.Deref(endpoint.Node, "")
	}
	peer := owner.GetLabels()[corev1beta1.RemoteClusterIDLabel]
	if peer == "" {
		return found, nil
	}
	ofPeer := []client.ListOption{client.InNamespace(owner.GetNamespace()), client.MatchingLabels{corev1beta1.RemoteClusterIDLabel: peer}}
	configurations, connections := &networkingv1beta1.ConfigurationList{}, &networkingv1beta1.ConnectionList{}
	for _, list := range []client.ObjectList{configurations, connections} {
		if err := r.client.List(ctx, list, ofPeer...); err != nil {
			return found, fmt.Errorf("listing what is known of peer %s: %w", peer, err)
		}
	}
	found.configuration, found.connection = inputs.OfPeer(configurations.Items, peer), inputs.OfPeer(connections.Items, peer)
	// A peer may have two gateways, of which one lives.
	for i := range connections.Items {
		if connections.Items[i].Name == owner.GetName() {
			found.connection = &connections.Items[i]
		}
	}
	return found, nil
}

// ensure makes or updates the InternalFabric of a gateway as soon as nodes can do something with it.
func (r *gateways) ensure(ctx context.Context, owner client.Object, found *gateway) error {
	key := client.ObjectKeyFromObject(owner)
	fabric := &networkingv1beta1.InternalFabric{}
	err := r.client.Get(ctx, key, fabric)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading InternalFabric %s: %w", key, err)
	}
	missing := apierrors.IsNotFound(err)
	// One of another owner goes with that: then there is room for ours.
	if !missing && (!fabric.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(fabric, owner)) {
		return nil
	}
	updated := fabric.DeepCopy()
	updated.Namespace, updated.Name = key.Namespace, key.Name
	if err := r.judge(ctx, updated, found); err != nil {
		return err
	}
	if !found.describe(&updated.Spec) {
		return nil
	}
	holder := external.Holder{Kind: external.InternalFabric, NamespacedName: key}
	address, err := r.ledger.Give(ctx, holder, fabric.Spec.Interface.Gateway.IP)
	if err != nil {
		return err
	}
	updated.Spec.Interface.Gateway.IP = networkingv1beta1.IP(address.String())
	if missing {
		fabric, updated.Labels = nil, map[string]string{
			corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: owner.GetLabels()[corev1beta1.RemoteClusterIDLabel],
		}
		if err := controllerutil.SetControllerReference(owner, updated, r.client.Scheme()); err != nil {
			return fmt.Errorf("making InternalFabric %s: %w", key, err)
		}
	}
	_, err = keep.Known(ctx, keep.Keeper{Client: r.client}, fabric, keep.Wanted{Object: updated, Ours: keep.ControlledBy(owner)})
	return err
}

// judge says why the address that a gateway's pod is said to have cannot be its own, if that is so.
func (r *gateways) judge(ctx context.Context, fabric *networkingv1beta1.InternalFabric, found *gateway) error {
	if found.address == "" {
		return nil
	}
	fabrics, nodes := &networkingv1beta1.InternalFabricList{}, &networkingv1beta1.InternalNodeList{}
	for _, list := range []client.ObjectList{fabrics, nodes} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing who may have the address of gateway %s: %w", client.ObjectKeyFromObject(fabric), err)
		}
	}
	found.taken = found.whyTaken(fabric, fabrics.Items, nodes.Items)
	if found.taken != "" && fabric.Spec.GatewayIP != nowhere {
		ctrl.LoggerFrom(ctx).Info("The address of a gateway's pod is not the pod's: nodes do not take it", "address", found.address, "why", found.taken)
	}
	return nil
}

// release gives the address back once gateway and InternalFabric are gone.
func (r *gateways) release(ctx context.Context, request ctrl.Request) error {
	err := r.live.Get(ctx, request.NamespacedName, &networkingv1beta1.InternalFabric{})
	if apierrors.IsNotFound(err) {
		r.ledger.Release(external.Holder{Kind: external.InternalFabric, NamespacedName: request.NamespacedName})
	}
	return client.IgnoreNotFound(err)
}
