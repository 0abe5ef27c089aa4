package slicenode

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

const (
	maxLabels    = 32
	maxResources = 64
)

var (
	// allowedLabels of reserved domains that a provider may suggest.
	allowedLabels = []string{
		"topology.kubernetes.io/region", "topology.kubernetes.io/zone", "liqo.io/provider", "storage.liqo.io/available",
	}
	// reservedDomains mean something to Kubernetes or to us.
	reservedDomains = []string{"kubernetes.io", "k8s.io", "liqo.io"}
	// basic are the resources of Kubernetes that a provider may give without being asked, besides pages of memory.
	basic = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage}
)

// NodeLabels returns those of a provider's labels that the virtual node may carry: the allowed ones, and those of no reserved
// domain. At most 32, the first in alphabetical order.
func NodeLabels(suggested map[string]string) map[string]string {
	labels := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(suggested)) {
		if len(labels) == maxLabels {
			break
		}
		if allowedLabel(key) && len(content.IsLabelKey(key)) == 0 && len(content.IsLabelValue(suggested[key])) == 0 {
			labels[key] = suggested[key]
		}
	}
	return labels
}

func allowedLabel(key string) bool {
	if slices.Contains(allowedLabels, key) {
		return true
	}
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return true
	}
	return !reserved(domain)
}

func reserved(domain string) bool {
	return slices.ContainsFunc(reservedDomains, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

// Capacity is what the virtual node offers: what was granted, never more than what was asked, and of what was not asked only what physical
// nodes have: the basic resources, pages, and devices.
func Capacity(asked, granted corev1.ResourceList) corev1.ResourceList {
	offered := corev1.ResourceList{}
	for _, name := range capacity.InOrder(granted) {
		quantity := granted[name]
		limit, wasAsked := asked[name]
		switch {
		case quantity.Sign() < 0, len(offered) == maxResources:
			continue
		case wasAsked && quantity.Cmp(limit) > 0:
			offered[name] = limit
		case wasAsked, mayBeOffered(name):
			offered[name] = quantity
		}
	}
	return offered
}

// mayBeOffered tells whether a resource may be given that was not asked for: of the reserved domains none, which mean something to Kubernetes
// or to us.
func mayBeOffered(name corev1.ResourceName) bool {
	if domain, _, prefixed := strings.Cut(string(name), "/"); prefixed {
		return len(content.IsLabelKey(string(name))) == 0 && !reserved(domain)
	}
	return slices.Contains(basic, name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Wanted tells whether a slice asks for a VirtualNode.
func Wanted(slice *authv1beta1.ResourceSlice) bool {
	value, ok := slice.Annotations[authv1beta1.CreateVirtualNodeAnnotation]
	return ok && value != "false" && value != "False"
}
