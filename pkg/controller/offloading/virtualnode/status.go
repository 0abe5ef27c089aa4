package virtualnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// report writes the status, if it differs from what is there. problem is what the phases ended with.
func (r *reconciler) report(ctx context.Context, s *scope, problem error) error {
	before := s.vn.DeepCopy()
	now := r.Clock.Now()
	reason, message := s.aboutNode()
	conditions.Replace(&s.vn.Status.Conditions, []corev1beta1.Condition{
		s.says(offloadingv1beta1.VirtualKubeletCondition, s.kubelet, reasonOf(s.kubelet), ""),
		s.says(offloadingv1beta1.NodeCondition, s.nodeState, reason, message),
	}, now)
	summary := s.summary(problem)
	if reason, message := r.aboutAddresses(s.vn); reason != "" && !s.mapped {
		summary = append(summary, s.says(offloadingv1beta1.AddressesShownCondition, string(corev1.ConditionFalse), reason, message))
	}
	conditions.Replace(&s.vn.Status.Summary, summary, now)
	if problem == nil {
		s.vn.Status.ObservedGeneration = s.vn.Generation
	}
	if !s.vn.DeletionTimestamp.IsZero() && problem == nil || equality.Semantic.DeepEqual(before.Status, s.vn.Status) {
		return nil
	}
	// A cache that is behind would have what was told before told again; the newer version is an event.
	err := r.Status().Patch(ctx, s.vn, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		// Nobody else can tell of it: it is not quiet even if rules forbid it.
		return reconcile.Retry(fmt.Errorf("writing the status of VirtualNode %s: %w", client.ObjectKeyFromObject(s.vn), err))
	}
	r.tell(ctx, before, s.vn)
	s.before = s.vn.DeepCopy()
	return nil
}

// says is a condition of the VirtualNode as it is now.
func (s *scope) says(conditionType, status, reason, message string) corev1beta1.Condition {
	return corev1beta1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: s.vn.Generation}
}

// summary is what Liqo v1 has no conditions for: whether the VirtualNode is ready, and what else was found out about it.
func (s *scope) summary(problem error) []corev1beta1.Condition {
	const yes, no = string(corev1.ConditionTrue), string(corev1.ConditionFalse)
	var all []corev1beta1.Condition
	if s.revoked != "" {
		all = append(all, s.says(offloadingv1beta1.RightsCondition, no, offloadingv1beta1.ReasonRightsRevoked, s.revoked))
	}
	if s.cordoned != "" {
		all = append(all, s.says(offloadingv1beta1.CordonedCondition, yes, offloadingv1beta1.ReasonCordoned, s.cordoned))
	}
	if s.over != "" {
		all = append(all, s.says(offloadingv1beta1.OverCommittedCondition, yes, offloadingv1beta1.ReasonMoreRunsThanIsOffered, s.over))
	}
	if reason, message := aboutLabels(s.vn); reason != "" {
		all = append(all, s.says(offloadingv1beta1.LabelsChangedCondition, yes, reason, message))
	}
	if held := conditionOf(s.node, offloadingv1beta1.RemovalsHeldCondition); held != nil {
		all = append(all, s.says(offloadingv1beta1.RemovalsHeldCondition, string(held.Status), held.Reason, held.Message))
	}
	if problem != nil {
		return append(all, s.says(corev1beta1.ConditionReady, no, reconcile.ReasonOf(problem), reconcile.MessageOf(problem)))
	}
	return append(all, s.says(corev1beta1.ConditionReady, yes, offloadingv1beta1.ReasonVirtualNodeReady, "the virtual kubelet runs and the node is ready"))
}

// aboutLabels is the reason and the message of the condition that says that the provider suggests other labels; empty if it does not.
func aboutLabels(vn *offloadingv1beta1.VirtualNode) (reason, message string) {
	suggested, differs := vn.Annotations[offloadingv1beta1.SuggestedLabelsAnnotation]
	if !differs {
		return "", ""
	}
	return offloadingv1beta1.ReasonLabelsNotApproved, conditions.Bound(fmt.Sprintf(
		"the provider suggests the labels %q in place of %q; to take them, run: kubectl annotate virtualnode -n %s %s --overwrite %s=%q",
		suggested, vn.Annotations[offloadingv1beta1.ProviderLabelsAnnotation], vn.Namespace, vn.Name, offloadingv1beta1.ApprovedLabelsAnnotation, suggested))
}

