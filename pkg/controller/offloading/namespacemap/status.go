package namespacemap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/watch"
)

// report writes the answers into the map's status, if they differ from what is there.
func (r *reconciler) report(ctx context.Context, s *scope) error {
	for local, answer := range s.answers {
		answer.Message = conditions.Bound(answer.Message)
		s.answers[local] = answer
	}
	before := s.nm.DeepCopy()
	s.nm.Status.CurrentMapping = s.answers
	if len(s.answers) == 0 {
		s.nm.Status.CurrentMapping = nil
	}
	conditions.SetStandard(&s.nm.Status.Conditions, s.ready())
	if equality.Semantic.DeepEqual(before.Status, s.nm.Status) {
		return nil
	}
	patch := client.MergeFrom(before)
	for local := range before.Status.CurrentMapping {
		if _, stays := s.answers[local]; !stays {
			// What is taken away was given in this very state, not in one since.
			patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		}
	}
	if err := r.Status().Patch(ctx, s.nm, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of NamespaceMap %s: %w", keyOf(s.nm), err)
	}
	s.before = s.nm.DeepCopy()
	return nil
}

// ready sums the answers up.
func (s *scope) ready() metav1.Condition {
	ready := metav1.Condition{Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: s.nm.Generation,
		Reason: offloadingv1beta1.ReasonMappingReady, Message: fmt.Sprintf("%d namespaces are in place", len(s.answers))}
	for _, local := range slices.Sorted(maps.Keys(s.answers)) {
		if answer := s.answers[local]; answer.Phase != offloadingv1beta1.MappingAccepted {
			ready.Status, ready.Reason = metav1.ConditionFalse, answer.Reason
			ready.Message = fmt.Sprintf("namespace %s: %s", local, answer.Message)
			return ready
		}
	}
	return ready
}

// patch writes the map's metadata.
func (r *reconciler) patch(ctx context.Context, s *scope) error {
	if err := r.Patch(ctx, s.nm, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizers of NamespaceMap %s: %w", keyOf(s.nm), err)
	}
	s.before = s.nm.DeepCopy()
	return nil
}

// blockers says, in the namespace controller's words, what keeps a namespace from going.
func blockers(ns *corev1.Namespace) string {
	var found []string
	for _, c := range ns.Status.Conditions {
		remains := c.Type == corev1.NamespaceContentRemaining || c.Type == corev1.NamespaceFinalizersRemaining
		failed := c.Type == corev1.NamespaceDeletionContentFailure || c.Type == corev1.NamespaceDeletionDiscoveryFailure ||
			c.Type == corev1.NamespaceDeletionGVParsingFailure
		if (remains || failed) && c.Status == corev1.ConditionTrue {
			found = append(found, c.Message)
		}
	}
	if len(found) == 0 {
		return "its content is being deleted"
	}
	return strings.Join(found, "; ")
}

// ofNamespace finds the maps that a namespace matters to: the one that it belongs to, or those that want its name.
func (r *reconciler) ofNamespace(ctx context.Context, o client.Object) []ctrl.Request {
	if owner := ofAnnotation(o); owner.Name != "" {
		return []ctrl.Request{{NamespacedName: owner}}
	}
	return watch.Requests(ctx, r.Client, &offloadingv1beta1.NamespaceMapList{}, replicated, watch.If(func(nm *offloadingv1beta1.NamespaceMap) bool {
		return nm.Namespace == o.GetName() || slices.Contains(slices.Collect(maps.Values(nm.Spec.DesiredMapping)), o.GetName())
	}))
}

// replicated selects what a peer made.
var replicated = client.MatchingLabels{corev1beta1.ReplicatedLabel: "true"}

// ofAnnotation finds the map that an object was made for.
func ofAnnotation(o client.Object) client.ObjectKey {
	namespace, name, _ := strings.Cut(o.GetAnnotations()[offloadingv1beta1.ManagedByNamespaceMapAnnotation], "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// ofTenant selects the maps of a tenant.
func ofTenant(o client.Object) []client.ListOption {
	return []client.ListOption{client.InNamespace(o.GetNamespace()), replicated}
}
