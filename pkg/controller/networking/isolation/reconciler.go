package isolation

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/networking/podaddress"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations/status,verbs=patch;update

// pause is how long changes are collected before they are written.
const pause = time.Second

// Options of the controller.
type Options struct {
	// Isolation says which pods peers reach.
	Isolation v1alpha1.Isolation
	// Pods are those of the cluster, by their addresses; watched only if peers reach shared ones alone.
	Pods cache.Cache
}

// Reconciler tells gateways which pods are shared with their peers.
type Reconciler struct {
	client.Client
	Options
	// pods reads Options.Pods.
	pods client.Reader
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Options: o, pods: o.Pods}
	b := ctrl.NewControllerManagedBy(mgr).Named("isolation").
		For(&networkingv1beta1.Configuration{}, builder.WithPredicates(sharing())).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()})
	if o.Isolation == v1alpha1.IsolationOffloaded {
		all := &networkingv1beta1.ConfigurationList{}
		b = b.Watches(&offloadingv1beta1.NamespaceMap{}, watch.Each(r.Client, all, func(o client.Object) []client.ListOption { return in(o.GetNamespace()) })).
			Watches(&corev1.Namespace{}, watch.Each(r.Client, all, func(o client.Object) []client.ListOption { return in(twinOf(o)) })).
			WatchesRawSource(source.TypedKind(o.Pods, &corev1.Pod{}, r.podEvents()))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("registering the isolation controller: %w", err)
	}
	return nil
}

// sharing passes Configurations that are new, or of which somebody changed what is told here.
func sharing() predicate.Predicate {
	return watch.Changed(func(c *networkingv1beta1.Configuration) any { return []any{c.Status.Isolation, c.Status.SharedPods} })
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// podEvents looks at the peers with whom a pod's namespace is shared, a while after its address changed.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, ctrl.Request] {
	look := func(ctx context.Context, pod *corev1.Pod, q queue) {
		for _, request := range r.sharers(ctx, pod.Namespace) {
			q.AddAfter(request, pause)
		}
	}
	return handler.TypedFuncs[*corev1.Pod, ctrl.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) { look(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) { look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			if !slices.Equal(podaddress.Of(e.ObjectOld), podaddress.Of(e.ObjectNew)) {
				look(ctx, e.ObjectNew, q)
			}
		},
	}
}

// sharers are the Configurations of the peers with whom a namespace is shared.
func (r *Reconciler) sharers(ctx context.Context, namespace string) (requests []ctrl.Request) {
	of := func(tenant string) {
		if options := in(tenant); options != nil {
			requests = append(requests, watch.Requests(ctx, r.Client, &networkingv1beta1.ConfigurationList{}, options...)...)
		}
	}
	maps := &offloadingv1beta1.NamespaceMapList{}
	if err := r.List(ctx, maps); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing NamespaceMaps")
	}
	for i := range maps.Items {
		if slices.Contains(offloadedBy(&maps.Items[i]), namespace) {
			of(maps.Items[i].Namespace)
		}
	}
	own := &corev1.Namespace{}
	if err := r.Get(ctx, client.ObjectKey{Name: namespace}, own); err == nil {
		of(twinOf(own))
	}
	return requests
}

// in selects what is in a tenant namespace; nothing without one.
func in(tenant string) []client.ListOption {
	if tenant == "" {
		return nil
	}
	return []client.ListOption{client.InNamespace(tenant)}
}

// Reconcile tells one gateway.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	configuration := &networkingv1beta1.Configuration{}
	if err := r.Get(ctx, request.NamespacedName, configuration); err != nil || !configuration.DeletionTimestamp.IsZero() {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	shared, err := r.shared(ctx, request.Namespace)
	if err != nil || configuration.Status.Isolation == string(r.Isolation) && slices.Equal(shared, configuration.Status.SharedPods) {
		return reconcile.Result(err)
	}
	updated := configuration.DeepCopy()
	updated.Status.Isolation, updated.Status.SharedPods = string(r.Isolation), shared
	err = r.Status().Patch(ctx, updated, client.MergeFromWithOptions(configuration, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result(fmt.Errorf("telling Configuration %s which pods are shared: %w", request, err))
	}
	return ctrl.Result{}, nil
}

// shared are the addresses of the pods that are shared with the peer of a tenant namespace.
func (r *Reconciler) shared(ctx context.Context, tenant string) ([]networkingv1beta1.PodIP, error) {
	if r.Isolation != v1alpha1.IsolationOffloaded {
		return nil, nil
	}
	maps, namespaces := &offloadingv1beta1.NamespaceMapList{}, &corev1.NamespaceList{}
	if err := r.List(ctx, maps, client.InNamespace(tenant)); err != nil {
		return nil, fmt.Errorf("listing NamespaceMaps in Namespace %s: %w", tenant, err)
	}
	if err := r.List(ctx, namespaces); err != nil {
		return nil, fmt.Errorf("listing Namespaces: %w", err)
	}
	var names []string
	for i := range maps.Items {
		names = append(names, offloadedBy(&maps.Items[i])...)
	}
	for i := range namespaces.Items {
		if twinOf(&namespaces.Items[i]) == tenant {
			names = append(names, namespaces.Items[i].Name)
		}
	}
	slices.Sort(names)
	var all []corev1.Pod
	for _, name := range slices.Compact(names) {
		pods := &corev1.PodList{}
		if err := r.pods.List(ctx, pods, client.InNamespace(name)); err != nil {
			return nil, fmt.Errorf("listing Pods in Namespace %s: %w", name, err)
		}
		all = append(all, pods.Items...)
	}
	return addresses(all), nil
}
