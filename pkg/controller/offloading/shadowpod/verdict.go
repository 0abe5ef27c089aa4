package shadowpod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// verdict is what one pass found out about a change of a Pod that runs. While the change is refused a condition of the ShadowPod
// says so: its consumer sees it, and whoever starts anew knows that it was told.
type verdict struct {
	// condition is the type of the condition.
	condition string
	// reason and message of the condition; without a message nothing is refused.
	reason, message string
	// event and action of the Event that tells it.
	event, action string
}

// changeVerdict is the verdict on ephemeral containers, those of them that were refused, and on all other changes but the size.
func (s *scope) changeVerdict(refused []string) {
	v := verdict{condition: offloadingv1beta1.ChangeRefusedCondition, reason: offloadingv1beta1.ReasonDebugFailed,
		message: strings.Join(slices.Concat(s.refused, refused), "; "), event: offloadingv1beta1.ReasonDebugFailed, action: "AddEphemeralContainer"}
	if len(s.refused) > 0 {
		v.reason, v.event, v.action = s.why, s.why, "ChangePod"
	}
	s.verdicts = append(s.verdicts, v)
}

// sizeVerdict is the verdict on another size: why it was refused, nil if it was not.
func (s *scope) sizeVerdict(refused error) {
	v := verdict{condition: string(corev1.PodResizePending), event: offloadingv1beta1.ReasonResizeFailed, action: "Resize"}
	if refused != nil {
		v.message = refused.Error()
		v.reason = reflection.WhyResizePending(reconcile.ReasonOf(refused), v.message)
	}
	s.verdicts = append(s.verdicts, v)
}

// judge brings the conditions in step with the verdicts of this pass, and returns those that are news. What was not looked at stays.
func (s *scope) judge() []verdict {
	var news []verdict
	list := &s.shadow.Status.Conditions
	for _, v := range s.verdicts {
		if v.message == "" {
			meta.RemoveStatusCondition(list, v.condition)
			continue
		}
		old := meta.FindStatusCondition(*list, v.condition)
		if old == nil || old.Reason != v.reason || old.Message != conditions.Bound(v.message) {
			news = append(news, v)
		}
		conditions.SetStandard(list, metav1.Condition{Type: v.condition, Status: metav1.ConditionTrue,
			Reason: v.reason, Message: v.message, ObservedGeneration: s.shadow.Generation})
	}
	return news
}

// tell tells the user of the ShadowPod what was refused.
func (r *reconciler) tell(s *scope, news []verdict) {
	for _, v := range news {
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, v.event, v.action, "%s", conditions.Bound(v.message))
	}
}

// moderate takes from the ShadowPod of a pass what its Pod does without: all that follows goes by the rest.
func (s *scope) moderate(o *Options) {
	if gates, gated := s.shadow.Annotations[offloadingv1beta1.OpenGatesAnnotation]; gated {
		s.gates = &gates
	}
	s.shadow.Labels, s.shadow.Annotations, s.lacks = o.Keys.Allowed(podKeys(s.shadow))
	if o.Reduce == nil {
		return
	}
	var spec *corev1.PodSpec
	if spec, s.reduced = o.Reduce(&s.shadow.Spec.Pod); s.reduced != "" {
		s.shadow.Spec.Pod = *spec
	}
}

// moderateVerdicts are the verdicts on what the Pod does without.
func (s *scope) moderateVerdicts() {
	s.verdicts = append(s.verdicts,
		verdict{condition: offloadingv1beta1.KeysRefusedCondition, reason: offloadingv1beta1.ReasonKeysRefused,
			message: s.lacks, event: offloadingv1beta1.ReasonKeysRefused, action: "ChangePod"},
		verdict{condition: offloadingv1beta1.ReducedCondition, reason: offloadingv1beta1.ReasonPartiallyReflected,
			message: s.reduced, event: offloadingv1beta1.ReasonPartiallyReflected, action: "ChangePod"})
}
