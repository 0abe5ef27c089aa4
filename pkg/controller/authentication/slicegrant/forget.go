package slicegrant

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// leaving is how long to wait for the pods of a slice that is gone.
const leaving = 10 * time.Second

// withdraw has nothing be offered to a slice any more, and nobody be asked about it.
func (r *Reconciler) withdraw(slice types.NamespacedName) {
	r.options.Supply.Withdraw(slice)
	if r.options.Policy.Plugin != nil {
		r.options.Policy.Plugin.Forget(slice)
	}
}

// forget removes the Quota of a slice that is gone, unless it keeps a cordon that a new slice of the name shall inherit; then
// it goes with the Tenant. A cache of the past may not show the slice yet.
func (r *Reconciler) forget(ctx context.Context, slice types.NamespacedName) error {
	err := r.live.Get(ctx, slice, &authv1beta1.ResourceSlice{})
	if err == nil {
		return reconcile.Wait(authv1beta1.ReasonNotReplicated, fmt.Sprintf("waiting for the cache to show ResourceSlice %s", slice), time.Second)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ResourceSlice %s: %w", slice, err)
	}
	list := &offloadingv1beta1.QuotaList{}
	err = r.client.List(ctx, list, client.InNamespace(slice.Namespace), client.MatchingLabels{
		corev1beta1.ManagedLabel: "true", authv1beta1.ResourceSliceNameLabel: slice.Name,
	})
	if err != nil {
		return fmt.Errorf("listing the Quotas of ResourceSlice %s: %w", slice, err)
	}
	for i := range list.Items {
		quota := &list.Items[i]
		if authv1beta1.IsSet(quota.Annotations, authv1beta1.CordonAnnotation) && metav1.GetControllerOf(quota) != nil {
			continue
		}
		if err := r.settle(ctx, quota); err != nil {
			return err
		}
		if err := keep.Delete(ctx, r.client, quota); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until nothing of a grant is used any more. Until then it holds against the tenant's ceiling: who deletes a slice and asks
// for another one has not given back what still runs. Nothing new runs by it.
func (r *Reconciler) settle(ctx context.Context, quota *offloadingv1beta1.Quota) error {
	pods := &offloadingv1beta1.ShadowPodList{}
	err := r.live.List(ctx, pods, client.MatchingLabels{offloadingv1beta1.CreatorUserLabel: capacity.UserLabel(quota.Spec.User)}, client.Limit(1))
	if err != nil {
		return fmt.Errorf("listing the ShadowPods of Quota %s/%s: %w", quota.Namespace, quota.Name, err)
	}
	if len(pods.Items) == 0 {
		return nil
	}
	if !ptr.Deref(quota.Spec.Cordoned, false) {
		cordoned := quota.DeepCopy()
		cordoned.Spec.Cordoned = ptr.To(true)
		if err := r.client.Update(ctx, cordoned); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cordoning Quota %s/%s: %w", quota.Namespace, quota.Name, err)
		}
	}
	return reconcile.Wait(authv1beta1.ReasonTenantLimit, fmt.Sprintf("waiting for the pods of Quota %s/%s to go", quota.Namespace, quota.Name), leaving)
}
