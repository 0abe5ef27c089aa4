package slicerequest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	identitycontroller "liqo.io/liqo/pkg/controller/authentication/identity"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/tenantnamespace"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=identities,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the consumer.
	ClusterID string
	// Algorithm of new keys; empty means Ed25519.
	Algorithm identity.Algorithm
	// PodCIDRs of this cluster, announced to providers.
	PodCIDRs []string
	// HideAddresses announces nothing.
	HideAddresses bool
	// Secrets reads and writes Secrets.
	Secrets secrets.Store
	// Watch follows the Secrets of tenant namespaces.
	Watch *secrets.Watch
}

// Reconciler completes slices.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the resource slice controller: %w", err)
	}
	if o.Algorithm == "" {
		o.Algorithm = identity.AlgorithmEd25519
	}
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-resourceslice")}
	all := &authv1beta1.ResourceSliceList{}
	return ctrl.NewControllerManagedBy(mgr).Named("slicerequest").
		For(&authv1beta1.ResourceSlice{}, builder.WithPredicates(watch.Where(IsLocal))).
		Watches(&authv1beta1.ResourceSlice{}, watch.Each(r.client, all, others), builder.WithPredicates(answers())).
		Watches(&authv1beta1.Identity{}, watch.Each(r.client, all, ofIdentity)).
		WatchesRawSource(o.Watch.Source(secrets.Owner("ResourceSlice"))).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// IsLocal tells whether an object was made here to be replicated, and is not a peer's copy.
func IsLocal(object client.Object) bool {
	labels := object.GetLabels()
	return labels[corev1beta1.ReplicationLabel] == "true" && labels[corev1beta1.RemoteIDLabel] != "" &&
		labels[corev1beta1.ReplicatedLabel] != "true"
}

// Reconcile completes one slice.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	slice := &authv1beta1.ResourceSlice{}
	if err := r.client.Get(ctx, request.NamespacedName, slice); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if !slice.DeletionTimestamp.IsZero() || !IsLocal(slice) {
		return ctrl.Result{}, nil
	}
	err := r.complete(ctx, slice)
	if class := reconcile.Classify(err); err != nil && (class == reconcile.Terminal || class == reconcile.Refused) {
		r.events.Eventf(slice, nil, corev1.EventTypeWarning, reconcile.ReasonOf(err), "Complete", "%s", err)
	}
	return reconcile.Result(err)
}

func (r *Reconciler) complete(ctx context.Context, slice *authv1beta1.ResourceSlice) error {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: slice.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", slice.Namespace, err)
	}
	wanted := slice.DeepCopy()
	if err := Default(wanted, namespace, r.options.ClusterID); err != nil {
		return reconcile.Terminate(authv1beta1.ReasonInvalidSlice, err)
	}
	var err error
	if wanted.Spec.PodCIDRs, err = r.announced(ctx, string(*wanted.Spec.ProviderClusterID)); err != nil {
		return err
	}
	name := authv1beta1.ResourceSliceIdentityPrefix + slice.Name
	keys, err := r.options.Secrets.EnsureKeys(ctx, slice.Namespace, name, string(*wanted.Spec.ProviderClusterID), r.options.Algorithm, slice)
	if err != nil {
		return err
	}
	if err := r.request(ctx, wanted, keys); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(slice, wanted) {
		return nil
	}
	if err := r.client.Patch(ctx, wanted, client.MergeFrom(slice)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("completing ResourceSlice %s/%s: %w", slice.Namespace, slice.Name, err)
	}
	return nil
}

// request puts the CSR for the present key and peering into a slice. A new peering gets a new key: the old one may have been why it was made.
func (r *Reconciler) request(ctx context.Context, slice *authv1beta1.ResourceSlice, keys *secrets.Keys) error {
	present, err := identitycontroller.ControlPlane(ctx, r.client, slice.Namespace, slice.Labels[corev1beta1.RemoteIDLabel])
	if err != nil {
		return err
	}
	peering := identity.RequestPeering(slice.Spec.CSR)
	if present != nil && len(present.Spec.AuthParams.SignedCRT) != 0 {
		peering = identity.CertificatePeering(present.Spec.AuthParams.SignedCRT)
	}
	if sameKey(slice.Spec.CSR, keys.Current) {
		if identity.RequestPeering(slice.Spec.CSR) == peering {
			return nil
		}
		if keys.Next, err = identity.NewKeyPair(r.options.Algorithm); err != nil {
			return fmt.Errorf("making the key of ResourceSlice %s/%s: %w", slice.Namespace, slice.Name, err)
		}
		if err := r.options.Secrets.Promote(ctx, keys); err != nil {
			return err
		}
	}
	slice.Spec.CSR, err = identity.NewCSR(keys.Current.Signer(), identity.SliceSubject(r.options.ClusterID, slice.Name).InPeering(peering))
	return err
}

// Default fills in who asks whom, from the tenant namespace. The error says what contradicts it.
func Default(slice *authv1beta1.ResourceSlice, namespace *corev1.Namespace, home string) error {
	if namespace.Labels[corev1beta1.TenantNamespaceLabel] != "true" {
		return fmt.Errorf("the ResourceSlice must be in a tenant namespace, and %s is none", namespace.Name)
	}
	if why := tenantnamespace.WhyNotTenantNamespace(namespace); why != "" {
		return errors.New(why)
	}
	remote := namespace.Labels[corev1beta1.RemoteClusterIDLabel]
	if got := slice.Labels[corev1beta1.RemoteIDLabel]; got != remote {
		return fmt.Errorf("the label %s is %q, but the namespace belongs to cluster %s", corev1beta1.RemoteIDLabel, got, remote)
	}
	if got := slice.Spec.ProviderClusterID; got != nil && string(*got) != remote {
		return fmt.Errorf("providerClusterID is %q, but the namespace belongs to cluster %s", *got, remote)
	}
	if got := slice.Spec.ConsumerClusterID; got != nil && string(*got) != home {
		return fmt.Errorf("consumerClusterID is %q, but this cluster is %s", *got, home)
	}
	slice.Spec.ProviderClusterID = ptr.To(corev1beta1.ClusterID(remote))
	slice.Spec.ConsumerClusterID = ptr.To(corev1beta1.ClusterID(home))
	slice.Labels[corev1beta1.RemoteClusterIDLabel] = remote
	return nil
}

// sameKey tells whether a CSR is for a key.
func sameKey(csr []byte, key identity.KeyPair) bool {
	public, err := identity.RequestKey(csr)
	return err == nil && identity.SamePublicKey(public, key.Public())
}
