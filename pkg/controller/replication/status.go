package replication

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
)

// Bounds on what a peer may answer.
const (
	maxItems      = 256
	maxQuantities = 64
	maxPrefixes   = 32
	maxMappings   = 5000
	maxWord       = 128
	maxURL        = 2048
)

// word bounds a machine-readable word of a peer; what is not one becomes empty.
func word(text string) string {
	if len(text) > maxWord {
		return ""
	}
	for i, r := range text {
		if i == 0 && (r == '_' || (r >= '0' && r <= '9')) {
			return ""
		}
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' {
			return ""
		}
	}
	return text
}

// authParams checks the shape of what a peer answered; what it means is checked where it is used.
func authParams(offered *authv1beta1.AuthParams) *authv1beta1.AuthParams {
	if offered == nil || len(offered.CA) > identity.MaxInput || len(offered.SignedCRT) > identity.MaxInput || len(offered.APIServer) > maxURL {
		return nil
	}
	if offered.ProxyURL != nil && len(*offered.ProxyURL) > maxURL {
		return nil
	}
	return offered.DeepCopy()
}

func quantities(offered corev1.ResourceList) corev1.ResourceList {
	var checked corev1.ResourceList
	for _, name := range capacity.InOrder(offered) {
		quantity := offered[name]
		if len(checked) == maxQuantities || quantity.Sign() < 0 || len(content.IsLabelKey(string(name))) != 0 {
			continue
		}
		if checked == nil {
			checked = corev1.ResourceList{}
		}
		checked[name] = quantity
	}
	return checked
}

func labels(offered map[string]string) map[string]string {
	var checked map[string]string
	for _, key := range slices.Sorted(maps.Keys(offered)) {
		if len(checked) == maxItems || len(content.IsLabelKey(key)) != 0 || len(content.IsLabelValue(offered[key])) != 0 {
			continue
		}
		if checked == nil {
			checked = map[string]string{}
		}
		checked[key] = offered[key]
	}
	return checked
}

// named keeps the items of a list whose names are valid.
func named[T any](offered []T, name func(T) string) []T {
	var checked []T
	for _, item := range offered {
		if len(checked) < maxItems && len(content.IsDNS1123Subdomain(name(item))) == 0 {
			checked = append(checked, item)
		}
	}
	return checked
}

func prefixes(offered []string) []string {
	var checked []string
	for _, text := range offered {
		if prefix, err := netip.ParsePrefix(text); err == nil && len(checked) < maxPrefixes {
			checked = append(checked, prefix.Masked().String())
		}
	}
	return checked
}

func providerNodes(offered *authv1beta1.ProviderNodes) *authv1beta1.ProviderNodes {
	if offered == nil {
		return nil
	}
	return &authv1beta1.ProviderNodes{LargestPod: quantities(offered.LargestPod),
		OperatingSystem: labelValue(offered.OperatingSystem), Architecture: labelValue(offered.Architecture)}
}

func labelValue(text string) string {
	if len(content.IsLabelValue(text)) != 0 {
		return ""
	}
	return text
}

