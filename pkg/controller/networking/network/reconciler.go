package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=ipam.liqo.io,resources=networks,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=ipam.liqo.io,resources=networks/status,verbs=update;patch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=internalnodes;internalfabrics,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// ownPending is how long to wait for this cluster's own ranges, which take a few calls.
const ownPending = 2 * time.Second

// Options of the controller.
type Options struct {
	// ClusterID of this cluster.
	ClusterID string
	// Namespace that Liqo is installed in, with the own Networks.
	Namespace string
	// Pods, Services and Reserved are ranges of this cluster that no peer gets.
	Pods, Services, Reserved []netip.Prefix
	// External and Internal are the ranges of these types; empty means that a free one is found.
	External, Internal []netip.Prefix
	// Pools are what peers' ranges are chosen from.
	Pools []netip.Prefix
}

// Reconciler gives ranges to Networks.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	options Options
	own     map[string]ownNetwork
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: o, own: ownNetworks(o)}
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		for name := range r.own {
			queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: name}})
		}
		return nil
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("network").
		For(&ipamv1alpha1.Network{}).
		WatchesRawSource(start).
		Watches(&corev1.Node{}, watch.Each(r.client, &ipamv1alpha1.NetworkList{}, r.around), builder.WithPredicates(moves())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the Network controller: %w", err)
	}
	return nil
}

// Reconcile gives one Network its range, or makes or removes one of the own ones.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	network := &ipamv1alpha1.Network{}
	err := r.client.Get(ctx, request.NamespacedName, network)
	own, wanted := r.own[request.Name]
	wanted = wanted && request.Namespace == r.options.Namespace
	switch {
	case apierrors.IsNotFound(err) && wanted:
		return reconcile.Result(r.create(ctx, own))
	case err != nil:
		return reconcile.Result(client.IgnoreNotFound(err))
	case !network.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	case isOutdated(network, own, wanted, r.options.Namespace):
		if err := r.client.Delete(ctx, network, client.Preconditions{UID: &network.UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result(fmt.Errorf("deleting Network %s, which is configured no more: %w", request, err))
		}
		return ctrl.Result{}, nil
	}
	updated, inside := network.DeepCopy(), netip.Addr{}
	if wanted || isOwn(network, r.options.Namespace) {
		err = keepOwn(updated, own, r.options)
	} else {
		updated, inside, err = r.give(ctx, updated)
	}
	summarize(updated, inside, err)
	if !equality.Semantic.DeepEqual(network.Status, updated.Status) {
		// Against the version that was decided on: whoever else wrote comes first.
		if err := r.client.Status().Update(ctx, updated); err != nil {
			return reconcile.Result(fmt.Errorf("writing the status of Network %s: %w", request, err))
		}
	}
	return reconcile.Result(err)
}

// isOutdated tells whether a Network is an own one that we made and that the configuration does not name, or not so, any more.
func isOutdated(network *ipamv1alpha1.Network, own ownNetwork, wanted bool, namespace string) bool {
	if !isOwn(network, namespace) || network.Labels[corev1beta1.ManagedLabel] != "true" {
		return false
	}
	return !wanted || own.prefix.IsValid() && string(network.Spec.CIDR) != own.prefix.String()
}

// create makes an own Network.
func (r *Reconciler) create(ctx context.Context, own ownNetwork) error {
	if why := whyNotOwn(own, r.options); why != "" {
		return reconcile.Terminate(ipamv1alpha1.ReasonRangeRefused, errors.New(why))
	}
	network := &ipamv1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: own.name, Labels: map[string]string{
			corev1beta1.ManagedLabel: "true", ipamv1alpha1.NetworkTypeLabel: own.kind,
		}},
		Spec: ipamv1alpha1.NetworkSpec{CIDR: networkingv1beta1.CIDR(own.prefix.String()), PreAllocated: own.preAllocated},
	}
	if !own.prefix.IsValid() {
		found, err := r.look(ctx)
		if err != nil {
			return err
		}
		used, _ := found.usedWithout(network, r.options)
		if network.Spec.CIDR, err = findOwn(own, r.options, used); err != nil {
			return reconcile.Refuse(ipamv1alpha1.ReasonPoolExhausted, err)
		}
	}
	return keep.Make(ctx, r.client, network)
}

// keepOwn gives an own Network the range that it is.
func keepOwn(network *ipamv1alpha1.Network, own ownNetwork, o Options) error {
	if own.prefix.IsValid() && string(network.Spec.CIDR) != own.prefix.String() || !isOwn(network, o.Namespace) {
		return reconcile.Terminate(ipamv1alpha1.ReasonRangeRefused, fmt.Errorf(
			"it was not made by this process, and is not the %s that is configured: delete Network %s", own.kind, network.Name))
	}
	network.Status.CIDR = network.Spec.CIDR
	return nil
}

