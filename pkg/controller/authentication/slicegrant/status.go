package slicegrant

import (
	corev1 "k8s.io/api/core/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// summarize sets the conditions from the outcomes, and tells the user once about each that changed.
func (r *Reconciler) summarize(s *scope, err error) {
	now, list, summary := r.options.Clock.Now(), &s.slice.Status.Conditions, &s.slice.Status.Summary
	// Earlier versions had these among the conditions.
	for _, former := range []string{corev1beta1.ConditionReady, authv1beta1.CordonedCondition} {
		conditions.Remove(list, former)
	}
	for _, part := range []struct {
		conditionType string
		outcome
	}{{authv1beta1.AuthenticationCondition, s.authentication}, {authv1beta1.ResourcesCondition, s.resources}} {
		o := part.outcome
		if o.status == "" {
			continue
		}
		before := conditions.Find(*list, part.conditionType)
		changed := before == nil || before.Reason != o.reason
		conditions.Set(list, corev1beta1.Condition{
			Type: part.conditionType, Status: o.status, Reason: o.reason, Message: o.message, ObservedGeneration: s.slice.Generation,
		}, now)
		if changed {
			kind := corev1.EventTypeNormal
			if o.status == authv1beta1.Denied {
				kind = corev1.EventTypeWarning
			}
			r.events.Eventf(s.slice, nil, kind, o.reason, "Answer", "%s", conditions.Bound(o.message))
		}
	}
	for conditionType, o := range map[string]*outcome{
		authv1beta1.CordonedCondition: s.cordoned, authv1beta1.OverCommittedCondition: s.over, authv1beta1.PluginFailedCondition: s.plugin,
	} {
		switch {
		case o == nil:
		case o.status == "":
			conditions.Remove(summary, conditionType)
		default:
			conditions.Set(summary, corev1beta1.Condition{
				Type: conditionType, Status: o.status, Reason: o.reason, Message: o.message, ObservedGeneration: s.slice.Generation,
			}, now)
		}
	}
	if err != nil && (reconcile.Classify(err) == reconcile.Transient || s.keeps(err)) {
		return // it is retried at once: nothing that a user should see
	}
	conditions.Set(summary, ready(s.slice, err), now)
}

// keeps tells whether an error is only that this cluster is not counted yet, as after each start of the controller manager, and the slice holds what
// it was granted before that. It is granted the same or less when all is counted; until then nothing changed for the consumer.
func (s *scope) keeps(err error) bool {
	return reconcile.ReasonOf(err) == authv1beta1.ReasonCountingResources && s.quota != nil &&
		conditions.Is(s.slice.Status.Conditions, authv1beta1.ResourcesCondition, authv1beta1.Accepted)
}

// ready sums up: both parts are accepted, or which is not.
func ready(slice *authv1beta1.ResourceSlice, err error) corev1beta1.Condition {
	c := corev1beta1.Condition{Type: corev1beta1.ConditionReady, ObservedGeneration: slice.Generation}
	if err != nil {
		c.Status, c.Reason, c.Message = "False", reconcile.ReasonOf(err), reconcile.MessageOf(err)
		return c
	}
	for _, part := range []string{authv1beta1.AuthenticationCondition, authv1beta1.ResourcesCondition} {
		condition := conditions.Find(slice.Status.Conditions, part)
		switch {
		case condition == nil:
			c.Status, c.Reason, c.Message = "False", authv1beta1.ReasonWaitingForProvider, "the slice is not answered yet: "+part
			return c
		case condition.Status != authv1beta1.Accepted:
			c.Status, c.Reason, c.Message = "False", condition.Reason, condition.Message
			return c
		}
	}
	c.Status, c.Reason, c.Message = "True", authv1beta1.ReasonReady, "the slice has its certificate and its resources"
	return c
}
