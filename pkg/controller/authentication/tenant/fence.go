package tenant

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/reconcile"
)

const (
	// PriorityLevel of the requests of all consumers: the chart makes it.
	PriorityLevel = "liqo-consumers"
	// precedence of our FlowSchemas: after those of Kubernetes' own components, before those for everybody else.
	precedence = 8000
)

// tenantObjects is how many objects of each kind that a consumer writes its tenant namespace holds: above what is answered of them, with
// this cluster's own for the other direction.
var tenantObjects = resource.MustParse("128")

// fence bounds what a tenant can do with its rights, before it gets them: how much of the API server's time its requests take, and how
// many objects it makes. Where our kinds may be as new as this process, the first clusters to peer would wait for Kubernetes to know them:
// their objects are counted half a minute later.
func (r *Reconciler) fence(ctx context.Context, s *scope) error {
	if err := r.slow(ctx, s); err != nil {
		return err
	}
	quotas := counting.Quotas{Client: r.client, Live: r.live, Clock: r.options.Clock, NotBefore: r.countFrom}
	again, err := quotas.Ensure(ctx, s.namespace.Name, corev1.ResourceList{
		"count/resourceslices.authentication.liqo.io": tenantObjects, "count/renews.authentication.liqo.io": tenantObjects,
		"count/namespacemaps.offloading.liqo.io": tenantObjects,
	})
	if apierrors.IsForbidden(err) {
		return reconcile.Wait(authv1beta1.ReasonPermissionPending, "waiting for the rights in the tenant namespace", time.Second)
	}
	s.again = again
	return err
}

// unfence removes what fence made, once the tenant has no rights any more. Where the namespace is being deleted, our own rights there may
// have gone before: what is in it goes by itself.
func (r *Reconciler) unfence(ctx context.Context, tenant *authv1beta1.Tenant) error {
	ours := []client.Object{
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Namespace, Name: counting.QuotaName}},
		&flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: flowSchema(tenant)}},
	}
	for _, object := range ours {
		err := r.live.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && object.GetLabels()[corev1beta1.ManagedLabel] == "true" {
			err = r.client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
		}
		if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("removing what bounds Tenant %s/%s: %w", tenant.Namespace, tenant.Name, err)
		}
	}
	return nil
}

// flowSchema is the name of a tenant's FlowSchema.
func flowSchema(tenant *authv1beta1.Tenant) string {
	return "liqo-consumer-" + string(tenant.Spec.ClusterID)
}

// slow keeps the FlowSchema of a tenant.
func (r *Reconciler) slow(ctx context.Context, s *scope) error {
	want := renderFlowSchema(s.tenant, s.namespace)
	live := &flowcontrolv1.FlowSchema{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		err = r.client.Create(ctx, want)
	case err != nil:
	case live.Labels[corev1beta1.ManagedLabel] != "true":
		return reconcile.NotOurs(authv1beta1.ReasonNotOurs, "FlowSchema", client.ObjectKeyFromObject(want))
	case equality.Semantic.DeepEqual(live.Spec, want.Spec) && equality.Semantic.DeepEqual(live.OwnerReferences, want.OwnerReferences):
	default:
		updated := live.DeepCopy()
		updated.Spec, updated.OwnerReferences = want.Spec, want.OwnerReferences
		err = r.client.Update(ctx, updated)
	}
	if err != nil {
		return fmt.Errorf("keeping FlowSchema %s: %w", want.Name, err)
	}
	return nil
}

// renderFlowSchema has all requests of one consumer, whatever identity of it makes them, wait in the same few queues: those of other
// consumers have others, and those of the provider are not of this priority level at all. It goes with the tenant namespace.
func renderFlowSchema(tenant *authv1beta1.Tenant, namespace *corev1.Namespace) *flowcontrolv1.FlowSchema {
	id := string(tenant.Spec.ClusterID)
	every := []string{flowcontrolv1.ResourceAll}
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{
			Name:   flowSchema(tenant),
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: id},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID,
			}},
		},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: PriorityLevel},
			MatchingPrecedence:         precedence,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{
					{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: identity.TenantUser(id)}},
					{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: identity.ConsumerGroup(id)}},
				},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: every, APIGroups: every, Resources: every, ClusterScope: true, Namespaces: every,
				}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: every, NonResourceURLs: every}},
			}},
		},
	}
}