// look reads what may be in the way of a range: Networks live, so that none is given twice.
func (r *Reconciler) look(ctx context.Context) (surroundings, error) {
	networks, fabrics := &ipamv1alpha1.NetworkList{}, &networkingv1beta1.InternalFabricList{}
	nodes, internal, apiServers := &corev1.NodeList{}, &networkingv1beta1.InternalNodeList{}, &discoveryv1.EndpointSliceList{}
	if err := r.live.List(ctx, networks); err != nil {
		return surroundings{}, fmt.Errorf("listing Networks: %w", err)
	}
	for _, list := range []client.ObjectList{nodes, internal, fabrics} {
		if err := r.client.List(ctx, list); err != nil {
			return surroundings{}, fmt.Errorf("listing what is in the way of ranges: %w", err)
		}
	}
	ofAPIServer := client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}
	if err := r.live.List(ctx, apiServers, client.InNamespace(metav1.NamespaceDefault), ofAPIServer); err != nil {
		return surroundings{}, fmt.Errorf("listing where the API server is: %w", err)
	}
	return surroundings{
		networks: networks.Items, nodes: addressesOf(nodes.Items, apiServers.Items), around: networksOf(internal.Items), fabrics: fabrics.Items,
	}, nil
}

// give gives a Network of a peer a range, unless it has one that it keeps. It returns the version that was decided on, and the address of a node that
// has come to be in a range that is kept.
func (r *Reconciler) give(ctx context.Context, network *ipamv1alpha1.Network) (of *ipamv1alpha1.Network, inside netip.Addr, err error) {
	cached, nodes := &ipamv1alpha1.NetworkList{}, &corev1.NodeList{}
	for _, list := range []client.ObjectList{cached, nodes} {
		if err := r.client.List(ctx, list); err != nil {
			return network, inside, fmt.Errorf("listing what a range may be kept from: %w", err)
		}
	}
	here := surroundings{networks: cached.Items, nodes: addressesOf(nodes.Items, nil)}
	if here.keeps(network, r.options.Namespace) {
		inside, _ = here.inside(network)
		return network, inside, nil
	}
	if why := whyNotPeers(string(network.Spec.CIDR)); why != "" {
		return network, inside, reconcile.Terminate(ipamv1alpha1.ReasonRangeRefused, errors.New(why))
	}
	found, err := r.look(ctx)
	if err != nil {
		return network, inside, err
	}
	for i := range found.networks {
		if live := &found.networks[i]; live.UID == network.UID {
			return live, inside, found.decide(live, r.options)
		}
	}
	return network, inside, nil // it is gone
}

// decide gives a Network a range that is free of all the others.
func (s surroundings) decide(network *ipamv1alpha1.Network, o Options) error {
	if s.keeps(network, o.Namespace) {
		return nil
	}
	want, err := network.Spec.CIDR.Prefix()
	if err != nil {
		return reconcile.Terminate(ipamv1alpha1.ReasonRangeRefused, err)
	}
	used, missing := s.usedWithout(network, o)
	if len(missing) > 0 {
		return reconcile.Wait(ipamv1alpha1.ReasonExternalRangePending, "waiting for this cluster's own Networks "+strings.Join(missing, ", "), ownPending)
	}
	network.Status.CIDR = "" // what somebody else has is worse than nothing
	found, err := addressing.Allocate(peerOf(network), want, o.Pools, used)
	if err != nil {
		return reconcile.Refuse(ipamv1alpha1.ReasonPoolExhausted, err)
	}
	network.Status.CIDR = networkingv1beta1.CIDR(found.String())
	return nil
}

// around selects the Networks of peers whose ranges a node is in.
func (r *Reconciler) around(node *corev1.Node) []client.ListOption {
	here := addressesOf([]corev1.Node{*node}, nil)
	return []client.ListOption{watch.If(func(network *ipamv1alpha1.Network) bool {
		prefix, ok := given(network)
		return ok && !isOwn(network, r.options.Namespace) && slices.ContainsFunc(here, prefix.Contains)
	})}
}

// moves passes nodes that come and go, and those whose addresses change.
func moves() predicate.Predicate {
	return watch.Changed(func(node *corev1.Node) any { return node.Status.Addresses })
}

// summarize says how a Network is; inside is the address of a node that is in its range, if there is one.
func summarize(network *ipamv1alpha1.Network, inside netip.Addr, err error) {
	if err != nil && reconcile.Classify(err) == reconcile.Transient {
		return // it is retried at once: nothing that a user should see
	}
	condition := metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: network.Generation,
		Reason: ipamv1alpha1.ReasonAllocated, Message: fmt.Sprintf("%s is seen as %s", network.Spec.CIDR, network.Status.CIDR),
	}
	if inside.IsValid() {
		condition.Reason = ipamv1alpha1.ReasonNodeInRange
		condition.Message += fmt.Sprintf(", where a node of this cluster says that it has the address %s, and which the cluster does not reach then. "+
			"The range stays until this Network is deleted: if the node tells the truth, delete it, and the peer is seen elsewhere", inside)
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reconcile.ReasonOf(err), reconcile.MessageOf(err)
	}
	conditions.SetStandard(&network.Status.Conditions, condition)
}
