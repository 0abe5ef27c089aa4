package virtualnode

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes/finalizers,verbs=update
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=vkoptionstemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=core.liqo.io,resources=foreignclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings;clusterrolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=bind,resourceNames=liqo-virtual-kubelet;liqo-virtual-kubelet-bootstrap;liqo-virtual-kubelet-tenant

// Options configure the reconciler.
type Options struct {
	// ClusterID is the local cluster's ID.
	ClusterID string
	// Namespace is Liqo's own, where the default VkOptionsTemplate is.
	Namespace string
	// PodCIDRs of the local cluster, told to the virtual kubelets.
	PodCIDRs []string
	// HideAddresses says that pods are without addresses by this cluster's own wish.
	HideAddresses bool
	// Networking says that a provider's Configuration, where there is one, tells which ranges are those of its pods.
	Networking bool
	// NodeIdentity is who virtual kubelets are for the local cluster; empty means a node.
	NodeIdentity v1alpha1.NodeIdentity
	// PlainMetrics says whether virtual kubelets serve their metrics, if they do, over HTTP to whoever reaches the port.
	PlainMetrics bool
	// DrainTimeout is how long PodDisruptionBudgets are respected when a VirtualNode is deleted; 10 minutes if 0.
	DrainTimeout time.Duration
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Events records what becomes of VirtualNodes; the manager's recorder if nil.
	Events events.EventRecorder
	// Clock gives conditions their times and ends the drain; the real one if nil.
	Clock clock.PassiveClock
	// Workers is how many VirtualNodes are reconciled at a time; 4 if 0.
	Workers int
}

type reconciler struct {
	client.Client
	Options
}

// Register adds the reconciler to a manager. The manager's cache may hold just the Deployments with the label
// offloading.liqo.io/component=virtual-kubelet.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-virtual-node")
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o.withDefaults(mgr.GetAPIReader())}
	all := &offloadingv1beta1.VirtualNodeList{}
	register := ctrl.NewControllerManagedBy(mgr).Named("virtualnode").
		For(&offloadingv1beta1.VirtualNode{}).
		Owns(&appsv1.Deployment{}).
		Owns(&rbacv1.RoleBinding{}).
		Watches(&corev1.Node{}, watch.One(ofNode), builder.WithPredicates(nodeChanged())).
		Watches(&offloadingv1beta1.NamespaceMap{}, watch.Each(r.Client, all, ofPeer), builder.WithPredicates(removed())).
		Watches(&corev1beta1.ForeignCluster{}, watch.Each(r.Client, all, ofPeer)).
		Watches(&authv1beta1.ResourceSlice{}, watch.Each(r.Client, all, ofSlice), builder.WithPredicates(answerChanged())).
		Watches(&offloadingv1beta1.VkOptionsTemplate{}, watch.All(r.Client, all)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers, RateLimiter: reconcile.RateLimiter()})
	if o.Networking {
		register = register.Watches(&networkingv1beta1.Configuration{}, watch.Each(r.Client, all, ofPeer), builder.WithPredicates(cameOrWent()))
	}
	if err := register.Complete(r); err != nil {
		return fmt.Errorf("registering the VirtualNode controller: %w", err)
	}
	return nil
}

func (o Options) withDefaults(live client.Reader) Options {
	if o.Live == nil {
		o.Live = live
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 10 * time.Minute
	}
	if o.Namespace == "" {
		o.Namespace = corev1beta1.DefaultNamespace
	}
	return o
}

// Reconcile brings one VirtualNode's Node and virtual kubelet about, or removes them.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var vn offloadingv1beta1.VirtualNode
	if err := r.Get(ctx, req.NamespacedName, &vn); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	s := &scope{vn: &vn, before: vn.DeepCopy()}
	phases := []func(context.Context, *scope) error{
		r.gather, r.configured, r.validate, r.configure, r.mapping, r.list,
		r.authorize, r.deploy, r.register, r.empower, r.forgetConfirmation, r.inspect,
	}
	if !vn.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(&vn, offloadingv1beta1.VirtualNodeFinalizer) {
			return ctrl.Result{}, nil
		}
		if err := r.confirm(ctx, s); err != nil {
			return reconcile.Result(err)
		}
		phases = []func(context.Context, *scope) error{r.gather, r.guard, r.drain, r.undeploy, r.forgetRequests, r.disempower, r.unauthorize, r.unregister, r.unmap}
	} else if controllerutil.AddFinalizer(&vn, offloadingv1beta1.VirtualNodeFinalizer) {
		if err := r.patch(ctx, s); err != nil {
			return reconcile.Result(err)
		}
	}
	var err error
	for _, phase := range phases {
		if err = phase(ctx, s); err != nil {
			break
		}
	}
	if statusErr := r.report(ctx, s, err); statusErr != nil {
		return reconcile.Result(statusErr)
	}
	if err == nil && !vn.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(&vn, offloadingv1beta1.VirtualNodeFinalizer)
		err = r.patch(ctx, s)
	}
	return reconcile.Result(err)
}

// patch writes the object's metadata.
func (r *reconciler) patch(ctx context.Context, s *scope) error {
	err := r.Patch(ctx, s.vn, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the metadata of VirtualNode %s: %w", client.ObjectKeyFromObject(s.vn), err)
	}
	s.before = s.vn.DeepCopy()
	return nil
}
