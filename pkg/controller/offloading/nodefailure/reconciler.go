package nodefailure

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete

// Options of the controller.
type Options struct {
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Clock tells when a grace period is over; the real one if nil.
	Clock clock.PassiveClock
}

type reconciler struct {
	client.Client
	Options
}

// Register adds the controller to the manager. The manager's cache may hold just the Pods with the label
// liqo.io/managed-by=shadowpod.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o}
	err := ctrl.NewControllerManagedBy(mgr).Named("nodefailure").
		For(&corev1.Node{}, builder.WithPredicates(watch.Where(func(node *corev1.Node) bool { return !ready(node) }))).
		Watches(&corev1.Pod{}, watch.One(nodeOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of failed nodes: %w", err)
	}
	return nil
}

// nodeOf finds the node that a pod of ours has to leave.
func nodeOf(pod *corev1.Pod) client.ObjectKey {
	if leaving(pod) {
		return client.ObjectKey{Name: pod.Spec.NodeName}
	}
	return client.ObjectKey{}
}

// leaving tells whether a pod runs a ShadowPod and is being deleted from a node.
func leaving(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return !pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName != "" &&
		pod.Labels[offloadingv1beta1.ManagedByLabel] == offloadingv1beta1.ManagedByShadowPod &&
		owner != nil && owner.Kind == "ShadowPod" && owner.APIVersion == offloadingv1beta1.GroupVersion.String()
}

func ready(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return true // nothing is known of it yet
}

// Reconcile removes the pods that a failed node will not remove itself.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var node corev1.Node
	if err := r.Get(ctx, req.NamespacedName, &node); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if ready(&node) {
		return ctrl.Result{}, nil
	}
	due, next, err := r.due(ctx, node.Name)
	if err != nil || len(due) == 0 {
		return ctrl.Result{RequeueAfter: next}, err
	}
	if err := r.Live.Get(ctx, req.NamespacedName, &node); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if ready(&node) {
		return ctrl.Result{}, nil
	}
	var problems []error
	for _, pod := range due {
		err := r.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		if client.IgnoreNotFound(err) != nil {
			problems = append(problems, fmt.Errorf("removing Pod %s/%s from node %s, which is not ready: %w", pod.Namespace, pod.Name, node.Name, err))
		}
	}
	if len(problems) > 0 {
		return reconcile.Result(errors.Join(problems...))
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// due lists the pods of a node whose grace period is over, and tells when the next one's will be (0: none).
func (r *reconciler) due(ctx context.Context, node string) (due []*corev1.Pod, next time.Duration, err error) {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}); err != nil {
		return nil, 0, fmt.Errorf("listing the Pods of node %s: %w", node, err)
	}
	now := r.Clock.Now()
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !leaving(pod) || pod.Spec.NodeName != node {
			continue
		}
		grace := pod.DeletionGracePeriodSeconds
		if grace != nil && *grace == 0 {
			continue // removed already; a finalizer holds it
		}
		// The deletion timestamp is when the grace period ends.
		if left := pod.DeletionTimestamp.Sub(now); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		due = append(due, pod)
	}
	return due, next, nil
}
