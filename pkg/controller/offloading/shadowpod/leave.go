package shadowpod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// left notes that a Pod is gone for good. Whoever looks at the claim just now looks again: an event of the Pod is on its way.
func (c *claims) left(key types.NamespacedName, pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.holders[key]; held != nil && !held.making && held.pod == pod {
		next := *held
		next.left = true
		c.holders[key] = &next
	}
}

// runs tells whether the Pod is there still that a claim is for. How long a Pod takes to go is up to its user; until then it has
// what it has. A Pod that the cache does not show may be new, unless it is known that the one that was made is gone.
func (r *reconciler) runs(ctx context.Context, key types.NamespacedName, h *holder) (bool, error) {
	pod, err := r.pod(ctx, r.Client, key)
	if err == nil && pod == nil && !h.left {
		pod, err = r.pod(ctx, r.Live, key)
	}
	if err != nil || pod == nil || Terminal(pod.Status.Phase) {
		return false, err
	}
	owner := ownerOf(pod)
	return owner == h.uid || owner == "" && pod.Labels[offloadingv1beta1.ManagedByLabel] == offloadingv1beta1.ManagedByShadowPod, nil
}

// end ends the claim of a ShadowPod that is gone, if its Pod is gone as well or has finished, and tells whether the Pod runs still.
func (r *reconciler) end(ctx context.Context, key types.NamespacedName, held *holder) (bool, error) {
	runs, err := r.runs(ctx, key, held)
	if err == nil && !runs {
		r.claims.replace(key, held, nil)
	}
	return runs, err
}

// leave ends the claim of a ShadowPod that is gone. If its Pod is not gone yet, the Pod's end brings us back.
func (r *reconciler) leave(ctx context.Context, key types.NamespacedName) error {
	held := r.claims.leaving(key)
	if held == nil {
		return nil
	}
	_, err := r.end(ctx, key, held)
	return err
}

// succeed ends the claim of an earlier ShadowPod of the name, whose Pod has to be gone for that.
func (r *reconciler) succeed(ctx context.Context, shadow *offloadingv1beta1.ShadowPod) error {
	key := client.ObjectKeyFromObject(shadow)
	held := r.claims.at(key)
	if held == nil || held.uid == shadow.UID {
		return nil
	}
	runs, err := r.end(ctx, key, held)
	if runs {
		return reconcile.Wait(offloadingv1beta1.ReasonPodTerminated, "waiting for an earlier pod of this name to go", lag)
	}
	return err
}

// sweep ends the claims of a user's ShadowPods that are finished, or gone with their Pods. It returns what is held by Pods whose
// ShadowPods are gone: their user does not see them any more.
func (r *reconciler) sweep(ctx context.Context, user string) (corev1.ResourceList, error) {
	left := corev1.ResourceList{}
	for key, held := range r.claims.of(user) {
		var shadow offloadingv1beta1.ShadowPod
		if err := r.Get(ctx, key, &shadow); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading ShadowPod %s: %w", key, err)
		}
		if shadow.UID == held.uid {
			if Terminal(shadow.Status.Phase) {
				r.claims.replace(key, held, nil)
			}
			continue
		}
		runs, err := r.end(ctx, key, held)
		if err != nil {
			return nil, err
		}
		if runs {
			left = capacity.Sum(left, held.amount)
		}
	}
	return left, nil
}

// terminating says what Pods hold that were deleted and run still.
func terminating(left corev1.ResourceList) string {
	if len(left) == 0 {
		return ""
	}
	return "; pods that were deleted and are still terminating hold " + capacity.Text(left)
}

// of returns the claims of a user, but for those that a Pod is just being made for.
func (c *claims) of(user string) map[types.NamespacedName]*holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := map[types.NamespacedName]*holder{}
	for key, h := range c.holders {
		if h.user == user && !h.making {
			of[key] = h
		}
	}
	return of
}
