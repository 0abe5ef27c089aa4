package tenant

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// ready sums a pass up.
func ready(tenant *authv1beta1.Tenant, err error) metav1.Condition {
	c := metav1.Condition{Type: corev1beta1.ConditionReady, ObservedGeneration: tenant.Generation}
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reconcile.ReasonOf(err), reconcile.MessageOf(err)
	case tenant.Spec.TenantCondition == authv1beta1.TenantDrained:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, authv1beta1.ReasonTenantDrained,
			"the tenant has no rights here, and its pods were stopped; its data is kept"
	case tenant.Spec.TenantCondition == authv1beta1.TenantCordoned:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, authv1beta1.ReasonTenantCordoned, "the tenant keeps what it has and gets nothing new"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, authv1beta1.ReasonReady, "the tenant has its namespace and certificate"
	}
	return c
}

// summarize sets the Ready condition, and tells the user once when its reason changed.
func (r *Reconciler) summarize(s *scope, err error) {
	if err != nil && reconcile.Classify(err) == reconcile.Transient {
		return // it is retried at once: nothing that a user should see
	}
	before := meta.FindStatusCondition(s.tenant.Status.Conditions, corev1beta1.ConditionReady)
	reason := ""
	if before != nil {
		reason = before.Reason
	}
	condition := ready(s.tenant, err)
	conditions.SetStandard(&s.tenant.Status.Conditions, condition)
	if reason == condition.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if err != nil && reconcile.Classify(err) != reconcile.Waiting {
		kind = corev1.EventTypeWarning
	}
	r.events.Eventf(s.tenant, nil, kind, condition.Reason, "Reconcile", "%s", conditions.Bound(condition.Message))
}

// eachItem calls f for each object of a list.
func eachItem(list client.ObjectList, f func(client.Object) error) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return nil
		}
		return f(object)
	})
}
