package tenant

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

const (
	// precedence of our FlowSchemas: after those of Kubernetes' own components, before those for everybody else.
	precedence = 8000
	// waiting is how many requests of a consumer wait until others of it are answered; more are refused (429).
	waiting = 50
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
		&flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: priority(tenant)}},
		&flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: priority(tenant)}},
	}
	for _, object := range ours {
		if err := r.alive().Remove(ctx, object); err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("removing what bounds Tenant %s/%s: %w", tenant.Namespace, tenant.Name, err)
		}
	}
	return nil
}

// priority is the name of a tenant's FlowSchema and of the priority level that it stands at.
func priority(tenant *authv1beta1.Tenant) string {
	return "liqo-consumer-" + string(tenant.Spec.ClusterID)
}

// slow has the requests of a tenant be served at a priority level of their own. The level comes first: Kubernetes ignores FlowSchemas
// whose level there is not.
func (r *Reconciler) slow(ctx context.Context, s *scope) error {
	return r.alive().All(ctx, renderPriorityLevel(s.tenant, s.namespace, r.options.RequestShares), renderFlowSchema(s.tenant, s.namespace))
}

// alive keeps objects that are in no cache.
func (r *Reconciler) alive() keep.Keeper {
	return keep.Keeper{Client: r.client, Reader: r.live, Reason: authv1beta1.ReasonNotOurs}
}

// priorityMeta names what says how a tenant's requests are served. It goes with the tenant namespace.
func priorityMeta(tenant *authv1beta1.Tenant, namespace *corev1.Namespace) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:   priority(tenant),
		Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: string(tenant.Spec.ClusterID)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID,
		}},
	}
}

// renderPriorityLevel gives a consumer's requests places of their own: whoever does not read its answers, or asks too much, is in nobody
// else's way. Nothing is borrowed from other levels, nor lent. One queue, because all that comes here is of one consumer.
func renderPriorityLevel(tenant *authv1beta1.Tenant, namespace *corev1.Namespace, shares int32) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: priorityMeta(tenant, namespace),
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To(shares),
				LendablePercent:          ptr.To[int32](0),
				BorrowingLimitPercent:    ptr.To[int32](0),
				LimitResponse: flowcontrolv1.LimitResponse{
					Type:    flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: waiting},
				},
			},
		},
	}
}

// renderFlowSchema has all requests of one consumer, whatever identity of it makes them, be served at its priority level.
func renderFlowSchema(tenant *authv1beta1.Tenant, namespace *corev1.Namespace) *flowcontrolv1.FlowSchema {
	id := string(tenant.Spec.ClusterID)
	every := []string{flowcontrolv1.ResourceAll}
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: priorityMeta(tenant, namespace),
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: priority(tenant)},
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
