package identity

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=identities,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=identities/status,verbs=update;patch

// recheck is how often an Identity is looked at again: its certificate may have expired.
const recheck = time.Hour

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the consumer.
	ClusterID string
	// Endpoints says where a provider's API server may be.
	Endpoints identity.EndpointPolicy
	// Secrets reads and writes Secrets.
	Secrets secrets.Store
	// Watch follows the Secrets of tenant namespaces.
	Watch *secrets.Watch
	// Clock tells whether certificates are valid.
	Clock clock.PassiveClock
}

// Reconciler renders kubeconfigs.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the identity controller: %w", err)
	}
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-identity")}
	return ctrl.NewControllerManagedBy(mgr).Named("identity").
		For(&authv1beta1.Identity{}).
		WatchesRawSource(o.Watch.Source(secrets.Owner("Identity"))).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// Reconcile checks one Identity and renders its kubeconfig.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &authv1beta1.Identity{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	updated := object.DeepCopy()
	err := r.render(ctx, updated)
	r.summarize(updated, err)
	if !equality.Semantic.DeepEqual(object.Status, updated.Status) {
		if err := r.client.Status().Patch(ctx, updated, client.MergeFrom(object)); err != nil {
			return reconcile.Result(fmt.Errorf("writing the status of Identity %s: %w", request, err))
		}
	}
	if err != nil {
		return reconcile.Result(err)
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}

func (r *Reconciler) summarize(object *authv1beta1.Identity, err error) {
	if err != nil && reconcile.Classify(err) == reconcile.Transient {
		return // it is retried at once: nothing that a user should see
	}
	condition := metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: object.Generation,
		Reason: authv1beta1.ReasonReady, Message: "the kubeconfig is in place",
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reconcile.ReasonOf(err), reconcile.MessageOf(err)
	}
	before := meta.FindStatusCondition(object.Status.Conditions, corev1beta1.ConditionReady)
	changed := before == nil || before.Reason != condition.Reason
	conditions.SetStandard(&object.Status.Conditions, condition)
	if changed && err != nil && reconcile.Classify(err) != reconcile.Waiting {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, condition.Reason, "Reconcile", "%s", conditions.Bound(condition.Message))
	}
}
