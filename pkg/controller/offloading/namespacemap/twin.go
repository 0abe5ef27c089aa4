package namespacemap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

const (
	// managerBinding gives this controller its rights in a twin.
	managerBinding = "liqo-controller-manager"
	// propagation is how long the API server may take to see a new RoleBinding.
	propagation = 30 * time.Second
)

// labels of every twin of a tenant.
func (r *reconciler) labels(tenant corev1beta1.ClusterID) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, r.Labels)
	labels[corev1beta1.ManagedLabel] = "true"
	labels[corev1beta1.RemoteClusterIDLabel] = string(tenant)
	return labels
}

// create makes a new twin, if the tenant may have new ones.
func (r *reconciler) create(ctx context.Context, s *scope, local, twin string) (*corev1.Namespace, error) {
	switch s.condition {
	case authv1beta1.TenantActive:
	case authv1beta1.TenantCordoned, authv1beta1.TenantDrained:
		return nil, reconcile.Refuse(offloadingv1beta1.ReasonCordoned, fmt.Errorf("the provider gives this consumer nothing new: its tenant is %s", s.condition))
	default:
		return nil, reconcile.Refuse(authv1beta1.ReasonTenantMissing, fmt.Errorf("the provider has no Tenant for this consumer any more; peer again"))
	}
	if s.older != "" {
		return nil, reconcile.Refuse(offloadingv1beta1.ReasonNamespaceLimit,
			fmt.Errorf("the provider makes namespaces for one NamespaceMap of a consumer, and it has NamespaceMap %s; ask for them there", s.older))
	}
	annotations := s.marks(local)
	annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] = keyOf(s.nm)
	annotations[offloadingv1beta1.OriginalNameAnnotation] = local
	annotations[corev1beta1.OriginUIDAnnotation] = string(s.nm.UID)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: twin, Labels: r.labels(s.tenant), Annotations: annotations}}
	err := r.Create(ctx, ns)
	if apierrors.IsAlreadyExists(err) {
		// Either ours and not in the cache yet, or somebody else's: the live object tells.
		if err := r.Live.Get(ctx, client.ObjectKey{Name: twin}, ns); err != nil {
			return nil, fmt.Errorf("reading Namespace %s: %w", twin, err)
		}
		if !isTwinOf(ns, s.nm) {
			return nil, conflict(ns, s.nm)
		}
		return ns, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating Namespace %s: %w", twin, err)
	}
	return ns, nil
}

// relabel restores the labels of a twin, and its marks.
func (r *reconciler) relabel(ctx context.Context, s *scope, ns *corev1.Namespace, local string) error {
	changed := ns.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	maps.Copy(changed.Labels, r.labels(s.tenant))
	maps.Copy(changed.Annotations, s.marks(local))
	if equality.Semantic.DeepEqual(ns, changed) {
		return nil
	}
	if err := r.Patch(ctx, changed, client.MergeFrom(ns)); err != nil {
		return fmt.Errorf("restoring the labels of Namespace %s: %w", ns.Name, err)
	}
	return nil
}

// furnish puts into a twin what belongs there: our rights, the limits, the bounds of its network, and last the consumer's rights.
func (r *reconciler) furnish(ctx context.Context, s *scope, ns *corev1.Namespace) error {
	ours := binding.New(ns.Name, managerBinding, offloadingv1beta1.ManagerTwinClusterRole, r.Manager)
	ours.Annotations = map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: keyOf(s.nm)}
	if err := binding.Keeper(r.Client).All(ctx, ours); err != nil {
		return err
	}
	if err := r.limit(ctx, s, ns); err != nil {
		return err
	}
	if err := r.isolate(ctx, s, ns); err != nil {
		return err
	}
	// Without a Tenant nobody knows which certificates are the consumer's: the rights stay until the twin goes.
	if s.access == nil {
		return nil
	}
	return binding.Keeper(r.Client).All(ctx, s.rights(ns.Name))
}

// rights are those of the consumer's certificates of the present peering in a twin.
func (s *scope) rights(twin string) *rbacv1.RoleBinding {
	rights := binding.New(twin, offloadingv1beta1.RemoteClusterRole, offloadingv1beta1.RemoteClusterRole, s.access.SliceSubjects()...)
	rights.Annotations = map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: keyOf(s.nm)}
	return rights
}

// keepRights gives the rights in all twins that there are to the present peering, or to nobody if it was revoked, before anything else: also in
// those that are to go.
func (r *reconciler) keepRights(ctx context.Context, s *scope) error {
	if s.access == nil {
		return nil
	}
	for _, local := range slices.Sorted(maps.Keys(s.twins)) {
		// Where there are no rights, furnish gives them last.
		_, err := binding.Keeper(r.Client).Keep(ctx, keep.Wanted{Object: s.rights(s.twins[local].Name), Optional: true})
		if err != nil && reconcile.Classify(err) == reconcile.Transient {
			return err
		}
	}
	return nil
}

// limit keeps the ResourceQuota of a twin.
func (r *reconciler) limit(ctx context.Context, s *scope, ns *corev1.Namespace) error {
	if len(r.Hard) == 0 {
		return nil
	}
	again, err := counting.Quotas{Client: r.Client, Live: r.Live, Clock: r.Clock}.Ensure(ctx, ns.Name, remaining(r.Hard, s.retained[ns.Name]))
	s.lookAgain(again)
	return r.young(ns, err)
}

// young takes a refusal in a new twin for what it is: the rights there have not taken effect yet.
func (r *reconciler) young(ns *corev1.Namespace, err error) error {
	if apierrors.IsForbidden(err) && r.Clock.Since(ns.CreationTimestamp.Time) < propagation {
		return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, "waiting for the rights in the new namespace to take effect", time.Second)
	}
	return err
}
