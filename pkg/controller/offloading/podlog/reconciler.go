package podlog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups="",resources=namespaces;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowpods,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update;delete
// In twin namespaces, bound there: roles get;create;update, and pods/log get, which is what it gives.

// Options of the controller.
type Options struct {
	// Workers is how many namespaces are handled at a time (default 2).
	Workers int
}

type reconciler struct{ client.Client }

// Register adds the controller to the manager. The manager's cache may hold just the Pods with the label
// liqo.io/managed-by=shadowpod: others are nobody's to read here.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Workers <= 0 {
		o.Workers = 2
	}
	r := &reconciler{Client: mgr.GetClient()}
	err := ctrl.NewControllerManagedBy(mgr).Named("podlog").
		For(&corev1.Namespace{}, builder.WithPredicates(watch.Where(func(o client.Object) bool {
			return o.GetLabels()[corev1beta1.RemoteClusterIDLabel] != ""
		}))).
		Watches(&offloadingv1beta1.ShadowPod{}, watch.One(namespaceOf), builder.WithPredicates(wishes())).
		Watches(&rbacv1.RoleBinding{}, watch.One(namespaceOf), builder.WithPredicates(admissions())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod), builder.WithPredicates(comings())).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of pods' logs: %w", err)
	}
	return nil
}

func namespaceOf(o client.Object) client.ObjectKey { return client.ObjectKey{Name: o.GetNamespace()} }

func asks(o client.Object) bool {
	_, asked := o.GetAnnotations()[offloadingv1beta1.LogsRequestedAnnotation]
	return asked
}

// wishes selects the events by which a ShadowPod begins or ceases to ask, and of what it asks for.
func wishes() predicate.Predicate {
	return watch.Changed(func(o client.Object) any {
		if !asks(o) {
			return nil
		}
		return []any{o.GetUID(), origin(o)}
	})
}

// comings selects the events by which a pod becomes, or ceases to be, one that a ShadowPod controls.
func comings() predicate.Predicate {
	return watch.Changed(func(o client.Object) any { return []any{o.GetUID(), origin(o), o.GetOwnerReferences()} })
}

// admissions selects the RoleBindings that say whose virtual kubelets may work in a namespace.
func admissions() predicate.Predicate {
	return watch.Where(func(o client.Object) bool { return o.GetName() == offloadingv1beta1.RemoteClusterRole })
}

func origin(o client.Object) string { return o.GetLabels()[offloadingv1beta1.OriginLabel] }

// ofPod finds the namespace of a pod whose logs are asked for.
func (r *reconciler) ofPod(ctx context.Context, pod client.Object) []ctrl.Request {
	var shadow offloadingv1beta1.ShadowPod
	// What a ShadowPod that is not in the cache yet asks for is an event of its own.
	if err := r.Get(ctx, client.ObjectKeyFromObject(pod), &shadow); err != nil || !asks(&shadow) {
		return nil
	}
	return []ctrl.Request{{NamespacedName: namespaceOf(pod)}}
}

// Reconcile keeps the Role of one namespace.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var namespace corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: req.Name}, &namespace); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	consumer := namespace.Labels[corev1beta1.RemoteClusterIDLabel]
	if namespace.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] == "" || !namespace.DeletionTimestamp.IsZero() || consumer == "" {
		return ctrl.Result{}, nil
	}
	var shadows offloadingv1beta1.ShadowPodList
	if err := r.List(ctx, &shadows, client.InNamespace(namespace.Name)); err != nil {
		return reconcile.Result(fmt.Errorf("listing ShadowPods in %s: %w", namespace.Name, err))
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(namespace.Name)); err != nil {
		return reconcile.Result(fmt.Errorf("listing Pods in %s: %w", namespace.Name, err))
	}
	return reconcile.Result(r.allow(ctx, namespace.Name, Readable(consumer, shadows.Items, pods.Items)))
}

// allow makes the Role name exactly these pods, for those who may work in the namespace. While nobody asks there is none to be made.
func (r *reconciler) allow(ctx context.Context, namespace string, names []string) error {
	role := roleFor(namespace, names)
	keeper := binding.Keeper(r.Client)
	if _, err := keeper.Keep(ctx, keep.Wanted{Object: role, Optional: len(names) == 0}); err != nil || role.ResourceVersion == "" {
		return err
	}
	var admitted rbacv1.RoleBinding
	if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: offloadingv1beta1.RemoteClusterRole}, &admitted); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading RoleBinding %s/%s: %w", namespace, offloadingv1beta1.RemoteClusterRole, err)
	}
	rights := binding.New(namespace, role.Name, role.Name, admitted.Subjects...)
	rights.RoleRef.Kind = "Role"
	return keeper.All(ctx, rights)
}

// roleFor is the Role that lets these pods' logs be read.
func roleFor(namespace string, names []string) *rbacv1.Role {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: offloadingv1beta1.PodLogsRole, Labels: map[string]string{corev1beta1.ManagedLabel: "true"},
	}}
	if len(names) > 0 {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/log"}, ResourceNames: names, Verbs: []string{"get"}}}
	}
	return role
}
