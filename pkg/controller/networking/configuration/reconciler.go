package configuration

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/external"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations,verbs=get;list;watch;patch;update
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations/status,verbs=patch;update
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations/finalizers,verbs=update
// +kubebuilder:rbac:groups=networking.liqo.io,resources=connections,verbs=get;list;watch
// +kubebuilder:rbac:groups=ipam.liqo.io,resources=networks,verbs=get;list;watch;create;delete

// fieldManager is whom the API server notes for the ranges that are filled in.
const fieldManager = client.FieldOwner("liqo-controller-manager")

// pending is how long to wait for ranges, if no event tells that they were given.
const pending = 10 * time.Second

// Options of the controller.
type Options struct {
	// ClusterID of this cluster.
	ClusterID string
	// Namespace that Liqo is installed in.
	Namespace string
	// Pods are the ranges of this cluster's pods.
	Pods []netip.Prefix
}

// Reconciler completes Configurations.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	options Options
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: o}
	all := &networkingv1beta1.ConfigurationList{}
	err := ctrl.NewControllerManagedBy(mgr).Named("configuration").
		For(&networkingv1beta1.Configuration{}).
		Owns(&ipamv1alpha1.Network{}).
		Watches(&networkingv1beta1.Configuration{}, watch.Each(r.client, all, others), builder.WithPredicates(views())).
		Watches(&networkingv1beta1.Connection{}, watch.Each(r.client, all, ofPeer), builder.WithPredicates(announcements())).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the Configuration controller: %w", err)
	}
	return nil
}

// Reconcile completes one Configuration.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	configuration := &networkingv1beta1.Configuration{}
	if err := r.client.Get(ctx, request.NamespacedName, configuration); err != nil || !configuration.DeletionTimestamp.IsZero() {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	updated := configuration.DeepCopy()
	done, notes := plan{}, []string(nil)
	changed, err := r.introduce(ctx, configuration)
	if err == nil && !changed {
		changed, notes, err = r.pass(ctx, configuration)
	}
	if changed {
		return ctrl.Result{}, nil // the change brings us back
	}
	if err == nil {
		done, err = r.see(ctx, updated)
	}
	summarize(updated, err, notes)
	if !equality.Semantic.DeepEqual(configuration.Status, updated.Status) {
		patch := client.MergeFromWithOptions(configuration, client.MergeFromWithOptimisticLock{})
		if err := r.client.Status().Patch(ctx, updated, patch); err != nil {
			return reconcile.Result(fmt.Errorf("writing the status of Configuration %s: %w", request, err))
		}
	}
	over := done.superfluous
	if err != nil {
		// A peer that announces one thing after the other, of which each lacks room for a range, would fill the pools with the rest.
		over = done.unseen
	}
	for _, network := range over {
		if err := r.client.Delete(ctx, network, client.Preconditions{UID: &network.UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result(fmt.Errorf("deleting Network %s/%s, whose range is announced no more: %w", network.Namespace, network.Name, err))
		}
	}
	return reconcile.Result(err)
}

// introduce fills in this cluster's ranges, if they are not there, and keeps those of pods in step with what the cluster has.
func (r *Reconciler) introduce(ctx context.Context, configuration *networkingv1beta1.Configuration) (changed bool, err error) {
	var pods []networkingv1beta1.CIDR
	for _, prefix := range r.options.Pods {
		pods = append(pods, networkingv1beta1.CIDR(prefix.String()))
	}
	updated := configuration.DeepCopy()
	if configuration.Spec.Local == nil {
		own, _, err := external.Range(ctx, r.client, r.options.Namespace)
		if err != nil {
			return false, err
		}
		updated.Spec.Local = &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
			Pod: pods, External: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(own.String())},
		}}
	} else if len(pods) > 0 && !slices.Equal(configuration.Spec.Local.CIDR.Pod, pods) {
		live := &networkingv1beta1.Configuration{} // the cache does not hold who wrote what
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(configuration), live); err != nil {
			return false, fmt.Errorf("reading Configuration %s/%s: %w", configuration.Namespace, configuration.Name, err)
		}
		if isFilledIn(live) {
			updated.Spec.Local.CIDR.Pod = pods
		}
	}
	if equality.Semantic.DeepEqual(configuration.Spec, updated.Spec) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(configuration, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, updated, patch, fieldManager); err != nil {
		return false, fmt.Errorf("telling Configuration %s/%s the ranges of this cluster: %w", configuration.Namespace, configuration.Name, err)
	}
	return true, nil
}

