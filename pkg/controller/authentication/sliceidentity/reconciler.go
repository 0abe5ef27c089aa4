package sliceidentity

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	identitycontroller "liqo.io/liqo/pkg/controller/authentication/identity"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/slicerequest"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=identities,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices/status,verbs=update;patch

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the consumer.
	ClusterID string
	// Secrets reads Secrets.
	Secrets secrets.Store
	// Clock tells whether certificates are valid.
	Clock clock.PassiveClock
}

// Reconciler makes Identities of slices.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the slice identity controller: %w", err)
	}
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-slice-identity")}
	return ctrl.NewControllerManagedBy(mgr).Named("sliceidentity").
		For(&authv1beta1.ResourceSlice{}, builder.WithPredicates(watch.Where(slicerequest.IsLocal))).
		Watches(&authv1beta1.Identity{}, handler.EnqueueRequestsFromMapFunc(r.slicesOf)).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// slicesOf maps a slice's Identity to the slice, and the control plane Identity to all slices of the namespace.
func (r *Reconciler) slicesOf(ctx context.Context, object client.Object) []ctrlreconcile.Request {
	if name := object.GetLabels()[authv1beta1.ResourceSliceNameLabel]; name != "" {
		return []ctrlreconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
	}
	return watch.Requests(ctx, r.client, &authv1beta1.ResourceSliceList{}, client.InNamespace(object.GetNamespace()), watch.If(slicerequest.IsLocal))
}

// Reconcile makes or updates the Identity of one slice.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	slice := &authv1beta1.ResourceSlice{}
	if err := r.client.Get(ctx, request.NamespacedName, slice); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if !slice.DeletionTimestamp.IsZero() || !slicerequest.IsLocal(slice) || !Accepted(slice) {
		return ctrl.Result{}, nil
	}
	err := r.ensure(ctx, slice)
	if class := reconcile.Classify(err); err != nil && (class == reconcile.Transient || class == reconcile.Waiting) {
		return reconcile.Result(err)
	}
	if err := r.report(ctx, slice, err); err != nil {
		return reconcile.Result(err)
	}
	return reconcile.Result(err)
}

// Accepted tells whether a provider accepted both parts of a slice.
func Accepted(slice *authv1beta1.ResourceSlice) bool {
	return conditions.Is(slice.Status.Conditions, authv1beta1.AuthenticationCondition, authv1beta1.Accepted) &&
		conditions.Is(slice.Status.Conditions, authv1beta1.ResourcesCondition, authv1beta1.Accepted)
}

func (r *Reconciler) ensure(ctx context.Context, slice *authv1beta1.ResourceSlice) error {
	pinned, err := r.pinned(ctx, slice)
	if err != nil {
		return err
	}
	keys, err := r.options.Secrets.Keys(ctx, slice.Namespace, authv1beta1.ResourceSliceIdentityPrefix+slice.Name)
	if err != nil {
		return err
	}
	if keys == nil {
		return reconcile.Wait(authv1beta1.ReasonKeyMissing, "waiting for the slice's key", time.Second)
	}
	live := &authv1beta1.Identity{}
	err = r.client.Get(ctx, types.NamespacedName{Namespace: slice.Namespace, Name: authv1beta1.ResourceSliceIdentityPrefix + slice.Name}, live)
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return fmt.Errorf("reading the Identity of ResourceSlice %s/%s: %w", slice.Namespace, slice.Name, err)
	case !metav1.IsControlledBy(live, slice):
		return reconcile.NotOurs(authv1beta1.ReasonNotOurs, "Identity", client.ObjectKeyFromObject(live))
	}
	params, err := Choose(slice, live, pinned, keys.Current, r.options.ClusterID, r.options.Clock.Now())
	if err != nil || params == nil {
		return err
	}
	return r.write(ctx, slice, live, params)
}

// pinned returns the authentication parameters of the control plane Identity, the authority on where the provider is.
func (r *Reconciler) pinned(ctx context.Context, slice *authv1beta1.ResourceSlice) (*authv1beta1.AuthParams, error) {
	controlPlane, err := identitycontroller.ControlPlane(ctx, r.client, slice.Namespace, slice.Labels[corev1beta1.RemoteIDLabel])
	if err != nil {
		return nil, err
	}
	if controlPlane == nil {
		return nil, reconcile.Wait(authv1beta1.ReasonIdentityPending, "waiting for the control plane Identity of the provider", time.Minute)
	}
	return &controlPlane.Spec.AuthParams, nil
}