// aboutAddresses is the reason and the message of the condition that says that pods are without addresses because of their provider; empty
// if they are not.
func (r *reconciler) aboutAddresses(vn *offloadingv1beta1.VirtualNode) (reason, message string) {
	const ranges = offloadingv1beta1.RemotePodCIDRsAnnotation
	if r.HideAddresses || vn.Annotations[ranges] != offloadingv1beta1.NoPodCIDRs {
		return "", ""
	}
	return offloadingv1beta1.ReasonNoPodAddressRange, fmt.Sprintf(
		"cluster %q announced no range that addresses of its pods can be in, so its pods are shown without one, and no Service leads to them from here; "+
			"set ipam.podCIDRs there, then run here: kubectl annotate virtualnode -n %s %s %s-", vn.Spec.ClusterID, vn.Namespace, vn.Name, ranges)
}

// aboutNode is the reason and the message of the Node's condition.
func (s *scope) aboutNode() (reason, message string) {
	unreported := s.nodeState == offloadingv1beta1.StatusCreating && s.kubelet == offloadingv1beta1.StatusRunning && s.node != nil
	if s.nodeState == offloadingv1beta1.StatusNotReady || unreported {
		return offloadingv1beta1.ReasonNodeNotReady, notReady(s.node.Name, nodeReady(s.node))
	}
	return reasonOf(s.nodeState), ""
}

// tell tells by an Event and in the log that a VirtualNode is lost, or is back. What was written before decides whether that is news, so
// a restart does not repeat it.
func (r *reconciler) tell(ctx context.Context, before, vn *offloadingv1beta1.VirtualNode) {
	kind, reason, message := news(conditions.Find(before.Status.All(), corev1beta1.ConditionReady),
		conditions.Find(vn.Status.All(), corev1beta1.ConditionReady))
	if kind == "" || !vn.DeletionTimestamp.IsZero() {
		return
	}
	ctrl.LoggerFrom(ctx).Info("The readiness of a VirtualNode changed", "ready", kind == corev1.EventTypeNormal, "reason", reason, "message", message)
	if r.Events != nil {
		r.Events.Eventf(vn, nil, kind, reason, "Reconcile", "%s", conditions.Bound(message))
	}
}

// news is what an Event has to say about a change of readiness: that what was ready is not, that our rights were taken back, or that it
// is ready again; an empty kind if there is nothing.
func news(was, is *corev1beta1.Condition) (kind, reason, message string) {
	const yes = string(corev1.ConditionTrue)
	switch {
	case was == nil || is == nil || was.Status == is.Status && was.Reason == is.Reason:
		return "", "", ""
	case is.Status == yes:
		return corev1.EventTypeNormal, is.Reason, is.Message
	case was.Status == yes || is.Reason == offloadingv1beta1.ReasonRightsRevoked:
		return corev1.EventTypeWarning, is.Reason, is.Message
	}
	return "", "", ""
}

// reasonOf is the reason of a part's condition.
func reasonOf(status string) string {
	switch status {
	case offloadingv1beta1.StatusRunning:
		return offloadingv1beta1.ReasonVirtualNodeReady
	case offloadingv1beta1.StatusCreating:
		return offloadingv1beta1.ReasonVirtualKubeletStarting
	case offloadingv1beta1.StatusDraining, offloadingv1beta1.StatusDeleting:
		return offloadingv1beta1.ReasonDraining
	default:
		return ""
	}
}

// explain says why the virtual kubelet does not run.
func (r *reconciler) explain(ctx context.Context, s *scope) (string, error) {
	pods, err := r.kubeletPods(ctx, s.vn)
	if err != nil {
		return "", err
	}
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
				return fmt.Sprintf("the virtual kubelet does not run yet: pod %s: %s: %s", pods[i].Name, c.State.Waiting.Reason, c.State.Waiting.Message), nil
			}
		}
		for _, c := range pods[i].Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return fmt.Sprintf("the virtual kubelet does not run yet: pod %s: %s: %s", pods[i].Name, c.Reason, c.Message), nil
			}
		}
	}
	for _, c := range s.deployment.Status.Conditions {
		if c.Type == "ReplicaFailure" && c.Status == corev1.ConditionTrue {
			return "the virtual kubelet's pod cannot be created: " + c.Message, nil
		}
	}
	return "waiting for the virtual kubelet to become ready", nil
}
