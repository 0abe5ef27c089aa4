package slicegrant

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// Limits are those of a tenant: what its Tenant sets, else what the policy does. How many slices are answered is always set.
func Limits(tenant *authv1beta1.Tenant, policy authv1beta1.TenantLimits) authv1beta1.TenantLimits {
	limits := authv1beta1.TenantLimits{Resources: maps.Clone(policy.Resources), ResourceSlices: policy.ResourceSlices}
	if limits.ResourceSlices == nil {
		limits.ResourceSlices = new(int32)
		*limits.ResourceSlices = DefaultResourceSlices
	}
	if own := tenant.Spec.Limits; own != nil {
		if limits.Resources == nil {
			limits.Resources = corev1.ResourceList{}
		}
		maps.Copy(limits.Resources, own.Resources)
		if own.ResourceSlices != nil {
			limits.ResourceSlices = own.ResourceSlices
		}
	}
	return limits
}

// WhyTooMany returns why a slice is not answered although it could be, empty if it is: its tenant has as many as it may have that were
// answered before, or are older. A slice that was answered stays so.
func WhyTooMany(slice *authv1beta1.ResourceSlice, all []authv1beta1.ResourceSlice, limit int32) string {
	if answered(slice) {
		return ""
	}
	before := int32(0)
	for i := range all {
		other := &all[i]
		if other.Name != slice.Name && IsReplicated(other) && (answered(other) || counting.Older(other, slice)) {
			before++
		}
	}
	if before < limit {
		return ""
	}
	return fmt.Sprintf("the provider answers %d ResourceSlices of this consumer and has answered them: delete one, or ask its administrator for more", limit)
}

func answered(slice *authv1beta1.ResourceSlice) bool {
	return conditions.Is(slice.Status.Conditions, authv1beta1.AuthenticationCondition, authv1beta1.Accepted)
}

// tooMany returns why a slice is not answered, by the slices that the API server has now.
func (r *Reconciler) tooMany(ctx context.Context, s *scope) (string, error) {
	if answered(s.slice) {
		return "", nil
	}
	list := &authv1beta1.ResourceSliceList{}
	if err := r.live.List(ctx, list, client.InNamespace(s.slice.Namespace), client.MatchingLabels{corev1beta1.ReplicatedLabel: "true"}); err != nil {
		return "", fmt.Errorf("listing ResourceSlices in Namespace %s: %w", s.slice.Namespace, err)
	}
	return WhyTooMany(s.slice, list.Items, *Limits(s.tenant, r.options.Policy.TenantLimits).ResourceSlices), nil
}

// bound returns what is granted, and what is said about it: what is asked for by quantity, up to the ceiling, and a share of what is free of
// all else.
func (r *Reconciler) bound(ctx context.Context, s *scope, cordoned bool) (granted corev1.ResourceList, message string, err error) {
	if !r.options.Supply.Count(ctx) {
		return nil, "", reconcile.Wait(authv1beta1.ReasonCountingResources, "waiting until the nodes and pods of this cluster are counted", time.Second)
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("listing Nodes: %w", err)
	}
	limits, held := Limits(s.tenant, r.options.Policy.TenantLimits), s.held()
	ceiling := capacity.Ceiling{Set: limits.Resources, Nodes: r.options.Supply.NodesHave(nodes.Items, nil)}
	at, err := r.chosen(s, nodes.Items)
	if err != nil {
		return nil, "", err
	}
	s.selector = at.nodes
	consumer := string(s.tenant.Spec.ClusterID)
	of := supply.Of(consumer, identity.SliceUser(consumer, s.slice.Name))
	basis, err := r.basis(ctx, s, of, ceiling, at)
	if err != nil {
		return nil, "", err
	}
	wish := capacity.Wish{Requested: at.possible(ceiling.Possible(basis.named)), Percentages: basis.percentages, Nodes: at.nodes}
	offer, err := r.options.Supply.Offer(client.ObjectKeyFromObject(s.slice), of, wish, held)
	if err != nil {
		return nil, "", reconcile.Refuse(authv1beta1.ReasonInvalidSlice, err)
	}
	s.nodes = &offer.Nodes
	wanted := basis.narrow(Grant(offer.Resources, held, cordoned))
	if granted, err = bounded(ctx, r.client, s, ceiling, at, wanted); err != nil {
		return nil, "", err
	}
	if len(capacity.Less(held, granted)) > 0 {
		// The cache may not show yet what another slice was granted a moment ago.
		if granted, err = bounded(ctx, r.live, s, ceiling, at, wanted); err != nil {
			return nil, "", err
		}
		if r.options.Policy.Exclusive {
			if err := r.exclusively(ctx, s, at, granted, held, offer.Running); err != nil {
				return nil, "", err
			}
		}
	}
	s.shown = shown(granted, offer)
	s.over = overCommitted(offer.Over)
	return granted, basis.said(granted), nil
}

