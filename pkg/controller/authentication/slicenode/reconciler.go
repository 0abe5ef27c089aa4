package slicenode

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"liqo.io/liqo/pkg/addressing"
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/sliceidentity"
	"liqo.io/liqo/pkg/controller/authentication/slicerequest"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices;identities,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// Options of the controller.
type Options struct {
	// Own are the ranges of this cluster's pods and Services, as far as they are known, which no provider may claim.
	Own []netip.Prefix
	// Labels and PrivateAddresses say what is believed of a provider, as Trust does.
	Labels, PrivateAddresses bool
}

// Reconciler makes VirtualNodes of slices.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-slice-node")}
	bySlice := watch.One(func(object client.Object) client.ObjectKey {
		name := object.GetLabels()[authv1beta1.ResourceSliceNameLabel]
		if _, virtual := object.(*offloadingv1beta1.VirtualNode); virtual && name == "" {
			name = object.GetName() // Somebody made it without a slice.
		}
		return client.ObjectKey{Namespace: object.GetNamespace(), Name: name}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("slicenode").
		For(&authv1beta1.ResourceSlice{}, builder.WithPredicates(watch.Where(slicerequest.IsLocal))).
		Watches(&offloadingv1beta1.VirtualNode{}, bySlice).
		Watches(&authv1beta1.Identity{}, bySlice).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// Reconcile makes, updates or removes the VirtualNodes of one slice.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	slice := &authv1beta1.ResourceSlice{}
	err := r.client.Get(ctx, request.NamespacedName, slice)
	if apierrors.IsNotFound(err) {
		return reconcile.Result(r.pinUnsliced(ctx, request.NamespacedName))
	}
	if err != nil {
		return reconcile.Result(err)
	}
	if !slicerequest.IsLocal(slice) {
		return ctrl.Result{}, nil
	}
	owned, err := r.owned(ctx, slice)
	switch {
	case err != nil:
	case !slice.DeletionTimestamp.IsZero():
		err = r.remove(ctx, owned)
	case sliceidentity.Accepted(slice):
		err = r.ensure(ctx, slice, owned)
	}
	if class := reconcile.Classify(err); err != nil && (class == reconcile.Terminal || class == reconcile.Refused) {
		r.events.Eventf(slice, nil, corev1.EventTypeWarning, reconcile.ReasonOf(err), "VirtualNode", "%s", err)
	}
	return reconcile.Result(err)
}

// owned are the slice's VirtualNodes that are not going: the one of its name, and those that somebody made of it under other names.
func (r *Reconciler) owned(ctx context.Context, slice *authv1beta1.ResourceSlice) ([]offloadingv1beta1.VirtualNode, error) {
	list := &offloadingv1beta1.VirtualNodeList{}
	if err := r.client.List(ctx, list, client.InNamespace(slice.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the VirtualNodes of ResourceSlice %s/%s: %w", slice.Namespace, slice.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(node offloadingv1beta1.VirtualNode) bool {
		return !node.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(&node, slice)
	}), nil
}

// remove has the slice's VirtualNodes drained and removed before the slice itself goes.
func (r *Reconciler) remove(ctx context.Context, owned []offloadingv1beta1.VirtualNode) error {
	for i := range owned {
		if err := keep.Delete(ctx, r.client, &owned[i]); err != nil {
			return err
		}
	}
	return nil
}

// ensure keeps the slice's VirtualNodes in step with it, and makes that of its name if it is to have one.
func (r *Reconciler) ensure(ctx context.Context, slice *authv1beta1.ResourceSlice, owned []offloadingv1beta1.VirtualNode) error {
	if !Wanted(slice) && len(owned) == 0 {
		return nil
	}
	kubeconfig, err := r.kubeconfig(ctx, slice)
	if err != nil || kubeconfig == "" {
		return err // the Identity's own watch brings us back
	}
	trust, err := r.trust(ctx)
	if err != nil {
		return err
	}
	keeper := keep.Keeper{Client: r.client, Reason: authv1beta1.ReasonVirtualNodeConflict}
	fill := func(live client.Object) { Fill(live.(*offloadingv1beta1.VirtualNode), slice, kubeconfig, trust) }
	for i := range owned {
		wanted := keep.Wanted{Object: &offloadingv1beta1.VirtualNode{}, Set: fill, Ours: keep.ControlledBy(slice)}
		if _, err := keep.Known(ctx, keeper, &owned[i], wanted); err != nil {
			return err
		}
	}
	if !Wanted(slice) || slices.ContainsFunc(owned, func(node offloadingv1beta1.VirtualNode) bool { return node.Name == slice.Name }) {
		return nil
	}
	live := &offloadingv1beta1.VirtualNode{}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(slice), live)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, slice, kubeconfig, trust)
	case err != nil:
		return fmt.Errorf("reading VirtualNode %s/%s: %w", slice.Namespace, slice.Name, err)
	case !metav1.IsControlledBy(live, slice):
		return reconcile.NotOurs(authv1beta1.ReasonVirtualNodeConflict, "VirtualNode", client.ObjectKeyFromObject(live))
	default:
		return nil // It is going, which brings us back.
	}
}

