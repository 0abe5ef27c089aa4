package gateway

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// report writes the statuses of what the user asked for and of what it was rendered to, if they differ from what is there. problem is what
// the phases ended with.
func (r *reconciler) report(ctx context.Context, s *scope, problem error) error {
	if s.rendered.Object != nil {
		before := s.rendered.DeepCopyObject().(client.Object)
		s.tell(s.rendered.Object, s.rendered.status, problem)
		if err := r.write(ctx, before, s.rendered.Object); err != nil {
			return err
		}
	}
	before := s.gateway.DeepCopyObject().(client.Object)
	if s.rendered.Object != nil {
		*s.gateway.renderedRef = r.reference(r.side.rendered, s.gateway.GetName(), s)
	}
	said := s.tell(s.gateway.Object, s.gateway.status, problem)
	if err := r.write(ctx, before, s.gateway.Object); err != nil {
		return err
	}
	if said != nil && reconcile.Classify(problem) != reconcile.Waiting {
		ctrl.LoggerFrom(ctx).Info("A gateway cannot run as it is asked for", "reason", said.Reason, "message", said.Message)
		r.Events.Eventf(s.gateway.Object, nil, corev1.EventTypeWarning, said.Reason, "Reconcile", "%s", said.Message)
	}
	return nil
}

// tell fills in a status: what is known now, and for the rest what was known before. It returns the condition if it says something new that
// is not good.
func (s *scope) tell(object client.Object, status status, problem error) *metav1.Condition {
	if s.secret != "" {
		*status.secretRef = &corev1.ObjectReference{Kind: "Secret", APIVersion: "v1", Namespace: object.GetNamespace(), Name: s.secret}
	}
	if s.endpoint != nil && status.endpoint != nil {
		*status.endpoint = s.endpoint
	}
	if s.internal != nil {
		*status.internal = s.internal
	}
	if problem != nil && reconcile.Classify(problem) == reconcile.Transient {
		return nil // It is tried again at once: nothing that a user should see.
	}
	ready := metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: object.GetGeneration(),
		Reason: networkingv1beta1.ReasonProvisioned, Message: "the gateway runs",
	}
	if problem != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, reconcile.ReasonOf(problem), conditions.Bound(reconcile.MessageOf(problem))
	}
	before := meta.FindStatusCondition(*status.conditions, corev1beta1.ConditionReady)
	isNew := problem != nil && (before == nil || before.Reason != ready.Reason)
	conditions.SetStandard(status.conditions, ready)
	if !isNew {
		return nil
	}
	return &ready
}

func (r *reconciler) reference(kind, name string, s *scope) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: networkingv1beta1.GroupVersion.String(), Kind: kind, Namespace: s.gateway.GetNamespace(), Name: name}
}

// write patches a status, if it differs.
func (r *reconciler) write(ctx context.Context, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	err := r.Status().Patch(ctx, after, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		// Nobody else can tell of it: it is not quiet even if rules forbid it.
		return reconcile.Retry(fmt.Errorf("writing the status of %T %s: %w", after, client.ObjectKeyFromObject(after), err))
	}
	return nil
}