// pullSlice merges a provider's answer into a slice. Conditions of types that the provider does not decide on stay.
func pullSlice(local, remote *authv1beta1.ResourceSlice, now time.Time) {
	offered := &remote.Status
	status := authv1beta1.ResourceSliceStatus{
		AuthParams: authParams(offered.AuthParams),
		Conditions: local.Status.Conditions, Summary: local.Status.Summary,
		Resources: quantities(offered.Resources),
		StorageClasses: named(offered.StorageClasses, func(c authv1beta1.StorageType) string {
			return c.StorageClassName
		}),
		IngressClasses: named(offered.IngressClasses, func(c authv1beta1.IngressType) string {
			return c.IngressClassName
		}),
		LoadBalancerClasses: named(offered.LoadBalancerClasses, func(c authv1beta1.LoadBalancerType) string {
			return c.LoadBalancerClassName
		}),
		NodeLabels: labels(offered.NodeLabels), NodeSelector: labels(offered.NodeSelector), PodCIDRs: prefixes(offered.PodCIDRs),
		ProviderNodes: providerNodes(offered.ProviderNodes),
	}
	// Earlier versions had these among the conditions.
	for _, former := range []string{corev1beta1.ConditionReady, authv1beta1.IdentityCondition, authv1beta1.CordonedCondition} {
		conditions.Remove(&status.Conditions, former)
	}
	for _, part := range []string{authv1beta1.AuthenticationCondition, authv1beta1.ResourcesCondition} {
		answer := conditions.Find(offered.Conditions, part)
		if answer == nil || (answer.Status != authv1beta1.Accepted && answer.Status != authv1beta1.Denied) {
			conditions.Remove(&status.Conditions, part)
			continue
		}
		conditions.Set(&status.Conditions, corev1beta1.Condition{
			Type: part, Status: answer.Status, Reason: word(answer.Reason), Message: answer.Message,
			ObservedGeneration: answered(local, remote, answer),
		}, now)
	}
	for _, trouble := range authv1beta1.Troubles {
		if answer := summed(offered, trouble); answer == nil || answer.Status != string(metav1.ConditionTrue) {
			conditions.Remove(&status.Summary, trouble)
		} else {
			conditions.Set(&status.Summary, corev1beta1.Condition{
				Type: trouble, Status: answer.Status, Reason: word(answer.Reason), Message: answer.Message, ObservedGeneration: local.Generation,
			}, now)
		}
	}
	local.Status = status
	conditions.Set(&local.Status.Summary, readySlice(local, remote), now)
}

// summed finds what a provider says of a slice beyond what Liqo v1 has conditions for; an earlier version has it among them.
func summed(offered *authv1beta1.ResourceSliceStatus, of string) *corev1beta1.Condition {
	if answer := conditions.Find(offered.Summary, of); answer != nil {
		return answer
	}
	return conditions.Find(offered.Conditions, of)
}

// answered is the generation of the local slice that a provider's answer is about: the present one, or, while the provider has not looked
// at the present request yet, the one that it was about before.
func answered(local, remote *authv1beta1.ResourceSlice, answer *corev1beta1.Condition) int64 {
	if answer.ObservedGeneration == 0 || answer.ObservedGeneration >= remote.Generation {
		return local.Generation
	}
	if before := conditions.Find(local.Status.Conditions, answer.Type); before != nil {
		return before.ObservedGeneration
	}
	return 0
}

// readySlice sums a slice up.
func readySlice(local, remote *authv1beta1.ResourceSlice) corev1beta1.Condition {
	ready := corev1beta1.Condition{Type: corev1beta1.ConditionReady, Status: "False", ObservedGeneration: local.Generation}
	for _, part := range []string{authv1beta1.AuthenticationCondition, authv1beta1.ResourcesCondition} {
		condition := conditions.Find(local.Status.Conditions, part)
		switch {
		case condition == nil:
			ready.Reason, ready.Message = authv1beta1.ReasonWaitingForProvider, "the provider has not answered yet"
			// The provider's own words help more, if there are any.
			if answer := summed(&remote.Status, corev1beta1.ConditionReady); answer != nil && answer.Message != "" {
				ready.Message = conditions.Bound("the provider says: " + answer.Message)
			}
			return ready
		case condition.Status != authv1beta1.Accepted:
			ready.Reason, ready.Message = condition.Reason, condition.Message
			return ready
		}
	}
	switch identity := conditions.Find(local.Status.Summary, authv1beta1.IdentityCondition); {
	case identity == nil:
		ready.Reason, ready.Message = authv1beta1.ReasonIdentityPending, "the certificate is not in use yet"
		return ready
	case identity.Status != string(metav1.ConditionTrue):
		ready.Reason, ready.Message = identity.Reason, identity.Message
		return ready
	}
	ready.Status, ready.Reason, ready.Message = "True", authv1beta1.ReasonReady, "the slice has its certificate and its resources"
	return ready
}

