package shadowpod

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"liqo.io/liqo/pkg/kube/watch"
)

// pods handles the events of Pods: each wakes its ShadowPod, and claims learn which Pods are gone.
type pods struct {
	handler.EventHandler
	claims *claims
}

func (r *reconciler) podEvents() handler.EventHandler {
	return pods{EventHandler: watch.One(ofPod), claims: r.claims}
}

// Delete takes note before the ShadowPod is looked at.
func (p pods) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	if pod, ok := e.Object.(*corev1.Pod); ok && removed(pod) {
		p.claims.left(client.ObjectKeyFromObject(pod), pod.UID)
	}
	p.EventHandler.Delete(ctx, e, q)
}

// removed tells a Pod that its node let go, which was the last thing that kept it, from one that only lost the label by which we see it.
func removed(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return !pod.DeletionTimestamp.IsZero() && grace != nil && *grace == 0 && len(pod.Finalizers) == 0
}

// telling selects the events of Pods after which something else may have to be done: not that one was bound to a node, or that it
// is ready. The end of a Pod, its size and all that a ShadowPod asks for are always looked at.
func telling() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, known := e.ObjectOld.(*corev1.Pod)
		now, ok := e.ObjectNew.(*corev1.Pod)
		if !known || !ok || old.ResourceVersion == now.ResourceVersion {
			return true
		}
		return ends(now) || ends(old) || old.UID != now.UID || old.Status.Phase != now.Status.Phase || !sameSize(&old.Status, &now.Status) ||
			!equality.Semantic.DeepEqual(old.Labels, now.Labels) || !equality.Semantic.DeepEqual(old.Annotations, now.Annotations) ||
			!equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences) || !slices.Equal(old.Finalizers, now.Finalizers) ||
			!sameSpec(old, now)
	}}
}

func ends(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() || Terminal(pod.Status.Phase)
}

// sameSpec tells whether two states of a Pod were asked to be the same, on whatever node.
func sameSpec(old, now *corev1.Pod) bool {
	before, after := old.Spec, now.Spec
	before.NodeName, after.NodeName = "", ""
	return equality.Semantic.DeepEqual(before, after)
}

// sameSize tells whether nothing happened to the size of a Pod.
func sameSize(old, now *corev1.PodStatus) bool {
	return equality.Semantic.DeepEqual(old.AllocatedResources, now.AllocatedResources) && equality.Semantic.DeepEqual(old.Resources, now.Resources) &&
		resizing(old) == resizing(now) &&
		slices.EqualFunc(old.ContainerStatuses, now.ContainerStatuses, sameAmounts) &&
		slices.EqualFunc(old.InitContainerStatuses, now.InitContainerStatuses, sameAmounts)
}

func sameAmounts(old, now corev1.ContainerStatus) bool {
	return old.Name == now.Name && equality.Semantic.DeepEqual(old.AllocatedResources, now.AllocatedResources) &&
		equality.Semantic.DeepEqual(old.Resources, now.Resources)
}

func resizing(status *corev1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizeInProgress })
}
