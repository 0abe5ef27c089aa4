package namespacemap

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/placement"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps/finalizers,verbs=update
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=tenants,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=bind,resourceNames=liqo-virtual-kubelet-remote;liqo-controller-manager-twin

// Options configure the reconciler.
type Options struct {
	// Rules for the names and the number of twins.
	Rules placement.TwinRules
	// Labels that every twin gets, such as the Pod Security labels of the configured level.
	Labels map[string]string
	// Hard are the limits of the ResourceQuota that every twin gets; none if empty.
	Hard corev1.ResourceList
	// Network says whom pods in twins may talk with.
	Network Network
	// Manager is this controller's own ServiceAccount, which gets its rights in each twin by a RoleBinding.
	Manager rbacv1.Subject
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Clock tells how old a twin is; the real one if nil.
	Clock clock.PassiveClock
	// Events tells of twins that stay without a map; the manager's recorder if nil.
	Events events.EventRecorder
	// Workers is how many maps are reconciled at a time; 2 if 0.
	Workers int
}

type reconciler struct {
	client.Client
	Options
}

// Register adds the reconciler to a manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-namespacemap")
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o}
	err := ctrl.NewControllerManagedBy(mgr).Named("namespacemap").
		For(&offloadingv1beta1.NamespaceMap{}, builder.WithPredicates(watch.Labelled(corev1beta1.ReplicatedLabel, "true"))).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace)).
		Watches(&rbacv1.RoleBinding{}, watch.One(ofAnnotation)).
		Watches(&authv1beta1.Tenant{}, watch.Each(r.Client, &offloadingv1beta1.NamespaceMapList{}, ofTenant)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(ofVolume(r.Client)), builder.WithPredicates(outliving())).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the NamespaceMap controller: %w", err)
	}
	return nil
}

// Reconcile makes the twins what one NamespaceMap wants.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var nm offloadingv1beta1.NamespaceMap
	if err := r.Get(ctx, req.NamespacedName, &nm); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if nm.Labels[corev1beta1.ReplicatedLabel] != "true" {
		return ctrl.Result{}, nil
	}
	s, err := gather(ctx, r.Client, &nm)
	if err != nil {
		return reconcile.Result(err)
	}
	if err := r.confirmDrained(ctx, s); err != nil {
		return reconcile.Result(err)
	}
	if err := r.keepRights(ctx, s); err != nil {
		return reconcile.Result(err)
	}
	if !nm.DeletionTimestamp.IsZero() {
		return reconcile.Result(r.finish(ctx, s))
	}
	if err := s.owned(); err != nil {
		return reconcile.Result(err)
	}
	if controllerutil.AddFinalizer(&nm, offloadingv1beta1.NamespaceMapFinalizer) {
		if err := r.patch(ctx, s); err != nil {
			return reconcile.Result(err)
		}
	}
	if err := s.takeUp(ctx, r.Client, r.Live); err != nil {
		return reconcile.Result(err)
	}
	if err := s.retain(ctx, r.Client); err != nil {
		return reconcile.Result(err)
	}
	dropped := r.drop(ctx, s)
	if s.past {
		return reconcile.Result(dropped) // Nothing is made or answered by what is past.
	}
	// What is wrong with one twin changes nothing for the others.
	err = worst([]error{dropped, r.stop(ctx, s), r.ensure(ctx, s)})
	if statusErr := r.report(ctx, s); statusErr != nil {
		return reconcile.Result(statusErr)
	}
	return s.next(err)
}
