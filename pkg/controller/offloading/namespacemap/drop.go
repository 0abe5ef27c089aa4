package namespacemap

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// lag is how long to wait for the cache to show what the API server says.
const lag = time.Second

// finish removes the twins of a deleted map, but for those that hold data about which nobody decided, and then lets the map go.
func (r *reconciler) finish(ctx context.Context, s *scope) error {
	if !controllerutil.ContainsFinalizer(s.nm, offloadingv1beta1.NamespaceMapFinalizer) {
		return nil
	}
	left, kept, err := s.part(ctx, r.Client, r.Live)
	if err != nil {
		return err
	}
	err = r.remove(ctx, s, left)
	if reported := r.report(ctx, s); reported != nil {
		return reported
	}
	if err != nil {
		return err
	}
	if len(left) > 0 {
		answer := s.answers[left[0]]
		return reconcile.Wait(offloadingv1beta1.ReasonTwinTerminating,
			fmt.Sprintf("waiting for Namespace %s to go: %s", answer.RemoteNamespace, answer.Message), poll)
	}
	// A twin that was made a moment ago may not be seen yet, and nobody would remove it.
	now, err := gather(ctx, r.Live, s.nm)
	if err != nil {
		return err
	}
	if len(now.twins) > len(kept) {
		return reconcile.Wait(offloadingv1beta1.ReasonTwinTerminating, fmt.Sprintf("waiting for the cache to show all twins of NamespaceMap %s", keyOf(s.nm)), lag)
	}
	for _, twin := range kept {
		s.tellLeft(r.Events, twin)
	}
	controllerutil.RemoveFinalizer(s.nm, offloadingv1beta1.NamespaceMapFinalizer)
	return r.patch(ctx, s)
}

// drop removes the twins that the map does not want any more, under that name.
func (r *reconciler) drop(ctx context.Context, s *scope) error {
	unwanted := s.unwanted()
	if slices.ContainsFunc(unwanted, func(local string) bool { return s.twins[local].DeletionTimestamp.IsZero() }) {
		if err := r.confirm(ctx, s, unwanted); err != nil {
			s.past = true
			return err
		}
	}
	leave, kept := r.keep(ctx, s, unwanted)
	return worst([]error{r.remove(ctx, s, leave), kept})
}

// unwanted are the twins, by the consumer's name, that have no place in the map.
func (s *scope) unwanted() []string {
	var names []string
	for local, ns := range s.twins {
		if twin, wanted := s.nm.Spec.DesiredMapping[local]; !wanted || twin != ns.Name || s.isOther(ns, local) {
			names = append(names, local)
		}
	}
	slices.Sort(names)
	return names
}

// confirm asks the API server itself whether twins really are not wanted. A cache that is filled from a server that lags shows the past:
// the map before it wanted them. With a twin goes all that is in it.
func (r *reconciler) confirm(ctx context.Context, s *scope, unwanted []string) error {
	key := client.ObjectKeyFromObject(s.nm)
	behind := reconcile.Wait(offloadingv1beta1.ReasonTwinPending, fmt.Sprintf("waiting for the cache to show NamespaceMap %s and its Tenant", key), lag)
	var nm offloadingv1beta1.NamespaceMap
	if err := r.Live.Get(ctx, key, &nm); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading NamespaceMap %s: %w", key, err)
	} else if err != nil || nm.UID != s.nm.UID {
		return behind
	}
	now, err := gather(ctx, r.Live, &nm)
	if err != nil {
		return err
	}
	still := now.unwanted()
	for _, local := range unwanted {
		if _, there := now.twins[local]; there && !slices.Contains(still, local) {
			return behind
		}
	}
	return nil
}

// remove deletes twins and says in the answers what keeps them.
func (r *reconciler) remove(ctx context.Context, s *scope, names []string) error {
	var problems []error
	for _, local := range names {
		ns := s.twins[local]
		message := blockers(ns)
		if ns.DeletionTimestamp.IsZero() {
			if err := r.delete(ctx, ns); err != nil {
				problems = append(problems, fmt.Errorf("deleting Namespace %s: %w", ns.Name, err))
				message = err.Error()
			}
		}
		s.answers[local] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: ns.Name, Phase: offloadingv1beta1.MappingTerminating,
			Reason: offloadingv1beta1.ReasonTwinTerminating, Message: message}
	}
	return worst(problems)
}

// delete deletes a twin. Its pods are released before: how they end is of no use any more, and before Kubernetes 1.33 our right to change
// them may go before them, with which the twin would stay for ever.
func (r *reconciler) delete(ctx context.Context, twin *corev1.Namespace) error {
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(twin.Name),
		client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}); err != nil {
		return fmt.Errorf("listing the pods in it: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		changed := pod.DeepCopy()
		if !controllerutil.RemoveFinalizer(changed, offloadingv1beta1.ShadowPodRecordFinalizer) {
			continue
		}
		err := r.Patch(ctx, changed, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
		// Without the right nothing is gained by waiting.
		if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("removing the finalizer of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return client.IgnoreNotFound(r.Delete(ctx, twin, client.Preconditions{UID: &twin.UID}))
}
