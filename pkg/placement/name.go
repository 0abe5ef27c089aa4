package placement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	maxNamespaceName = validation.DNS1123LabelMaxLength
	nameDigest       = 4
)

// RemoteNamespaceName returns the name of the twins of a local namespace. homeID is the local cluster's ID; selected is the
// name that the user chose, which only strategy SelectedName reads. A default name that would be longer than the 63
// characters of a namespace's name is shortened in the middle, keeps its suffix -<homeID> and gets a digest of the whole
// name, so that two long names do not meet. The error says what the user has to change.
func RemoteNamespaceName(strategy offloadingv1beta1.NamespaceMappingStrategyType, namespace, homeID, selected string) (string, error) {
	switch strategy {
	case offloadingv1beta1.EnforceSameNameMappingStrategyType:
		return namespace, nil
	case offloadingv1beta1.DefaultNameMappingStrategyType, "":
		return defaultName(namespace, homeID), nil
	case offloadingv1beta1.SelectedNameMappingStrategyType:
		if selected == "" {
			return "", fmt.Errorf("remoteNamespaceName is required with namespaceMappingStrategy %s", strategy)
		}
		if problems := validation.IsDNS1123Label(selected); len(problems) > 0 {
			return "", fmt.Errorf("remoteNamespaceName %q cannot name a namespace: %s", selected, strings.Join(problems, "; "))
		}
		return selected, nil
	default:
		return "", fmt.Errorf("namespaceMappingStrategy %q is unknown: use %s, %s or %s", strategy,
			offloadingv1beta1.DefaultNameMappingStrategyType, offloadingv1beta1.EnforceSameNameMappingStrategyType,
			offloadingv1beta1.SelectedNameMappingStrategyType)
	}
}

func defaultName(namespace, homeID string) string {
	name := namespace + "-" + homeID
	if len(name) <= maxNamespaceName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := hex.EncodeToString(sum[:nameDigest]) + "-" + homeID
	if room := maxNamespaceName - len(tail) - 1; room > 0 {
		return strings.TrimRight(namespace[:min(room, len(namespace))], "-") + "-" + tail
	}
	// Only a cluster ID beyond its documented length gets here.
	return strings.Trim(tail[:maxNamespaceName], "-")
}