// see finds under which ranges the peer is seen, and has those made that are missing.
func (r *Reconciler) see(ctx context.Context, configuration *networkingv1beta1.Configuration) (plan, error) {
	peer := configuration.Labels[corev1beta1.RemoteClusterIDLabel]
	if err := identity.ValidateClusterID(peer); err != nil {
		return plan{}, reconcile.Terminate(networkingv1beta1.ReasonPeerUnknown, fmt.Errorf("label %s: %w", corev1beta1.RemoteClusterIDLabel, err))
	}
	if peer == r.options.ClusterID {
		return plan{}, reconcile.Terminate(networkingv1beta1.ReasonPeerUnknown, fmt.Errorf("label %s names this cluster itself", corev1beta1.RemoteClusterIDLabel))
	}
	if err := Judge(configuration.Spec.Remote.CIDR); err != nil {
		return plan{}, reconcile.Terminate(networkingv1beta1.ReasonRangeRefused, err)
	}
	networks := &ipamv1alpha1.NetworkList{}
	if err := r.client.List(ctx, networks, client.InNamespace(configuration.Namespace)); err != nil {
		return plan{}, fmt.Errorf("listing Networks in Namespace %s: %w", configuration.Namespace, err)
	}
	found := decide(configuration, peer, networks.Items)
	for _, one := range found.make {
		if err := r.make(ctx, configuration, peer, one); err != nil {
			return found, err
		}
	}
	switch {
	case found.remote != nil:
		configuration.Status.Remote, configuration.Status.Announced = found.remote, configuration.Spec.Remote.DeepCopy()
		return found, nil
	case found.full != "":
		return found, reconcile.Refuse(networkingv1beta1.ReasonPoolExhausted, fmt.Errorf("%s%s", keptWords(configuration), found.full))
	default:
		reason, message := networkingv1beta1.ReasonRangesPending, "waiting for how this cluster sees "+strings.Join(found.waiting, ", ")
		if configuration.Status.Remote != nil {
			reason = networkingv1beta1.ReasonRangesChanged
		}
		return found, reconcile.Wait(reason, keptWords(configuration)+message, pending)
	}
}

// keptWords begin what is said while there is not yet what is wanted.
func keptWords(configuration *networkingv1beta1.Configuration) string {
	if configuration.Status.Remote == nil {
		return ""
	}
	return "the ranges changed, and the peer is seen under the old ones until there are new ones: "
}

// make makes the Network of one range.
func (r *Reconciler) make(ctx context.Context, configuration *networkingv1beta1.Configuration, peer string, one wish) error {
	controller := metav1.NewControllerRef(configuration, networkingv1beta1.GroupVersion.WithKind("Configuration"))
	// One that is there already is one that the cache does not show yet.
	return keep.Make(ctx, r.client, &ipamv1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: configuration.Namespace, Name: one.name, OwnerReferences: []metav1.OwnerReference{*controller},
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: peer}},
		Spec: ipamv1alpha1.NetworkSpec{CIDR: one.cidr},
	})
}

func summarize(configuration *networkingv1beta1.Configuration, err error, notes []string) {
	if err != nil && reconcile.Classify(err) == reconcile.Transient {
		return // it is retried at once: nothing that a user should see
	}
	condition := metav1.Condition{
		Status: metav1.ConditionTrue, ObservedGeneration: configuration.Generation,
		Reason:  networkingv1beta1.ReasonConfigured,
		Message: strings.Join(append([]string{"each range of the peer has one under which this cluster sees it"}, notes...), "; "),
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reconcile.ReasonOf(err), reconcile.MessageOf(err)
	}
	for _, kind := range []string{networkingv1beta1.NetworkCIDRsConfigured, corev1beta1.ConditionReady} {
		condition.Type = kind
		conditions.SetStandard(&configuration.Status.Conditions, condition)
	}
}