// pinUnsliced writes down where the pods of a VirtualNode are that somebody made without a slice: where the slices of the same provider
// say, as that is one cluster.
func (r *Reconciler) pinUnsliced(ctx context.Context, name types.NamespacedName) error {
	live := &offloadingv1beta1.VirtualNode{}
	err := r.client.Get(ctx, name, live)
	if err != nil || !live.DeletionTimestamp.IsZero() || metav1.GetControllerOf(live) != nil ||
		live.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation] != "" {
		return client.IgnoreNotFound(err)
	}
	siblings := &authv1beta1.ResourceSliceList{}
	if err := r.client.List(ctx, siblings, client.InNamespace(name.Namespace)); err != nil {
		return fmt.Errorf("listing ResourceSlices of namespace %s, which say where the pods of VirtualNode %s are: %w", name.Namespace, name.Name, err)
	}
	var announced []string
	for i := range siblings.Items {
		if slice := &siblings.Items[i]; slicerequest.IsLocal(slice) && slice.Labels[corev1beta1.RemoteIDLabel] == string(live.Spec.ClusterID) {
			announced = append(announced, slice.Status.PodCIDRs...)
		}
	}
	trust, err := r.trust(ctx)
	if err != nil {
		return err
	}
	updated := live.DeepCopy()
	pinAddresses(updated, announced, trust)
	if err := r.client.Update(ctx, updated); err != nil {
		return fmt.Errorf("writing down the addresses of VirtualNode %s's pods: %w", name, err)
	}
	return nil
}

// trust gathers what is believed of a provider. Of this cluster's own ranges it knows those of the configuration, those of its nodes, and
// the one that the address of its API server lies in, as Services have one range.
func (r *Reconciler) trust(ctx context.Context) (Trust, error) {
	trust := Trust{Labels: r.options.Labels, PrivateAddresses: r.options.PrivateAddresses, OwnUnknown: len(r.options.Own) == 0}
	trust.Protected.Prefixes = slices.Concat(r.options.Own, serviceRange(r.options.Own))
	nodes := &corev1.NodeList{}
	// The nodes are only looked at.
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return Trust{}, fmt.Errorf("listing Nodes, whose addresses no provider may claim: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType {
			continue // Its addresses are a virtual kubelet's pod's.
		}
		for _, address := range node.Status.Addresses {
			if parsed, err := netip.ParseAddr(address.Address); err == nil {
				trust.Protected.Addresses = append(trust.Protected.Addresses, parsed)
			}
		}
		for _, text := range node.Spec.PodCIDRs {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				trust.Protected.Prefixes, trust.OwnUnknown = append(trust.Protected.Prefixes, prefix.Masked()), false
			}
		}
	}
	return trust, nil
}

// The ranges that Services are taken to have around the address of the API server, where the configuration does not say it.
const (
	serviceBits4 = 16
	serviceBits6 = 112
)

func serviceRange(own []netip.Prefix) []netip.Prefix {
	address, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	if err != nil || addressing.Within(address, own) {
		return nil
	}
	bits := serviceBits6
	if address = address.Unmap(); address.Is4() {
		bits = serviceBits4
	}
	prefix, _ := address.WithZone("").Prefix(bits) // It fits.
	return []netip.Prefix{prefix}
}

// kubeconfig is the name of the Secret of the slice's Identity, empty while it is not ready.
func (r *Reconciler) kubeconfig(ctx context.Context, slice *authv1beta1.ResourceSlice) (string, error) {
	object := &authv1beta1.Identity{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: slice.Namespace, Name: authv1beta1.ResourceSliceIdentityPrefix + slice.Name}, object)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the Identity of ResourceSlice %s/%s: %w", slice.Namespace, slice.Name, err)
	}
	if object.Status.KubeconfigSecretRef == nil || !meta.IsStatusConditionTrue(object.Status.Conditions, corev1beta1.ConditionReady) {
		return "", nil
	}
	return object.Status.KubeconfigSecretRef.Name, nil
}

