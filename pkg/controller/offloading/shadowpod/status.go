package shadowpod

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// report writes the status, if it differs from what is there. problem is what the action ended with.
func (r *reconciler) report(ctx context.Context, s *scope, problem error) error {
	if s.ended() {
		return nil
	}
	if problem != nil && reconcile.Classify(problem) == reconcile.Transient {
		return nil
	}
	before := s.shadow.Status.DeepCopy()
	s.moderateVerdicts()
	news := s.judge()
	switch {
	case problem != nil:
		s.ready(metav1.ConditionFalse, reconcile.ReasonOf(problem), reconcile.MessageOf(problem))
	case s.decision.Action == Nothing && s.pod != nil:
		r.observe(s)
	case s.decision.Action == Replace, s.decision.Action == Evict, s.decision.Action == Await:
		s.ready(metav1.ConditionFalse, offloadingv1beta1.ReasonPodTerminated, s.decision.Message)
	}
	if equality.Semantic.DeepEqual(*before, s.shadow.Status) {
		return nil
	}
	old := *s.shadow
	old.Status = *before
	if err := r.Status().Patch(ctx, s.shadow, client.MergeFrom(&old)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ShadowPod %s/%s: %w", s.shadow.Namespace, s.shadow.Name, err)
	}
	r.tell(s, news)
	if class := reconcile.Classify(problem); problem != nil && (class == reconcile.Refused || class == reconcile.Terminal) {
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, reconcile.ReasonOf(problem), "CreatePod", "%s", conditions.Bound(reconcile.MessageOf(problem)))
	}
	return nil
}

// ended tells whether nothing more is said of a ShadowPod than how it ended.
func (s *scope) ended() bool {
	return Terminal(s.shadow.Status.Phase) || !s.shadow.DeletionTimestamp.IsZero() || s.decision.Action == Record || s.decision.Action == Stop
}

// observe copies the phase of a living Pod into a ShadowPod that said otherwise before. One that never had a problem stays
// without status until its end: the Pod itself, which its consumer sees, says all that there is to say.
func (r *reconciler) observe(s *scope) {
	problem := func(c metav1.Condition) bool {
		return c.Type != offloadingv1beta1.KeysRefusedCondition && c.Type != offloadingv1beta1.ReducedCondition
	}
	if phase := s.shadow.Status.Phase; (phase == "" || phase == corev1.PodUnknown) && !slices.ContainsFunc(s.shadow.Status.Conditions, problem) {
		return
	}
	if s.pod.Status.Phase != "" {
		s.shadow.Status.Phase = s.pod.Status.Phase
	}
	s.ready(metav1.ConditionTrue, offloadingv1beta1.ReasonPodCreated, "the pod exists")
}

func (s *scope) terminated() {
	for _, change := range []string{offloadingv1beta1.ChangeRefusedCondition, string(corev1.PodResizePending)} {
		meta.RemoveStatusCondition(&s.shadow.Status.Conditions, change)
	}
	s.ready(metav1.ConditionTrue, offloadingv1beta1.ReasonPodTerminated, s.decision.Message)
}

func (s *scope) ready(status metav1.ConditionStatus, reason, message string) {
	conditions.SetStandard(&s.shadow.Status.Conditions, metav1.Condition{Type: corev1beta1.ConditionReady, Status: status,
		Reason: reason, Message: message, ObservedGeneration: s.shadow.Generation})
}
