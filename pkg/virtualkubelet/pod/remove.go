package pod

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// remove ends a terminating pod: first its ShadowPod goes, with it the remote pod, and only then the local one.
func (r *Reconciler) remove(ctx context.Context, local *corev1.Pod, v view) error {
	switch {
	case v.offload == notOffloaded:
		return r.removeAlone(ctx, local)
	case r.neverThere(local, v):
		return r.deleteLocal(ctx, local)
	case !v.ready:
		return nil
	case v.shadow != nil && !standsFor(v.shadow, local):
		return r.abandon(ctx, local, keyOf(local), v)
	case v.shadow != nil:
		return r.deleteShadow(ctx, v)
	case v.waiting:
		return reconcile.Wait("CreationPending", "waiting for the new ShadowPod to show up", time.Second)
	case v.remote != nil && standsFor(v.remote, local):
		// Its end is an event. A pod that terminates without a period of its own is in no hurry.
		if local.DeletionGracePeriodSeconds == nil {
			return nil
		}
		return r.hasten(ctx, v, *local.DeletionGracePeriodSeconds)
	case v.gone:
		return r.deleteLocal(ctx, local)
	}
	if err := confirmGone(ctx, local, v); err != nil {
		return err
	}
	return r.deleteLocal(ctx, local)
}

// neverThere tells whether nothing of a pod was ever at the provider, as far as can be told: it does not have the namespace, or nothing of
// the pod was ever seen there and the provider, which was asked and does not answer or took our rights back, will perhaps never be seen
// again. Should a ShadowPod have been made that nobody saw, it is removed as one without a pod once the provider is back.
func (r *Reconciler) neverThere(local *corev1.Pod, v view) bool {
	if everRemote(local) || v.waiting {
		return false
	}
	state := r.options.Peer.State()
	return v.offload == pending || v.shadow == nil && v.remote == nil && (state.Lost() || state.Revoked())
}

// removeAlone ends a pod of a namespace that is not offloaded: the twin namespace is being removed with all that is in it.
func (r *Reconciler) removeAlone(ctx context.Context, local *corev1.Pod) error {
	if everRemote(local) {
		if err := r.confirmed(ctx, local.Namespace); err != nil {
			return err
		}
	}
	return r.deleteLocal(ctx, local)
}

// everRemote tells whether the status shows that there was a remote pod. That a pod failed does not: it is also what is shown, before it
// is removed, of one that never ran.
func everRemote(local *corev1.Pod) bool {
	for i := range local.Status.Conditions {
		if local.Status.Conditions[i].Type == offloadingv1beta1.RemotePodCondition {
			return true
		}
	}
	if local.Status.Phase == corev1.PodRunning || local.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(slices.Concat(local.Status.InitContainerStatuses, local.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		ended := c.State.Terminated
		return c.State.Running != nil || ended != nil && !ended.StartedAt.IsZero() || c.LastTerminationState.Terminated != nil
	})
}

// confirmGone asks the provider itself: nobody saw the remote pod go, so the cache may not have seen it come.
func confirmGone(ctx context.Context, local *corev1.Pod, v view) error {
	remote, err := v.clients.Kube.CoreV1().Pods(v.namespace).Get(ctx, local.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("asking the provider whether pod %s/%s is gone: %w", v.namespace, local.Name, err)
	case standsFor(remote, local):
		return reconcile.Wait("RemotePodTerminating", "waiting for the remote pod to end", 2*time.Second)
	default:
		return nil
	}
}