func unsentSlice(local *authv1beta1.ResourceSlice, reason, message string, now time.Time) {
	conditions.Set(&local.Status.Summary, corev1beta1.Condition{
		Type: corev1beta1.ConditionReady, Status: "False", Reason: reason, Message: message, ObservedGeneration: local.Generation,
	}, now)
}

// pullMap merges a provider's answer into a NamespaceMap: only for namespaces that this cluster maps, with the names that it
// asked for; for others that were mapped before, only that they are on their way out.
func pullMap(local, remote *offloadingv1beta1.NamespaceMap, _ time.Time) {
	current := map[string]offloadingv1beta1.RemoteNamespaceStatus{}
	for name, answer := range remote.Status.CurrentMapping {
		desired, wanted := local.Spec.DesiredMapping[name]
		before, known := local.Status.CurrentMapping[name]
		entry := offloadingv1beta1.RemoteNamespaceStatus{
			RemoteNamespace: desired, Phase: answer.Phase, Reason: word(answer.Reason), Message: conditions.Bound(answer.Message),
		}
		switch {
		case len(current) == maxMappings:
			continue
		case wanted && answer.RemoteNamespace == desired && validPhase(answer.Phase):
		case !wanted && known:
			entry.RemoteNamespace, entry.Phase = before.RemoteNamespace, offloadingv1beta1.MappingTerminating
		default:
			continue
		}
		current[name] = entry
	}
	if len(current) == 0 {
		current = nil
	}
	local.Status.CurrentMapping = current
	conditions.SetStandard(&local.Status.Conditions, readyMap(local))
	tellHeld(local, remote)
}

func validPhase(phase offloadingv1beta1.MappingPhase) bool {
	return phase == offloadingv1beta1.MappingAccepted || phase == offloadingv1beta1.MappingCreationLoopBackOff ||
		phase == offloadingv1beta1.MappingTerminating
}

// readyMap sums a NamespaceMap up.
func readyMap(local *offloadingv1beta1.NamespaceMap) metav1.Condition {
	ready := metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: local.Generation,
		Reason: offloadingv1beta1.ReasonMappingReady, Message: "all namespaces have their twins",
	}
	for _, name := range slices.Sorted(maps.Keys(local.Spec.DesiredMapping)) {
		answer, ok := local.Status.CurrentMapping[name]
		switch {
		case !ok:
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, offloadingv1beta1.ReasonTwinPending, "waiting for the twin of namespace "+name
			return ready
		case answer.Phase != offloadingv1beta1.MappingAccepted:
			ready.Status, ready.Reason = metav1.ConditionFalse, offloadingv1beta1.ReasonTwinFailed
			ready.Message = "the twin of namespace " + name + " is not ready: " + answer.Message
			return ready
		}
	}
	return ready
}

func unsentMap(local *offloadingv1beta1.NamespaceMap, reason, message string, _ time.Time) {
	conditions.SetStandard(&local.Status.Conditions, metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: local.Generation,
	})
}

// pullRenew merges a provider's answer into a Renew.
func pullRenew(local, remote *authv1beta1.Renew, _ time.Time) {
	local.Status.AuthParams = authParams(remote.Status.AuthParams)
	ready := metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: local.Generation,
		Reason: authv1beta1.ReasonWaitingForProvider, Message: "the provider has not answered yet",
	}
	if answer := meta.FindStatusCondition(remote.Status.Conditions, corev1beta1.ConditionReady); answer != nil {
		if reason := word(answer.Reason); reason != "" {
			ready.Reason, ready.Message = reason, answer.Message
		}
		if answer.Status == metav1.ConditionTrue && local.Status.AuthParams != nil {
			ready.Status = metav1.ConditionTrue
		}
	}
	conditions.SetStandard(&local.Status.Conditions, ready)
}

func unsentRenew(local *authv1beta1.Renew, reason, message string, _ time.Time) {
	conditions.SetStandard(&local.Status.Conditions, metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: local.Generation,
	})
}
