package gateway

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/kube/freshness"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=networking.liqo.io,resources=gatewayservers;gatewayclients,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=gatewayservers/status;gatewayclients/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=gatewayservers/finalizers;gatewayclients/finalizers,verbs=update
// +kubebuilder:rbac:groups=networking.liqo.io,resources=wggatewayservers;wggatewayclients,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=wggatewayservers/status;wggatewayclients/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=wggatewayservers/finalizers;wggatewayclients/finalizers,verbs=update
// +kubebuilder:rbac:groups=networking.liqo.io,resources=wggatewayservertemplates;wggatewayclienttemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services;pods,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch

// What gateways may do in their namespaces must be a right of who gives it. The word of a gateway that was lost is taken back.
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations;publickeies;internalfabrics,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=connections,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=connections/status,verbs=get;update;patch

// Options of the controllers.
type Options struct {
	// Namespace is Liqo's own, where the default templates are.
	Namespace string
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Pods reads the pods and the Deployments of gateways; a cache that holds nothing else if nil.
	Pods client.Reader
	// Secrets reads and writes the keys; of the manager's clients if empty.
	Secrets secrets.Store
	// Events records what is wrong with gateways; the manager's recorder if nil.
	Events events.EventRecorder
	// Clock tells how long a gateway has had no ready pod; the real one if nil.
	Clock clock.PassiveClock
}

// reconciler makes gateways of one side run.
type reconciler struct {
	client.Client
	Options
	side side
}

// scope is what is known of one gateway in a pass.
type scope struct {
	// gateway is what the user asked for.
	gateway gateway
	// peer is the cluster at the other end; place fills it.
	peer string
	// secret names the Secret with the keys; keys fills it.
	secret string
	// rendered is what the template makes of the gateway; render fills it. It has no Object as long as there is none.
	rendered rendered
	// invalid says what is wrong with the template; render fills it. What was rendered before stays.
	invalid error
	// service is the one that leads to the gateway, with what Kubernetes added; run fills it, for servers.
	service *corev1.Service
	// pods are the gateway's; active is the one of them that has the tunnel, and internal where nodes reach it, if there is one. find fills them.
	pods     []corev1.Pod
	active   *corev1.Pod
	internal *networkingv1beta1.InternalGatewayEndpoint
	// endpoint is where the peer reaches the gateway; observe fills it, if it is known.
	endpoint *networkingv1beta1.EndpointStatus
}

// Register adds the controllers to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Namespace == "" {
		o.Namespace = corev1beta1.DefaultNamespace
	}
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-gateway")
	}
	if o.Secrets.Client == nil {
		o.Secrets = secrets.Store{Client: mgr.GetClient(), Reader: o.Live}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	parts, err := newCache(mgr)
	if err != nil {
		return err
	}
	o.Pods = parts
	for _, side := range []side{serverSide, clientSide} {
		r := &reconciler{Client: mgr.GetClient(), Options: o, side: side}
		b := ctrl.NewControllerManagedBy(mgr).Named(side.resource).
			For(side.newGateway().Object).
			Owns(side.newRendered().Object).
			Watches(side.newTemplate(), watch.Each(r.Client, side.newList(), r.ofTemplate)).
			WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()})
		if side.serves() {
			b = b.Watches(&corev1.Node{}, watch.All(r.Client, side.newList()), builder.WithPredicates(nodeChanged()))
		}
		for _, part := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &corev1.Pod{}} {
			b = b.WatchesRawSource(source.Kind(cache.Cache(parts), part, watch.One(ofPart)))
		}
		if err := b.Complete(r); err != nil {
			return fmt.Errorf("registering the %s controller: %w", side.gateway, err)
		}
	}
	if err := registerLosses(mgr, parts, o.Clock); err != nil {
		return err
	}
	return registerRights(mgr, o.Live)
}

// newCache makes a cache of what gateways are made of: the manager's own holds other pods and Deployments.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{networkingv1beta1.GatewayComponentLabel: networkingv1beta1.GatewayComponent})}
	parts, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(), NewInformer: freshness.NewInformer,
		ByObject: map[client.Object]cache.ByObject{&appsv1.Deployment{}: ours, &corev1.Service{}: ours, &corev1.Pod{}: ours},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of gateways: %w", err)
	}
	if err := mgr.Add(parts); err != nil {
		return nil, fmt.Errorf("adding the cache of gateways: %w", err)
	}
	return parts, nil
}

// Reconcile makes one gateway run. What is deleted goes by its owners, without us.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := r.side.newGateway().Object
	if err := r.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{gateway: viewGateway(object)}
	var problem error
	for _, phase := range []func(context.Context, *scope) error{r.find, r.place, r.keys, r.render, r.account, r.run, r.observe} {
		if problem = phase(ctx, s); problem != nil {
			break
		}
	}
	if s.invalid != nil && (problem == nil || reconcile.Classify(problem) == reconcile.Waiting) {
		problem = s.invalid
	}
	if err := r.report(ctx, s, problem); err != nil {
		return reconcile.Result(err)
	}
	return reconcile.Result(problem)
}
