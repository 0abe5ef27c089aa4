package fabric

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/external"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// Options of the controllers.
type Options struct {
	// Ledger gives the addresses.
	Ledger *external.Ledger
	// Pods are those of this cluster, by podaddress.Indexes.
	Pods cache.Cache
	// Cluster are the ranges of this cluster's pods.
	Cluster []netip.Prefix
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Register adds the controllers of InternalNodes and InternalFabrics to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	byName := &handler.EnqueueRequestForObject{}
	r := &nodes{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), ledger: o.Ledger, pods: o.Pods, cluster: o.Cluster, clock: o.Clock,
		written: map[string]time.Time{},
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("internalnode").
		For(&corev1.Node{}, builder.WithPredicates(nodeChanges())).
		Watches(&networkingv1beta1.InternalNode{}, byName).
		WatchesRawSource(source.TypedKind(o.Pods, &corev1.Pod{}, r.podEvents())).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the InternalNode controller: %w", err)
	}
	g := &gateways{client: mgr.GetClient(), live: mgr.GetAPIReader(), ledger: o.Ledger}
	servers := watch.Each(g.client, &networkingv1beta1.GatewayServerList{}, ofPeer)
	clients := watch.Each(g.client, &networkingv1beta1.GatewayClientList{}, ofPeer)
	err = ctrl.NewControllerManagedBy(mgr).Named("internalfabric").
		For(&networkingv1beta1.GatewayServer{}).
		Watches(&networkingv1beta1.GatewayClient{}, byName).
		Watches(&networkingv1beta1.InternalFabric{}, byName).
		Watches(&networkingv1beta1.Configuration{}, servers).
		Watches(&networkingv1beta1.Configuration{}, clients).
		Watches(&networkingv1beta1.Connection{}, servers).
		Watches(&networkingv1beta1.Connection{}, clients).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(g)
	if err != nil {
		return fmt.Errorf("registering the InternalFabric controller: %w", err)
	}
	return nil
}

// nodeChanges passes what an InternalNode is made of. Nodes report every few seconds.
func nodeChanges() predicate.Predicate {
	return watch.Changed(func(node *corev1.Node) any {
		return []any{isPhysical(node.Labels), node.Status.Addresses, podRanges(node)}
	})
}

// ofPeer selects the gateways of the peer that an object in their namespace is about.
func ofPeer(object client.Object) []client.ListOption {
	peer := object.GetLabels()[corev1beta1.RemoteClusterIDLabel]
	if peer == "" {
		return nil
	}
	return []client.ListOption{client.InNamespace(object.GetNamespace()), client.MatchingLabels{corev1beta1.RemoteClusterIDLabel: peer}}
}
