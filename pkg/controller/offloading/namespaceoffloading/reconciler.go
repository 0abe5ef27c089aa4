package namespaceoffloading

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/placement"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespaceoffloadings,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespaceoffloadings/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespaceoffloadings/finalizers,verbs=update
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=core.liqo.io,resources=foreignclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=bind,resourceNames=liqo-virtual-kubelet-local

// Options configure the reconciler.
type Options struct {
	// ClusterID is the local cluster's ID, a part of default twin names.
	ClusterID string
	// Home are the namespaces that are never offloaded.
	Home placement.HomeNamespaces
	// NodeIdentity is who virtual kubelets are for the local cluster; empty means a node.
	NodeIdentity v1alpha1.NodeIdentity
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Clock gives conditions their times; the real one if nil.
	Clock clock.PassiveClock
	// Workers is how many namespaces are reconciled at a time; 2 if 0.
	Workers int
}

type reconciler struct {
	client.Client
	Options
	waiting waiting
}

// Register adds the reconciler to a manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o}
	list := &offloadingv1beta1.NamespaceOffloadingList{}
	all := watch.All(r.Client, list)
	err := ctrl.NewControllerManagedBy(mgr).Named("namespaceoffloading").
		For(&offloadingv1beta1.NamespaceOffloading{}).
		Watches(&offloadingv1beta1.NamespaceMap{}, watch.Each(r.Client, list, ofMap),
			builder.WithPredicates(watch.Labelled(corev1beta1.ReplicationLabel, "true"))).
		Watches(&offloadingv1beta1.VirtualNode{}, all, builder.WithPredicates(selectable())).
		Watches(&corev1.Node{}, all, builder.WithPredicates(selectable())).
		Watches(&corev1.Namespace{}, watch.One(ofNamespace), builder.WithPredicates(labelled())).
		Watches(&rbacv1.RoleBinding{}, watch.One(ofBinding), builder.WithPredicates(labelled())).
		Watches(&corev1beta1.ForeignCluster{}, watch.All(r.Client, list, watch.If(leaving))).
		Watches(&corev1.PersistentVolume{}, watch.One(ofVolume), builder.WithPredicates(atProvider())).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the NamespaceOffloading controller: %w", err)
	}
	return nil
}

// Reconcile carries out one NamespaceOffloading.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != offloadingv1beta1.NamespaceOffloadingName {
		return ctrl.Result{}, nil
	}
	var nso offloadingv1beta1.NamespaceOffloading
	if err := r.Get(ctx, req.NamespacedName, &nso); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	s, err := gather(ctx, r.Client, &nso)
	if err != nil {
		return reconcile.Result(err)
	}
	if !nso.DeletionTimestamp.IsZero() {
		return reconcile.Result(r.finish(ctx, s))
	}
	if controllerutil.AddFinalizer(&nso, offloadingv1beta1.NamespaceOffloadingFinalizer) {
		if err := r.patch(ctx, s); err != nil {
			return reconcile.Result(err)
		}
	}
	for _, phase := range []func(context.Context, *scope) error{r.decide, r.mark, r.skip, r.extend, r.withdraw} {
		if err = phase(ctx, s); err != nil {
			break
		}
	}
	if err == nil {
		err = s.refused
	}
	if s.past {
		return reconcile.Result(err) // What was seen is not worth reporting.
	}
	if statusErr := r.report(ctx, s, err); statusErr != nil {
		return reconcile.Result(statusErr)
	}
	return reconcile.Result(err)
}