// shown is what the consumer sees of a grant: what runs at least, whatever bounds the grant, so that nothing new is sent. The offer says by how
// much that is more. The grant itself is what is enforced.
func shown(granted corev1.ResourceList, offer capacity.Offer) corev1.ResourceList {
	seen := granted.DeepCopy()
	for name, running := range offer.Running {
		if has := seen[name]; has.Cmp(running) < 0 {
			more := running.DeepCopy()
			more.Sub(has)
			seen[name], offer.Over[name] = running, more
		}
	}
	return seen
}

// bounded is what of a wanted grant is left beside those of the tenant's other slices: of all that it may have, and of the nodes that it is for.
func bounded(ctx context.Context, reader client.Reader, s *scope, ceiling capacity.Ceiling, at chosen,
	wanted corev1.ResourceList,
) (corev1.ResourceList, error) {
	others, there, err := granting(ctx, reader, s, at, s.slice.Namespace)
	if err != nil {
		return nil, err
	}
	granted := ceiling.Bound(wanted, s.held(), others)
	if len(at.nodes) > 0 {
		granted = capacity.Ceiling{Nodes: at.have}.Bound(granted, s.held(), there)
	}
	return granted, nil
}

// exclusively leaves of a grant what no other Quota of this cluster holds: who is to get less may not have got it yet. What runs stays, and
// so does what was held before and is still offered.
func (r *Reconciler) exclusively(ctx context.Context, s *scope, at chosen, granted, held, running corev1.ResourceList) error {
	others, there, err := granting(ctx, r.live, s, at, metav1.NamespaceAll)
	if err != nil {
		return err
	}
	room, roomThere := r.options.Supply.Room(nil), r.options.Supply.Room(at.nodes)
	for name, quantity := range granted {
		left, leftThere := room[name].DeepCopy(), roomThere[name].DeepCopy()
		left.Sub(others[name])
		if leftThere.Sub(there[name]); len(at.nodes) > 0 && leftThere.Cmp(left) < 0 {
			left = leftThere
		}
		for _, least := range []resource.Quantity{running[name], held[name], {}} {
			if left.Cmp(least) < 0 {
				left = least.DeepCopy()
			}
		}
		if quantity.Cmp(left) > 0 {
			granted[name] = left
		}
	}
	return nil
}

// held is what the slice was granted before.
func (s *scope) held() corev1.ResourceList {
	if s.quota == nil {
		return nil
	}
	return s.quota.Spec.Resources
}

// granting returns what the Quotas of a namespace but the slice's own hold, those of slices that are gone and whose pods are not included;
// there are those for the nodes that were chosen, or some of them.
func granting(ctx context.Context, reader client.Reader, s *scope, at chosen, namespace string) (others, there corev1.ResourceList, err error) {
	list := &offloadingv1beta1.QuotaList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{corev1beta1.ManagedLabel: "true"}); err != nil {
		return nil, nil, fmt.Errorf("listing the Quotas beside that of ResourceSlice %s/%s: %w", s.slice.Namespace, s.slice.Name, err)
	}
	own := QuotaName(string(s.tenant.Spec.ClusterID), s.slice.Name)
	for i := range list.Items {
		quota := &list.Items[i]
		if quota.Name == own {
			continue
		}
		others = capacity.Sum(others, quota.Spec.Resources)
		if nodes, err := capacity.ParseNodes(quota.Annotations[authv1beta1.NodeSelectorAnnotation]); err == nil && len(nodes) > 0 && at.all(nodes) {
			there = capacity.Sum(there, quota.Spec.Resources)
		}
	}
	return others, there, nil
}

// roomChanged selects the changes of a Node that change how much this cluster has.
func roomChanged(offers *supply.Supply) predicate.Predicate {
	return watch.Changed(func(node *corev1.Node) any {
		if !offers.TakesPods(node) {
			return nil
		}
		return []any{node.Status.Allocatable, node.Labels}
	})
}
