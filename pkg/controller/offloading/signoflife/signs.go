package signoflife

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// In tenant namespaces, bound there: leases get, create, patch.

// Signs of life of all consumers. Make it with New.
type Signs struct {
	client client.Client
	live   client.Reader
	// last are the signs that were seen last, by the name of the Lease.
	last sync.Map
}

// New reads Leases with live, past the cache, which has no managed fields.
func New(c client.Client, live client.Reader) *Signs { return &Signs{client: c, live: live} }

// Last is when the consumer of a ShadowPod was heard of last, zero if it never was or the ShadowPod does not say whose it is. A sign that was
// seen before and is not older than asked for is as good as a newer one.
func (s *Signs) Last(ctx context.Context, shadow *offloadingv1beta1.ShadowPod, oldest time.Time) (time.Time, error) {
	consumer, creator := shadow.Labels[offloadingv1beta1.OriginLabel], shadow.Labels[offloadingv1beta1.CreatorUserLabel]
	if consumer == "" || creator == "" {
		return time.Time{}, nil
	}
	key := client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + consumer, Name: offloadingv1beta1.SignOfLifePrefix + creator}
	seen, _ := s.last.Load(key)
	if last, _ := seen.(time.Time); last.After(oldest) {
		return last, nil
	}
	last, err := s.read(ctx, key, shadow.Namespace)
	if err == nil {
		s.last.Store(key, last)
	}
	return last, err
}

// read reads a consumer's Lease. One without gets it.
func (s *Signs) read(ctx context.Context, key client.ObjectKey, twin string) (time.Time, error) {
	lease := &coordinationv1.Lease{}
	err := s.live.Get(ctx, key, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		return time.Time{}, fmt.Errorf("reading Lease %s: %w", key, err)
	}
	if err == nil && lease.Labels[corev1beta1.ManagedLabel] != "true" {
		return time.Time{}, reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "Lease", key)
	}
	if apierrors.IsNotFound(err) {
		if err := s.create(ctx, key); err != nil {
			return time.Time{}, err
		}
	}
	return heard(lease), s.allow(ctx, key, twin)
}

// create makes the Lease, and the role that lets it be renewed.
func (s *Signs) create(ctx context.Context, key client.ObjectKey) error {
	ours := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{corev1beta1.ManagedLabel: "true"}}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{key.Name}, Verbs: []string{"patch"},
	}}
	return keep.Make(ctx, s.client, &rbacv1.Role{ObjectMeta: ours, Rules: rules}, &coordinationv1.Lease{ObjectMeta: ours})
}

// allow gives those who may work in the twin the right to renew their consumer's Lease. They may be others since it was made: another
// peering has another group, and silence of one who may not speak means nothing.
func (s *Signs) allow(ctx context.Context, key client.ObjectKey, twin string) error {
	var admitted rbacv1.RoleBinding
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: twin, Name: offloadingv1beta1.RemoteClusterRole}, &admitted); err != nil {
		return fmt.Errorf("reading RoleBinding %s/%s: %w", twin, offloadingv1beta1.RemoteClusterRole, err)
	}
	rights := binding.New(key.Namespace, key.Name, key.Name, admitted.Subjects...)
	rights.RoleRef.Kind = "Role"
	return binding.Keeper(s.client).All(ctx, rights)
}

// heard is when a consumer renewed its Lease last.
func heard(lease *coordinationv1.Lease) (last time.Time) {
	if lease.Spec.RenewTime == nil {
		return last
	}
	for _, entry := range lease.ManagedFields {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
