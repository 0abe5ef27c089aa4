package tenantnamespace

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=liqo-controller-manager-tenant,verbs=bind
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// BindingName is the name of the RoleBinding in tenant namespaces.
const BindingName = "liqo-controller-manager"

// Options of the controller.
type Options struct {
	// ServiceAccount that this process runs as; default liqo-controller-manager.
	ServiceAccount string
	// LiqoNamespace is the ServiceAccount's namespace; default liqo.
	LiqoNamespace string
	// Watch is told the namespaces.
	Watch *secrets.Watch
}

// Reconciler binds the rights in one namespace.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.ServiceAccount == "" {
		o.ServiceAccount = "liqo-controller-manager"
	}
	if o.LiqoNamespace == "" {
		o.LiqoNamespace = corev1beta1.DefaultNamespace
	}
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-tenant-namespace")}
	return ctrl.NewControllerManagedBy(mgr).Named("tenantnamespace").
		For(&corev1.Namespace{}, builder.WithPredicates(watch.Labelled(corev1beta1.TenantNamespaceLabel, "true"))).
		Owns(&rbacv1.RoleBinding{}).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// Reconcile binds the rights, waits until they are effective, and has the namespace's Secrets followed.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, request.NamespacedName, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			r.options.Watch.Forget(request.Name)
			return ctrl.Result{}, nil
		}
		return reconcile.Result(fmt.Errorf("reading Namespace %s: %w", request.Name, err))
	}
	if !namespace.DeletionTimestamp.IsZero() || namespace.Labels[corev1beta1.TenantNamespaceLabel] != "true" {
		return ctrl.Result{}, nil
	}
	if why := WhyNotTenantNamespace(namespace); why != "" {
		r.events.Eventf(namespace, nil, corev1.EventTypeWarning, authv1beta1.ReasonInvalidNamespace, "Bind", "%s", why)
		return ctrl.Result{}, nil
	}
	wrote, err := keep.Keeper{Client: r.client, Reason: authv1beta1.ReasonNotOurs}.Keep(ctx, keep.Wanted{Object: r.render(namespace)})
	if err != nil {
		return reconcile.Result(err)
	}
	if wrote {
		ctrl.LoggerFrom(ctx).Info("Bound the rights in a tenant namespace")
	}
	if err := r.effective(ctx, namespace.Name); err != nil {
		return reconcile.Result(err)
	}
	r.options.Watch.Follow(namespace.Name)
	return ctrl.Result{}, nil
}

// WhyNotTenantNamespace returns why a labelled namespace is not a tenant namespace, empty if it is one.
func WhyNotTenantNamespace(namespace *corev1.Namespace) string {
	id := namespace.Labels[corev1beta1.RemoteClusterIDLabel]
	if err := identity.ValidateClusterID(id); err != nil {
		return fmt.Sprintf("the label %s does not name a cluster: %s", corev1beta1.RemoteClusterIDLabel, err)
	}
	if want := corev1beta1.TenantNamespacePrefix + id; namespace.Name != want {
		return fmt.Sprintf("the tenant namespace of cluster %s must be named %s", id, want)
	}
	return ""
}

func (r *Reconciler) render(namespace *corev1.Namespace) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace.Name, Name: BindingName, Labels: map[string]string{corev1beta1.ManagedLabel: "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID, Controller: ptr.To(true),
			}},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: offloadingv1beta1.ManagerTenantClusterRole},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: r.options.LiqoNamespace, Name: r.options.ServiceAccount,
		}},
	}
}

// effective waits until the authorizer knows the binding: it lags behind the write by a moment.
func (r *Reconciler) effective(ctx context.Context, namespace string) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Resource: "secrets"},
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return fmt.Errorf("asking for our rights in Namespace %s: %w", namespace, err)
	}
	if !review.Status.Allowed {
		return reconcile.Wait(authv1beta1.ReasonPermissionPending, "waiting for the rights in the tenant namespace", 200*time.Millisecond)
	}
	return nil
}
