package cordon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/offloaded"
)

// inEffect looks whether a change of a tenant is in effect, else what is missing.
func (o *Options) inEffect(ctx context.Context, tenant *authv1beta1.Tenant, change Change) (bool, string, error) {
	found, err := o.Cluster.Get(ctx, tenant)
	switch {
	case err != nil:
		return false, "", err
	case !found:
		return false, "", gone(o.Cluster, tenant)
	case conditionOf(tenant) != change.To:
		return false, "", failure.New(failure.Failed, "agree with them, and run the same command again", "somebody made %s %s meanwhile",
			o.Cluster.Describe(tenant), conditionOf(tenant))
	}
	ready := meta.FindStatusCondition(tenant.Status.Conditions, corev1beta1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration < tenant.Generation:
		return false, "the controller manager has not looked at it yet", nil
	case change == Drain && ready.Reason == authv1beta1.ReasonTenantDrained:
		hosted, err := offloaded.Hosts(ctx, o.Cluster, string(tenant.Spec.ClusterID))
		if err != nil || len(hosted.Pods) == 0 {
			return err == nil, "", err
		}
		return false, offloaded.Counted("pod", hosted.Pods) + " did not end yet", nil
	case change == Drain || ready.Status != metav1.ConditionTrue:
		return false, ready.Reason + ": " + ready.Message, nil
	}
	missing, err := o.behind(ctx, tenant.Namespace, "", change.To == authv1beta1.TenantCordoned)
	return err == nil && missing == "", missing, err
}

// behind names a grant in a tenant namespace, of one slice unless that is empty, that takes new pods and should not, or the other way round.
// A slice that has none yet gets one that is right.
func (o *Options) behind(ctx context.Context, namespace, only string, tenantCordoned bool) (string, error) {
	list, quotas := &authv1beta1.ResourceSliceList{}, &offloadingv1beta1.QuotaList{}
	if err := o.Cluster.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{corev1beta1.ReplicatedLabel: "true"}); err != nil {
		return "", err
	}
	if err := o.Cluster.List(ctx, quotas, client.InNamespace(namespace), client.MatchingLabels{corev1beta1.ManagedLabel: "true"}); err != nil {
		return "", err
	}
	cordoned := map[string]bool{}
	for i := range list.Items {
		if slice := &list.Items[i]; only == "" || slice.Name == only {
			cordoned[slice.Name] = tenantCordoned || authv1beta1.IsSet(slice.Annotations, authv1beta1.CordonAnnotation)
		}
	}
	for i := range quotas.Items {
		quota := &quotas.Items[i]
		want, ours := cordoned[quota.Labels[authv1beta1.ResourceSliceNameLabel]]
		if ours && ptr.Deref(quota.Spec.Cordoned, false) != want {
			return fmt.Sprintf("Quota %s/%s does not say so yet: is liqo-controller-manager running?", quota.Namespace, quota.Name), nil
		}
	}
	return "", nil
}
