package tenant

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
)

// unanswered is how long a request that was not answered yet is waited for before it is looked again whether its consumer is silent.
const unanswered = time.Minute

// refusals of a Renew are an answer: what it asks for is not given, however long it asks.
var refusals = []string{authv1beta1.ReasonRenewalNotSigned, authv1beta1.ReasonInvalidRenew, authv1beta1.ReasonInvalidCSR}

// SilentFrom is when a consumer counts as silent: so long after it asked for a certificate last, and not before the answer to that expired. Until
// then it may be well, and have no reason to ask. The time is zero if nothing is known of it.
func SilentFrom(last certificate.Demand, silentAfter time.Duration) time.Time {
	if last.At.IsZero() {
		return time.Time{}
	}
	from := last.At.Add(silentAfter)
	if from.Before(last.Until) {
		return last.Until
	}
	return from
}

// Asks tells whether one of a tenant's Renews waits for an answer. As long as that is so, its consumer is not silent: it is this cluster that
// has been, such as one whose controllers were away for longer than a certificate lives.
func Asks(renews []authv1beta1.Renew) bool {
	return slices.ContainsFunc(renews, func(renew authv1beta1.Renew) bool {
		ready := meta.FindStatusCondition(renew.Status.Conditions, corev1beta1.ConditionReady)
		answered := ready != nil && ready.ObservedGeneration >= renew.Generation &&
			(ready.Status == metav1.ConditionTrue || slices.Contains(refusals, ready.Reason))
		return !answered && renew.DeletionTimestamp.IsZero()
	})
}

// see says whether the consumer gives signs of life. What earlier releases of the consumer ask for is recorded elsewhere, and
// nothing is said of them.
func (r *Reconciler) see(ctx context.Context, s *scope, last certificate.Demand) error {
	from, now := SilentFrom(last, r.options.SilentAfter), r.options.Clock.Now()
	if identity.AccessOf(&s.tenant.Spec).Peering == "" || from.IsZero() {
		meta.RemoveStatusCondition(&s.tenant.Status.Conditions, authv1beta1.ConsumerSeenCondition)
		return nil
	}
	seen := metav1.Condition{
		Type: authv1beta1.ConsumerSeenCondition, Status: metav1.ConditionTrue, Reason: authv1beta1.ReasonConsumerSeen, ObservedGeneration: s.tenant.Generation,
		Message: fmt.Sprintf("the consumer asked for a certificate at %s", last.At.Format(time.RFC3339)),
	}
	if now.Before(from) {
		s.lookAgain(from.Sub(now))
		r.note(s, seen)
		return nil
	}
	renews := &authv1beta1.RenewList{}
	if err := r.client.List(ctx, renews, client.InNamespace(s.tenant.Namespace), client.MatchingLabels{corev1beta1.ReplicatedLabel: "true"}); err != nil {
		return fmt.Errorf("listing Renews in Namespace %s: %w", s.tenant.Namespace, err)
	}
	if Asks(renews.Items) {
		s.lookAgain(unanswered)
		return nil
	}
	seen.Status, seen.Reason = metav1.ConditionFalse, authv1beta1.ReasonConsumerSilent
	seen.Message = fmt.Sprintf("the consumer has asked for no certificate since %s, and its last one expired at %s: "+
		"it can do nothing here until it is peered again. What it has here stays; if it will never come back: liqoctl unpeer --force %s",
		last.At.Format(time.RFC3339), last.Until.Format(time.RFC3339), s.tenant.Spec.ClusterID)
	r.note(s, seen)
	return nil
}

// note sets the condition, and tells the user once when the consumer falls silent, and when it is back.
func (r *Reconciler) note(s *scope, seen metav1.Condition) {
	before := meta.FindStatusCondition(s.tenant.Status.Conditions, seen.Type)
	was := before != nil && before.Status == metav1.ConditionFalse
	conditions.SetStandard(&s.tenant.Status.Conditions, seen)
	kind, silent := corev1.EventTypeNormal, seen.Status == metav1.ConditionFalse
	if silent {
		kind = corev1.EventTypeWarning
	}
	if was != silent {
		r.events.Eventf(s.tenant, nil, kind, seen.Reason, "Observe", "%s", conditions.Bound(seen.Message))
	}
}
