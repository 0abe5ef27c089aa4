package shadowpod

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// In tenant namespaces, bound there: leases get, create, patch.

// onPartition takes into account what the pod asks for if its consumer is not heard of any more. Nothing is read for other pods, and nothing
// while the sign that was seen last is fresh enough.
func (r *reconciler) onPartition(ctx context.Context, s *scope) error {
	asks, err := reflection.OnPartitionOf(s.shadow.Annotations)
	consumer, creator := s.shadow.Labels[offloadingv1beta1.OriginLabel], s.shadow.Labels[offloadingv1beta1.CreatorUserLabel]
	if err != nil || asks.After == 0 || consumer == "" || creator == "" || Terminal(s.shadow.Status.Phase) || !s.shadow.DeletionTimestamp.IsZero() {
		return nil // what nobody understands keeps the pod
	}
	key := client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + consumer, Name: offloadingv1beta1.SignOfLifePrefix + creator}
	seen, _ := r.signs.Load(key)
	last, _ := seen.(time.Time)
	if last.IsZero() || r.Clock.Since(last) >= asks.After {
		if last, err = r.lastSign(ctx, key, s.shadow.Namespace); err != nil {
			return err
		}
		r.signs.Store(key, last)
	}
	s.decision = s.decision.Silent(s.shadow, s.pod, last, asks.After, r.Clock.Now())
	return nil
}

// lastSign reads when a consumer was heard of last, zero if never, past the cache, which has no managed fields. A consumer without a
// Lease gets one.
func (r *reconciler) lastSign(ctx context.Context, key client.ObjectKey, twin string) (time.Time, error) {
	lease := &coordinationv1.Lease{}
	err := r.Live.Get(ctx, key, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		return time.Time{}, fmt.Errorf("reading Lease %s: %w", key, err)
	}
	if err == nil && lease.Labels[corev1beta1.ManagedLabel] != "true" {
		return time.Time{}, reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "Lease", key)
	}
	ours := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{corev1beta1.ManagedLabel: "true"}}
	if apierrors.IsNotFound(err) {
		rules := []rbacv1.PolicyRule{{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{key.Name}, Verbs: []string{"patch"}}}
		for _, object := range []client.Object{&rbacv1.Role{ObjectMeta: ours, Rules: rules}, &coordinationv1.Lease{ObjectMeta: ours}} {
			if err := r.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
				return time.Time{}, fmt.Errorf("creating %T %s: %w", object, key, err)
			}
		}
	}
	return heard(lease.Spec.RenewTime != nil, lease.ManagedFields), r.allowSigns(ctx, key, twin)
}

// allowSigns gives those who may work in the twin the right to renew their consumer's Lease. They may be others since it was made: another
// peering has another group, and silence of one who may not speak means nothing.
func (r *reconciler) allowSigns(ctx context.Context, key client.ObjectKey, twin string) error {
	var admitted rbacv1.RoleBinding
	if err := r.Get(ctx, client.ObjectKey{Namespace: twin, Name: offloadingv1beta1.RemoteClusterRole}, &admitted); err != nil {
		return fmt.Errorf("reading RoleBinding %s/%s: %w", twin, offloadingv1beta1.RemoteClusterRole, err)
	}
	rights := binding.New(key.Namespace, key.Name, key.Name, admitted.Subjects...)
	rights.RoleRef.Kind = "Role"
	return binding.Ensure(ctx, r.Client, rights)
}

// stop records that a pod is stopped, and then deletes it: whatever happens in between, it is not made again. One that turns out to have
// finished is recorded as that.
func (r *reconciler) stop(ctx context.Context, s *scope) error {
	if !stopped(s.shadow) {
		live, err := r.pod(ctx, r.Live, client.ObjectKeyFromObject(s.shadow))
		if err != nil {
			return err
		}
		if live != nil && reflection.Finished(&live.Spec, live) {
			return reconcile.Wait(offloadingv1beta1.ReasonPodTerminated, "waiting for the cache to show how the pod finished", lag)
		}
		before := s.shadow.DeepCopy()
		s.shadow.Status.Phase = corev1.PodFailed
		s.ready(metav1.ConditionTrue, offloadingv1beta1.ReasonStoppedOnPartition, s.decision.Message)
		if err := r.Status().Patch(ctx, s.shadow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("recording that ShadowPod %s/%s is stopped: %w", s.shadow.Namespace, s.shadow.Name, err)
		}
		r.finished.Store(client.ObjectKeyFromObject(s.shadow), s.shadow.UID)
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonStoppedOnPartition, "StopPod", "%s", s.decision.Message)
	}
	if s.pod == nil || !s.pod.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.remove(ctx, s)
}
