package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=ipam.liqo.io,resources=ips,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get,resourceNames=kubernetes
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch

// How often it is looked where the API server is: its endpoints come and go, its ClusterIP hardly ever does.
const (
	endpointsEvery = 30 * time.Second
	serviceEvery   = 10 * time.Minute
)

// service is the Service of the API server.
var service = client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// Options of the controller.
type Options struct {
	// Namespace that Liqo is installed in, where the IPs are.
	Namespace string
	// Endpoints has each endpoint of the API server get an IP, in place of the ClusterIP.
	Endpoints bool
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
}

type reconciler struct {
	client.Client
	Options
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Namespace == "" {
		return errors.New("registering the API server's IPs: the namespace that Liqo is installed in is not known")
	}
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o}
	first := make(chan event.GenericEvent, 1)
	first <- event.GenericEvent{Object: &ipamv1alpha1.IP{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name}}}
	always := watch.One(func(client.Object) client.ObjectKey { return client.ObjectKey{Namespace: o.Namespace, Name: name} })
	err := ctrl.NewControllerManagedBy(mgr).Named("apiserver-ip").
		Watches(&ipamv1alpha1.IP{}, always, builder.WithPredicates(predicate.And(watch.Where(r.ours), edited()))).
		WatchesRawSource(source.Channel(first, always)).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the API server's IPs: %w", err)
	}
	return nil
}

// edited leaves out what the IP controller writes.
func edited() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// ours tells whether an object is an IP that stands for the API server.
func (r *reconciler) ours(o client.Object) bool {
	return o.GetNamespace() == r.Namespace && o.GetLabels()[ipamv1alpha1.IPTypeLabel] == ipamv1alpha1.IPTypeAPIServer
}

// Reconcile brings the IPs in step with where the API server is.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	wanted, err := r.wanted(ctx)
	if err != nil {
		return reconcile.Result(err)
	}
	if len(wanted) == 0 {
		return ctrl.Result{RequeueAfter: endpointsEvery}, nil
	}
	names := map[string]bool{}
	for i := range wanted {
		names[wanted[i].Name] = true
		if err := r.ensure(ctx, &wanted[i]); err != nil {
			return ctrl.Result{}, err // no object shows it: what is refused is told by the log alone
		}
	}
	var list ipamv1alpha1.IPList
	if err := r.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabels{
		ipamv1alpha1.IPTypeLabel: ipamv1alpha1.IPTypeAPIServer, corev1beta1.ManagedLabel: "true"}); err != nil {
		return reconcile.Result(fmt.Errorf("listing the IPs of the API server: %w", err))
	}
	for i := range list.Items {
		if !names[list.Items[i].Name] {
			if err := keep.Delete(ctx, r.Client, &list.Items[i]); err != nil {
				return reconcile.Result(err)
			}
		}
	}
	if r.Endpoints {
		return ctrl.Result{RequeueAfter: endpointsEvery}, nil
	}
	return ctrl.Result{RequeueAfter: serviceEvery}, nil
}

// wanted reads where the API server is.
func (r *reconciler) wanted(ctx context.Context) ([]ipamv1alpha1.IP, error) {
	if r.Endpoints {
		var list discoveryv1.EndpointSliceList
		if err := r.Live.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
			return nil, fmt.Errorf("listing the EndpointSlices of Service %s: %w", service, err)
		}
		return Wanted(r.Namespace, &corev1.Service{}, list.Items), nil
	}
	var found corev1.Service
	if err := r.Live.Get(ctx, service, &found); err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", service, err)
	}
	return Wanted(r.Namespace, &found, nil), nil
}

// ensure makes an IP, or makes it anew if it stands for another address, which cannot be changed.
func (r *reconciler) ensure(ctx context.Context, want *ipamv1alpha1.IP) error {
	var live ipamv1alpha1.IP
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), &live)
	switch {
	case apierrors.IsNotFound(err):
		_, err = keep.Known[*ipamv1alpha1.IP](ctx, keep.Keeper{Client: r.Client}, nil, keep.Wanted{Object: want})
		return err
	case err != nil:
		return fmt.Errorf("reading IP %s/%s: %w", want.Namespace, want.Name, err)
	case !keep.Managed(&live):
		return reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "IP", client.ObjectKeyFromObject(want))
	case !live.DeletionTimestamp.IsZero():
		return nil // its end is an event
	case live.Spec.IP != want.Spec.IP:
		return keep.Delete(ctx, r.Client, &live)
	}
	return r.follow(ctx, &live, want)
}

// follow puts back what somebody changed.
func (r *reconciler) follow(ctx context.Context, live, want *ipamv1alpha1.IP) error {
	changed := live.DeepCopy()
	for key, value := range want.Labels {
		metav1.SetMetaDataLabel(&changed.ObjectMeta, key, value)
	}
	changed.Spec.Masquerade, changed.Spec.Ports = want.Spec.Masquerade, want.Spec.Ports
	if equality.Semantic.DeepEqual(live, changed) {
		return nil
	}
	if err := r.Patch(ctx, changed, client.MergeFrom(live)); err != nil {
		return fmt.Errorf("changing IP %s/%s: %w", live.Namespace, live.Name, err)
	}
	return nil
}