// Choose returns what the slice's Identity shall hold, nil if it shall stay as it is. A certificate is taken from the slice if
// it is for the present key and lives longer than the Identity's own: a renewal may have been faster.
func Choose(slice *authv1beta1.ResourceSlice, live *authv1beta1.Identity, pinned *authv1beta1.AuthParams,
	key identity.KeyPair, home string, now time.Time,
) (*authv1beta1.AuthParams, error) {
	offered := slice.Status.AuthParams
	if offered == nil {
		return nil, reconcile.Wait(authv1beta1.ReasonWaitingForProvider, "waiting for the slice's certificate", time.Minute)
	}
	if err := identity.SameEndpoint(identitycontroller.Endpoint(pinned), identitycontroller.Endpoint(offered)); err != nil {
		return nil, reconcile.Refuse(authv1beta1.ReasonEndpointChanged, err)
	}
	peering := identity.CertificatePeering(pinned.SignedCRT)
	if len(offered.SignedCRT) != 0 && identity.CertificatePeering(offered.SignedCRT) != peering {
		return nil, reconcile.Wait(authv1beta1.ReasonWaitingForProvider, "waiting for the slice's certificate of the present peering", time.Minute)
	}
	params := pinned.DeepCopy()
	params.AwsConfig = offered.AwsConfig.DeepCopy()
	subject := identity.SliceSubject(home, slice.Name).InPeering(peering)
	offeredErr := identity.CheckCertificate(offered.SignedCRT, key.Public(), subject, now)
	if live == nil {
		if offeredErr != nil {
			return nil, reconcile.Refuse(authv1beta1.ReasonCertificateMismatch, offeredErr)
		}
		params.SignedCRT = offered.SignedCRT
		return params, nil
	}
	params.SignedCRT = live.Spec.AuthParams.SignedCRT
	presentErr := identity.CheckCertificate(params.SignedCRT, key.Public(), subject, now)
	if offeredErr == nil && (presentErr != nil || later(offered.SignedCRT, params.SignedCRT, now)) {
		params.SignedCRT = offered.SignedCRT
	}
	if offeredErr != nil && presentErr != nil {
		return nil, reconcile.Refuse(authv1beta1.ReasonCertificateMismatch, offeredErr)
	}
	if equality.Semantic.DeepEqual(*params, live.Spec.AuthParams) {
		return nil, nil
	}
	return params, nil
}

// later tells whether certificate a is to be renewed later than b.
func later(a, b []byte, now time.Time) bool {
	_, atA, errA := identity.NeedsRenewal(a, now)
	_, atB, errB := identity.NeedsRenewal(b, now)
	return errA == nil && (errB != nil || atA.After(atB))
}

func (r *Reconciler) write(ctx context.Context, slice *authv1beta1.ResourceSlice, live *authv1beta1.Identity, params *authv1beta1.AuthParams) error {
	remote := slice.Labels[corev1beta1.RemoteIDLabel]
	object := &authv1beta1.Identity{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: slice.Namespace, Name: authv1beta1.ResourceSliceIdentityPrefix + slice.Name,
			Labels: map[string]string{
				corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: remote, authv1beta1.ResourceSliceNameLabel: slice.Name,
			},
		},
		Spec: authv1beta1.IdentitySpec{ClusterID: corev1beta1.ClusterID(remote), Type: authv1beta1.ResourceSliceIdentityType},
	}
	if err := controllerutil.SetControllerReference(slice, object, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return fmt.Errorf("setting the owner of Identity %s/%s: %w", object.Namespace, object.Name, err)
	}
	set := func(live client.Object) { live.(*authv1beta1.Identity).Spec.AuthParams = *params }
	keeper := keep.Keeper{Client: r.client, Reason: authv1beta1.ReasonNotOurs}
	_, err := keep.Known(ctx, keeper, live, keep.Wanted{Object: object, Set: set, Ours: keep.ControlledBy(slice)})
	return err
}

// report keeps the slice's Identity condition, with optimistic locking: the replication writes others of the list.
func (r *Reconciler) report(ctx context.Context, slice *authv1beta1.ResourceSlice, err error) error {
	condition := corev1beta1.Condition{
		Type: authv1beta1.IdentityCondition, Status: string(metav1.ConditionTrue), Reason: authv1beta1.ReasonReady, Message: "the certificate is in use",
		ObservedGeneration: slice.Generation,
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = string(metav1.ConditionFalse), reconcile.ReasonOf(err), reconcile.MessageOf(err)
	}
	updated := slice.DeepCopy()
	if !conditions.Set(&updated.Status.Summary, condition, r.options.Clock.Now()) {
		return nil
	}
	patch := client.MergeFromWithOptions(slice, client.MergeFromWithOptimisticLock{})
	if patchErr := r.client.Status().Patch(ctx, updated, patch); patchErr != nil {
		return fmt.Errorf("writing the status of ResourceSlice %s/%s: %w", slice.Namespace, slice.Name, patchErr)
	}
	if err != nil {
		r.events.Eventf(slice, nil, corev1.EventTypeWarning, condition.Reason, "Identity", "%s", conditions.Bound(condition.Message))
	}
	return nil
}
