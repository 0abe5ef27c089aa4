package placement

import (
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// EffectiveMapping returns the mapping from local namespaces to twins that is in force: what this cluster wants and the
// provider has accepted under the very same name. Whatever else the provider reports is ignored, so it can neither make this
// cluster reflect a namespace that is not offloaded nor redirect one that is.
func EffectiveMapping(desired map[string]string, current map[string]offloadingv1beta1.RemoteNamespaceStatus) map[string]string {
	effective := map[string]string{}
	for local, twin := range desired {
		answer, answered := current[local]
		if answered && answer.Phase == offloadingv1beta1.MappingAccepted && answer.RemoteNamespace == twin && twin != "" {
			effective[local] = twin
		}
	}
	return effective
}

// LeavingTwins returns the local namespaces of which the provider says that it is removing the twin, and which this cluster wants; nil if
// there are none.
func LeavingTwins(desired map[string]string, current map[string]offloadingv1beta1.RemoteNamespaceStatus) map[string]bool {
	var leaving map[string]bool
	for local, twin := range desired {
		if now, known := current[local]; known && now.RemoteNamespace == twin && now.Phase == offloadingv1beta1.MappingTerminating {
			if leaving == nil {
				leaving = map[string]bool{}
			}
			leaving[local] = true
		}
	}
	return leaving
}

// IsPeersMap tells whether a NamespaceMap of this cluster was made by the peer, as the copy of its own: it says what the peer wants here, and
// nothing of what this cluster wants there. Admission sees to it that peers make no other ones.
func IsPeersMap(m *offloadingv1beta1.NamespaceMap) bool {
	return m.Labels[corev1beta1.ReplicatedLabel] == "true"
}
