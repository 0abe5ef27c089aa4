package ip

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/external"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// +kubebuilder:rbac:groups=ipam.liqo.io,resources=ips,verbs=get;list;watch
// +kubebuilder:rbac:groups=ipam.liqo.io,resources=ips/status,verbs=update;patch
// +kubebuilder:rbac:groups=ipam.liqo.io,resources=ips/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=services,verbs=get;create;update
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;create;update

// Options of the controller.
type Options struct {
	// Namespace that Liqo is installed in.
	Namespace string
	// Ledger gives the addresses.
	Ledger *external.Ledger
}

// Reconciler gives addresses to IPs.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	options Options
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("ip").
		For(&ipamv1alpha1.IP{}).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(&Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: o})
	if err != nil {
		return fmt.Errorf("registering the IP controller: %w", err)
	}
	return nil
}

// Reconcile gives one IP its address, and makes its Service.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	ip := &ipamv1alpha1.IP{}
	err := r.client.Get(ctx, request.NamespacedName, ip)
	if apierrors.IsNotFound(err) {
		if err = r.live.Get(ctx, request.NamespacedName, ip); apierrors.IsNotFound(err) {
			r.options.Ledger.Release(external.Holder{Kind: external.IP, NamespacedName: request.NamespacedName})
			return ctrl.Result{}, nil
		}
	}
	if err != nil || !ip.DeletionTimestamp.IsZero() {
		return reconcile.Result(err)
	}
	updated := ip.DeepCopy()
	if err = r.give(ctx, updated); err == nil {
		err = r.serve(ctx, updated)
	}
	summarize(updated, err)
	if !equality.Semantic.DeepEqual(ip.Status, updated.Status) {
		if ip.Status.IP != "" && updated.Status.IP != ip.Status.IP {
			// One address does not become another one: it is taken away first, and the change brings us back.
			updated.Status.IP, updated.Status.CIDR = "", ""
		}
		if err := r.client.Status().Update(ctx, updated); err != nil {
			return reconcile.Result(fmt.Errorf("writing the status of IP %s: %w", request, err))
		}
	}
	return reconcile.Result(err)
}

// give gives an IP its address.
func (r *Reconciler) give(ctx context.Context, ip *ipamv1alpha1.IP) error {
	if why := whyNotServed(ip, r.options.Namespace); why != "" {
		return reconcile.Terminate(ipamv1alpha1.ReasonNetworkRefUnsupported, fmt.Errorf("networkRef names %s: %s", ip.Spec.NetworkRef.Name, why))
	}
	holder := external.Holder{Kind: external.IP, NamespacedName: client.ObjectKeyFromObject(ip)}
	address, err := r.options.Ledger.Give(ctx, holder, ip.Status.IP)
	if err != nil || string(ip.Status.IP) == address.String() {
		return err
	}
	prefix, _, err := external.Range(ctx, r.client, r.options.Namespace)
	if err != nil {
		return err
	}
	ip.Status.IP, ip.Status.CIDR = networkingv1beta1.IP(address.String()), networkingv1beta1.CIDR(prefix.String())
	return nil
}

// whyNotServed says why no address is given for what an IP refers to; empty if one is.
func whyNotServed(ip *ipamv1alpha1.IP, namespace string) string {
	ref := ip.Spec.NetworkRef
	if ref == nil || ref.Name == ipamv1alpha1.NetworkTypeExternal && (ref.Namespace == "" || ref.Namespace == namespace) {
		return ""
	}
	return fmt.Sprintf("peers are told of %s/%s alone", namespace, ipamv1alpha1.NetworkTypeExternal)
}

// serve makes the Service that an IP asks for, and has it lead to what the IP stands for.
func (r *Reconciler) serve(ctx context.Context, ip *ipamv1alpha1.IP) error {
	if ip.Spec.ServiceTemplate == nil {
		return nil
	}
	controller := metav1.NewControllerRef(ip, ipamv1alpha1.GroupVersion.WithKind("IP"))
	meta := metav1.ObjectMeta{Namespace: ip.Namespace, Name: ip.Name, OwnerReferences: []metav1.OwnerReference{*controller}}
	keeper := keep.Keeper{Client: r.client, Reader: r.live, Reason: offloadingv1beta1.ReasonNameConflict}
	service := func(live client.Object) { fillService(live.(*corev1.Service), ip) }
	if _, err := keeper.Keep(ctx, keep.Wanted{Object: &corev1.Service{ObjectMeta: meta}, Set: service, Ours: keep.ControlledBy(ip)}); err != nil {
		return err
	}
	slice := func(live client.Object) { fillSlice(live.(*discoveryv1.EndpointSlice), ip) }
	_, err := keeper.Keep(ctx, keep.Wanted{Object: &discoveryv1.EndpointSlice{ObjectMeta: meta}, Set: slice, Ours: keep.ControlledBy(ip)})
	return err
}

func summarize(ip *ipamv1alpha1.IP, err error) {
	if err != nil && reconcile.Classify(err) == reconcile.Transient {
		return // it is retried at once: nothing that a user should see
	}
	condition := metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: ip.Generation,
		Reason: ipamv1alpha1.ReasonAllocated, Message: fmt.Sprintf("peers reach %s as %s, as they see that", ip.Spec.IP, ip.Status.IP),
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reconcile.ReasonOf(err), reconcile.MessageOf(err)
	}
	conditions.SetStandard(&ip.Status.Conditions, condition)
}
