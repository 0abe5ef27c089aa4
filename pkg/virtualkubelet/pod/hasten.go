package pod

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// leastGrace is the shortest grace period that is passed on, in seconds: with 0 the remote pod would be taken for gone before
// its kubelet says so.
const leastGrace = 1

// endShadow removes a ShadowPod whose pod has that long to end, in seconds; own is how long it has by itself. A kubelet that stops a pod
// goes by what it was told first, and the deletion of a ShadowPod says nothing: the provider is asked before it.
func (r *Reconciler) endShadow(ctx context.Context, v view, grace, own int64) error {
	grace = max(grace, leastGrace)
	switch {
	case grace == own, v.shadow.DeletionTimestamp != nil, v.remote == nil, reflection.OriginUID(v.remote) != reflection.OriginUID(v.shadow),
		v.remote.DeletionTimestamp != nil, reflection.Terminal(v.remote.Status.Phase):
		return r.deleteShadow(ctx, v)
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	asked, was := r.memory.ending[v.shadow.UID]
	if !was {
		r.memory.ending[v.shadow.UID] = now
	}
	r.mu.Unlock()
	left := endingSeen
	if was {
		left -= now.Sub(asked)
	}
	if left <= 0 {
		return r.deleteShadow(ctx, v)
	}
	if !was {
		err := annotateShadow(ctx, v.clients, v.shadow, offloadingv1beta1.EndsInAnnotation, strconv.FormatInt(grace, 10))
		switch class := reconcile.Classify(err); {
		case err == nil:
		case apierrors.IsNotFound(err):
			return nil // its end is an event
		case class == reconcile.Refused || class == reconcile.Terminal:
			return r.deleteShadow(ctx, v)
		default:
			r.removed(v.shadow)
			return err
		}
	}
	return reconcile.Wait("EndPending", "waiting for the remote pod to begin to end", left)
}

// hasten has a terminating remote pod end as soon as its local pod is to: a deletion of the local pod may ask for less time
// than the pod's own grace period, at once or later. The ShadowPod, which is gone by then, cannot carry that; an eviction can,
// which for a pod that is being deleted is nothing but another deletion. It is asked for once per period.
func (r *Reconciler) hasten(ctx context.Context, v view, grace int64) error {
	remote := v.remote
	grace = max(grace, leastGrace)
	if remote.DeletionTimestamp == nil || ptr.Deref(remote.DeletionGracePeriodSeconds, 0) <= grace {
		return nil
	}
	origin := types.UID(reflection.OriginUID(remote))
	r.mu.Lock()
	asked, ok := r.memory.hastened[origin]
	if done := ok && asked <= grace; done {
		r.mu.Unlock()
		return nil // its effect is an event
	}
	r.memory.hastened[origin] = grace
	r.mu.Unlock()
	err := v.clients.Kube.PolicyV1().Evictions(remote.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: remote.Namespace, Name: remote.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To(grace), Preconditions: &metav1.Preconditions{UID: &remote.UID},
		},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	r.mu.Lock()
	delete(r.memory.hastened, origin)
	r.mu.Unlock()
	if apierrors.IsForbidden(err) {
		// The policy that decides may not have seen yet that the pod is being deleted.
		return reconcile.Wait("EvictionPending", "waiting for the provider to let the grace period be shortened: "+err.Error(), time.Second)
	}
	return fmt.Errorf("shortening the grace period of pod %s/%s to %d s: %w", remote.Namespace, remote.Name, grace, err)
}

// hastenForced ends a remote pod that outlives its local pod: that one was removed by force, which asks for no grace at all.
func (r *Reconciler) hastenForced(ctx context.Context, k key, v view) error {
	if !v.ready || v.shadow != nil || v.remote == nil || v.remote.DeletionTimestamp == nil || !r.ours(v.remote) {
		return nil
	}
	if exists, err := r.exists(ctx, k, v.remote); err != nil || exists {
		return err
	}
	return r.hasten(ctx, v, leastGrace)
}

// ours tells whether a remote pod came through this virtual node.
func (r *Reconciler) ours(remote *corev1.Pod) bool {
	return reflection.IsOurs(remote, r.options.Home, r.options.Remote)
}
