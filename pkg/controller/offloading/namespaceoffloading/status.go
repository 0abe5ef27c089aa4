package namespaceoffloading

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/placement"
)

// report writes the status, if it differs from what is there. problem is what the phases ended with.
func (r *reconciler) report(ctx context.Context, s *scope, problem error) error {
	before := s.nso.DeepCopy()
	deleting := !s.nso.DeletionTimestamp.IsZero()
	status := &s.nso.Status
	if s.selected != nil || deleting {
		status.RemoteNamespacesConditions = r.twins(s)
		status.OffloadingPhase = placement.Phase(deleting, status.RemoteNamespacesConditions)
		status.ObservedGeneration = s.nso.Generation
	}
	if s.twin != "" {
		status.RemoteNamespaceName = s.twin
	}
	conditions.SetStandard(&status.Conditions, s.ready(problem))
	if equality.Semantic.DeepEqual(before.Status, s.nso.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, s.nso, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of NamespaceOffloading %s: %w", s.nso.Namespace, err)
	}
	s.before = s.nso.DeepCopy()
	return nil
}

// twins are the conditions of each cluster's twin. Times move only when a status does.
func (r *reconciler) twins(s *scope) map[corev1beta1.ClusterID]offloadingv1beta1.RemoteNamespaceConditions {
	clusters := map[corev1beta1.ClusterID]bool{}
	maps.Copy(clusters, s.selected)
	for cluster := range s.staying {
		clusters[cluster] = clusters[cluster] || s.stays(cluster)
	}
	for cluster, nm := range s.maps {
		if _, there := nm.Status.CurrentMapping[s.nso.Namespace]; there && !clusters[cluster] {
			clusters[cluster] = false
		}
	}
	name := s.twin
	if name == "" {
		name = s.nso.Status.RemoteNamespaceName
	}
	twins := map[corev1beta1.ClusterID]offloadingv1beta1.RemoteNamespaceConditions{}
	for cluster, required := range clusters {
		var answer *offloadingv1beta1.RemoteNamespaceStatus
		if nm := s.maps[cluster]; nm != nil {
			if a, there := nm.Status.CurrentMapping[s.nso.Namespace]; there {
				answer = &a
			}
		}
		list := placement.TwinConditions(required, name, answer)
		for i := range list {
			list[i].LastTransitionTime = r.since(s.before.Status.RemoteNamespacesConditions[cluster], list[i])
		}
		twins[cluster] = list
	}
	if len(twins) == 0 {
		return nil
	}
	return twins
}

func (r *reconciler) since(old offloadingv1beta1.RemoteNamespaceConditions, c offloadingv1beta1.RemoteNamespaceCondition) metav1.Time {
	for i := range old {
		if old[i].Type == c.Type && old[i].Status == c.Status {
			return old[i].LastTransitionTime
		}
	}
	return metav1.NewTime(r.Clock.Now()).Rfc3339Copy()
}

// ready sums the object up.
func (s *scope) ready(problem error) metav1.Condition {
	c := metav1.Condition{Type: corev1beta1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: s.nso.Generation}
	blockers := placement.Blockers(s.nso.Status.RemoteNamespacesConditions)
	switch {
	case problem != nil && len(blockers) == 0:
		c.Reason, c.Message = reconcile.ReasonOf(problem), bounded(reconcile.MessageOf(problem))
	case s.nso.Status.OffloadingPhase == offloadingv1beta1.TerminatingOffloadingPhaseType:
		c.Reason, c.Message = offloadingv1beta1.ReasonTwinTerminating, "the offloading is being undone"
	case s.nso.Status.OffloadingPhase == offloadingv1beta1.NoClusterSelectedOffloadingPhaseType:
		c.Reason = offloadingv1beta1.ReasonNoClusterSelected
		c.Message = "the clusterSelector selects no virtual node; change it, or peer with a cluster that it selects"
	case s.nso.Status.OffloadingPhase == offloadingv1beta1.ReadyOffloadingPhaseType:
		c.Status, c.Reason = metav1.ConditionTrue, offloadingv1beta1.ReasonOffloadingReady
		c.Message = "the namespace is extended to all selected clusters"
		if left := s.draining(); len(left) > 0 {
			c.Message += bounded("; it leaves " + strings.Join(left, ", ") + " once the virtual nodes there are drained")
		}
	default:
		c.Reason, c.Message = firstReason(s.nso.Status.RemoteNamespacesConditions), bounded(strings.Join(blockers, "; "))
	}
	return c
}

// draining are the clusters that the namespace leaves, in order.
func (s *scope) draining() []string {
	var left []string
	for cluster := range s.staying {
		if s.stays(cluster) {
			left = append(left, string(cluster))
		}
	}
	slices.Sort(left)
	return left
}

// firstReason is the reason of a required twin that is not ready; a failure comes before a wait.
func firstReason(twins map[corev1beta1.ClusterID]offloadingv1beta1.RemoteNamespaceConditions) string {
	reason := offloadingv1beta1.ReasonTwinPending
	for _, list := range twins {
		for _, c := range list {
			if c.Type == offloadingv1beta1.RemoteNamespaceReadyCondition && c.Status != corev1.ConditionTrue &&
				c.Reason != offloadingv1beta1.ReasonTwinPending && (reason == offloadingv1beta1.ReasonTwinPending || c.Reason < reason) {
				reason = c.Reason
			}
		}
	}
	return reason
}

func bounded(message string) string { return conditions.Bound(message) }

// patch writes the object's metadata.
func (r *reconciler) patch(ctx context.Context, s *scope) error {
	if err := r.Patch(ctx, s.nso, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizers of NamespaceOffloading %s: %w", s.nso.Namespace, err)
	}
	s.before = s.nso.DeepCopy()
	return nil
}