func (r *Reconciler) create(ctx context.Context, slice *authv1beta1.ResourceSlice, kubeconfig string, trust Trust) error {
	node := &corev1.Node{}
	err := r.client.Get(ctx, types.NamespacedName{Name: slice.Name}, node)
	if err == nil && node.Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
		return reconcile.NotOurs(authv1beta1.ReasonVirtualNodeConflict, "Node", client.ObjectKeyFromObject(node))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Node %s: %w", slice.Name, err)
	}
	object := &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Name},
		Spec:       offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID(slice.Labels[corev1beta1.RemoteIDLabel])},
	}
	Fill(object, slice, kubeconfig, trust)
	if err := controllerutil.SetControllerReference(slice, object, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return fmt.Errorf("setting the owner of VirtualNode %s/%s: %w", object.Namespace, object.Name, err)
	}
	if _, err := keep.Known[*offloadingv1beta1.VirtualNode](ctx, keep.Keeper{Client: r.client}, nil, keep.Wanted{Object: object}); err != nil {
		return err
	}
	r.events.Eventf(slice, object, corev1.EventTypeNormal, authv1beta1.ReasonVirtualNodeCreated, "VirtualNode", "Created VirtualNode %s", object.Name)
	if trust.OwnUnknown {
		r.events.Eventf(slice, object, corev1.EventTypeWarning, authv1beta1.ReasonOwnRangesUnknown, "VirtualNode",
			"The addresses of this cluster's pods are not known, so that a provider may claim them: set ipam.podCIDRs, and remove annotation %s of the VirtualNode",
			offloadingv1beta1.RemotePodCIDRsAnnotation)
	}
	return nil
}

// Fill puts into a VirtualNode what comes from its slice, and leaves the rest alone.
func Fill(object *offloadingv1beta1.VirtualNode, slice *authv1beta1.ResourceSlice, kubeconfig string, trust Trust) {
	status, remote := &slice.Status, slice.Labels[corev1beta1.RemoteIDLabel]
	metav1.SetMetaDataLabel(&object.ObjectMeta, corev1beta1.RemoteClusterIDLabel, remote)
	metav1.SetMetaDataLabel(&object.ObjectMeta, corev1beta1.TypeLabel, corev1beta1.VirtualNodeType)
	metav1.SetMetaDataLabel(&object.ObjectMeta, authv1beta1.ResourceSliceNameLabel, slice.Name)
	pinAddresses(object, status.PodCIDRs, trust)
	pinLabels(object, status.NodeLabels, trust)
	spec := &object.Spec
	spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: kubeconfig}
	spec.ResourceQuota.Hard = Capacity(slice.Spec.Resources, status.Resources)
	spec.StorageClasses, spec.IngressClasses, spec.LoadBalancerClasses = status.StorageClasses, status.IngressClasses, status.LoadBalancerClasses
	spec.ProviderNodes = status.ProviderNodes.DeepCopy()
	chooseNodes(object, status.NodeSelector)
}

// chooseNodes has pods go to the nodes that the slice is for, and no more if it is for all again; what else was patched stays.
func chooseNodes(object *offloadingv1beta1.VirtualNode, selector map[string]string) {
	before := parse(object.Annotations[offloadingv1beta1.ProviderNodeSelectorAnnotation])
	if len(before)+len(selector) == 0 {
		return
	}
	patch := object.Spec.OffloadingPatch
	if patch == nil {
		patch = &offloadingv1beta1.OffloadingPatch{}
	}
	now := maps.Clone(patch.NodeSelector)
	maps.DeleteFunc(now, func(key, value string) bool {
		was, there := before[key]
		return there && was == value
	})
	if now == nil {
		now = map[string]string{}
	}
	maps.Copy(now, selector)
	delete(object.Annotations, offloadingv1beta1.ProviderNodeSelectorAnnotation)
	if len(selector) > 0 {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, offloadingv1beta1.ProviderNodeSelectorAnnotation, labels.Set(selector).String())
	}
	if patch.NodeSelector = now; len(now) == 0 {
		patch.NodeSelector = nil
	}
	object.Spec.OffloadingPatch = patch
	if equality.Semantic.DeepEqual(patch, &offloadingv1beta1.OffloadingPatch{}) {
		object.Spec.OffloadingPatch = nil
	}
}
