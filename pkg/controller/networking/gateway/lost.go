package gateway

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// lostAfter is how long a gateway may be without a ready pod before its last word about the tunnel counts no more. To start again, or on
// another node, takes less.
const lostAfter = 20 * time.Second

// losses takes back what was said of a tunnel where the gateway has no pod that could say otherwise.
type losses struct {
	client.Client
	// pods reads the pods and the Deployments of gateways.
	pods  client.Reader
	clock clock.PassiveClock
}

// registerLosses watches Deployments alone: it does not depend on whether a gateway can be rendered, or on its keys.
func registerLosses(mgr ctrl.Manager, parts cache.Cache, clock clock.PassiveClock) error {
	l := &losses{Client: mgr.GetClient(), pods: parts, clock: clock}
	err := ctrl.NewControllerManagedBy(mgr).Named("gatewaylosses").
		WatchesRawSource(source.Kind(parts, client.Object(&appsv1.Deployment{}), watch.One(ofPart))).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(l)
	if err != nil {
		return fmt.Errorf("registering the controller of lost gateways: %w", err)
	}
	return nil
}

// Reconcile looks at one gateway, again and again while it has no ready pod.
func (l *losses) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	deployment, connection := &appsv1.Deployment{}, &networkingv1beta1.Connection{}
	key := client.ObjectKey{Namespace: req.Namespace, Name: networkingv1beta1.GatewayPrefix + req.Name}
	if err := l.pods.Get(ctx, key, deployment); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	since, lost := lostSince(deployment)
	if !lost {
		return ctrl.Result{}, nil
	}
	if left := lostAfter - l.clock.Since(since); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	var pods corev1.PodList
	mine := client.MatchingLabels{networkingv1beta1.GatewayNameLabel: req.Name}
	if err := l.pods.List(ctx, &pods, client.InNamespace(req.Namespace), mine); err != nil {
		return reconcile.Result(fmt.Errorf("listing the pods of gateway %s: %w", req, err))
	}
	if err := l.Get(ctx, req.NamespacedName, connection); client.IgnoreNotFound(err) != nil {
		return reconcile.Result(fmt.Errorf("reading Connection %s: %w", req, err))
	}
	if isOf(connection, deployment) && outdated(connection, since, pods.Items) {
		if err := l.takeBack(ctx, connection); client.IgnoreNotFound(err) != nil {
			return reconcile.Result(fmt.Errorf("writing the status of Connection %s: %w", req, err))
		}
	}
	return ctrl.Result{RequeueAfter: partRetry}, nil
}

// lostSince tells whether a gateway has no ready pod, and since when.
func lostSince(deployment *appsv1.Deployment) (since time.Time, lost bool) {
	since, lost = deployment.CreationTimestamp.Time, deployment.Status.ReadyReplicas == 0
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			since = c.LastTransitionTime.Time
		}
	}
	return since, lost
}

// isOf tells whether a Connection tells of the tunnel of the gateway that a Deployment runs.
func isOf(connection *networkingv1beta1.Connection, deployment *appsv1.Deployment) bool {
	rendered, of := metav1.GetControllerOf(deployment), connection.Spec.GatewayRef
	return rendered != nil && of.Kind == rendered.Kind && of.Name == rendered.Name
}

// outdated tells whether a Connection tells of the tunnel in the words of a pod that was lost; whether it works or not, nodes know the gateway by
// that pod's address. A pod that lives, though nobody finds it ready, contradicts when this is taken back. That is believed until another pod is
// made in its place.
func outdated(connection *networkingv1beta1.Connection, since time.Time, pods []corev1.Pod) bool {
	for i := range pods {
		if made := pods[i].CreationTimestamp.Time; made.After(since) {
			since = made
		}
	}
	ready := meta.FindStatusCondition(connection.Status.Conditions, corev1beta1.ConditionReady)
	return ready == nil || ready.Status != metav1.ConditionUnknown && !ready.LastTransitionTime.After(since)
}

// takeBack says that nobody knows how the tunnel is, unless the gateway says something meanwhile. That Ready is Unknown, which gateways never
// say, has the time of its transition show when one contradicts.
func (l *losses) takeBack(ctx context.Context, connection *networkingv1beta1.Connection) error {
	after := connection.DeepCopy()
	after.Status.Value = networkingv1beta1.ConnectionError
	conditions.SetStandard(&after.Status.Conditions, metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionUnknown, ObservedGeneration: connection.Generation,
		Reason: networkingv1beta1.ReasonGatewayPodPending, LastTransitionTime: metav1.NewTime(l.clock.Now()),
		Message: "No pod of this cluster's gateway is ready, so nobody asks the other end. Condition Ready of the gateway says why.",
	})
	ctrl.LoggerFrom(ctx).Info("A gateway has no ready pod: what was said of its tunnel counts no more")
	return l.Status().Patch(ctx, after, client.MergeFromWithOptions(connection, client.MergeFromWithOptimisticLock{}))
}
