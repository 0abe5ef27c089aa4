package slicegrant

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/identity"
)

const (
	maxResources = 64
	maxSliceName = 63
	slicePrefix  = identity.UserPrefix + "slice:"
)

// WhyInvalid returns what a replicated slice contradicts, empty if nothing: its tenant namespace, its own labels, or the
// bounds of what can be asked.
func WhyInvalid(slice *authv1beta1.ResourceSlice, consumer, home string) string {
	spec := &slice.Spec
	switch {
	case slice.Labels[corev1beta1.OriginIDLabel] != consumer:
		return fmt.Sprintf("the label %s must be %s, the cluster that the namespace belongs to", corev1beta1.OriginIDLabel, consumer)
	case spec.ConsumerClusterID == nil || string(*spec.ConsumerClusterID) != consumer:
		return fmt.Sprintf("consumerClusterID must be %s, the cluster that the namespace belongs to", consumer)
	case spec.ProviderClusterID == nil || string(*spec.ProviderClusterID) != home:
		return fmt.Sprintf("providerClusterID must be %s, this cluster", home)
	case len(slice.Name) > maxSliceName:
		return fmt.Sprintf("the name has %d characters and may have at most %d", len(slice.Name), maxSliceName)
	case len(spec.Resources) > maxResources:
		return fmt.Sprintf("it asks for %d kinds of resources: at most %d are granted", len(spec.Resources), maxResources)
	}
	if _, err := capacity.ParseNodes(slice.Annotations[authv1beta1.NodeSelectorAnnotation]); err != nil {
		return err.Error()
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Resources)) {
		if quantity := spec.Resources[name]; quantity.Sign() < 0 {
			return fmt.Sprintf("it asks for a negative quantity of %s", name)
		}
		if len(validation.IsQualifiedName(string(name))) != 0 {
			return "it asks for a resource whose name is not valid"
		}
	}
	return ""
}

func isDefault(class authv1beta1.ResourceSliceClass) bool {
	return class == authv1beta1.DefaultResourceSliceClass || class == ""
}

// answers tells whether slices of a class are answered here, and not by somebody else's controller.
func (p *Policy) answers(class authv1beta1.ResourceSliceClass) bool {
	_, named := p.Shares.percentages().Classes[string(class)]
	return named || isDefault(class)
}

// Grant is what a slice gets of what it is offered. A cordoned tenant keeps the present grant, where that is less.
func Grant(offered, present corev1.ResourceList, cordoned bool) corev1.ResourceList {
	granted := maps.Clone(offered)
	if !cordoned || present == nil {
		return granted
	}
	for name, quantity := range granted {
		had, ok := present[name]
		switch {
		case !ok:
			delete(granted, name)
		case quantity.Cmp(had) > 0:
			granted[name] = had
		}
	}
	return granted
}

// QuotaName is the name of a slice's Quota: what makes its user's name unique.
func QuotaName(consumer, slice string) string {
	return strings.TrimPrefix(identity.SliceUser(consumer, slice), slicePrefix)
}

// cordonedBy is what a slice is told of a cordon of its own, or of its tenant's; nothing if there is none.
func cordonedBy(slice, tenant bool) *outcome {
	switch {
	case tenant:
		return &outcome{"True", authv1beta1.ReasonTenantCordoned, "the tenant keeps what it has and gets nothing new"}
	case slice:
		return &outcome{"True", authv1beta1.ReasonSliceCordoned, "the slice keeps what it has and gets no new pods"}
	default:
		return &outcome{}
	}
}

// overCommitted is what a slice is told if more runs than it is offered; nothing if not.
func overCommitted(over corev1.ResourceList) *outcome {
	if len(over) == 0 {
		return &outcome{}
	}
	message := "what runs stays, and no more pods are taken: it is more than is offered now, by " + capacity.Text(over)
	return &outcome{"True", authv1beta1.ReasonMoreRunsThanIsOffered, message}
}

// cordon says whether a slice is cordoned by itself: its annotation, or that of the slice of the same name before it.
func cordon(slice *authv1beta1.ResourceSlice, quota *offloadingv1beta1.Quota) (cordoned, inherited bool) {
	if authv1beta1.IsSet(slice.Annotations, authv1beta1.CordonAnnotation) {
		return true, false
	}
	if quota == nil || !authv1beta1.IsSet(quota.Annotations, authv1beta1.CordonAnnotation) {
		return false, false
	}
	// The same slice without its annotation: the provider lifted the cordon. Another slice: the consumer recreated it.
	return quota.Annotations[authv1beta1.SliceUIDAnnotation] != string(slice.UID), true
}

// renderQuota is the wanted Quota of a slice.
func renderQuota(slice *authv1beta1.ResourceSlice, tenant *authv1beta1.Tenant, granted corev1.ResourceList,
	enforcement offloadingv1beta1.LimitsEnforcement, sliceCordoned, tenantCordoned bool,
) *offloadingv1beta1.Quota {
	consumer := string(tenant.Spec.ClusterID)
	cordoned := sliceCordoned || tenantCordoned
	quota := &offloadingv1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: slice.Namespace, Name: QuotaName(consumer, slice.Name),
			Labels: map[string]string{
				corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: consumer,
				authv1beta1.ResourceSliceNameLabel: slice.Name,
			},
			Annotations: map[string]string{authv1beta1.SliceUIDAnnotation: string(slice.UID)},
		},
		Spec: offloadingv1beta1.QuotaSpec{
			User: identity.SliceUser(consumer, slice.Name), LimitsEnforcement: enforcement, Resources: granted, Cordoned: &cordoned,
		},
	}
	if sliceCordoned {
		quota.Annotations[authv1beta1.CordonAnnotation] = "true"
	}
	return quota
}
