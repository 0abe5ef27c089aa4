package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const maxPeerWords = 512

// TwinConditions returns the conditions of one cluster's twin, without times. required says whether the selector selects the
// cluster, twin is the wanted name, answer what the provider reports about it, or nil.
func TwinConditions(required bool, twin string, answer *offloadingv1beta1.RemoteNamespaceStatus) offloadingv1beta1.RemoteNamespaceConditions {
	selected := offloadingv1beta1.RemoteNamespaceCondition{Type: offloadingv1beta1.OffloadingRequiredCondition,
		Status: corev1.ConditionTrue, Reason: offloadingv1beta1.ReasonClusterSelected, Message: "the cluster is selected"}
	if !required {
		selected.Status, selected.Reason, selected.Message = corev1.ConditionFalse, offloadingv1beta1.ReasonClusterNotSelected, "the cluster is not selected"
	}
	ready := offloadingv1beta1.RemoteNamespaceCondition{Type: offloadingv1beta1.RemoteNamespaceReadyCondition, Status: corev1.ConditionFalse}
	switch {
	case answer == nil && !required:
		return offloadingv1beta1.RemoteNamespaceConditions{selected}
	case answer == nil:
		ready.Reason, ready.Message = offloadingv1beta1.ReasonTwinPending, fmt.Sprintf("waiting for the provider to create namespace %q", twin)
	case answer.RemoteNamespace != twin:
		ready.Reason, ready.Message = offloadingv1beta1.ReasonTwinPending, fmt.Sprintf("waiting for the provider to answer about namespace %q", twin)
	case answer.Reason == offloadingv1beta1.ReasonTwinPending && required:
		ready.Reason, ready.Message = offloadingv1beta1.ReasonTwinPending, words(fmt.Sprintf("waiting for the provider to create namespace %q", twin), answer.Message)
	case answer.Phase == offloadingv1beta1.MappingTerminating || !required:
		ready.Reason, ready.Message = offloadingv1beta1.ReasonTwinTerminating, words("the namespace is being removed", answer.Message)
	case answer.Phase == offloadingv1beta1.MappingAccepted:
		ready.Status, ready.Reason, ready.Message = corev1.ConditionTrue, offloadingv1beta1.ReasonTwinReady, fmt.Sprintf("namespace %q is ready", twin)
	default:
		ready.Reason, ready.Message = failure(answer.Reason), words(fmt.Sprintf("the provider did not create namespace %q", twin), answer.Message)
	}
	return offloadingv1beta1.RemoteNamespaceConditions{selected, ready}
}

// failure lets through only the reasons of a provider that are known.
func failure(reason string) string {
	switch reason {
	case offloadingv1beta1.ReasonNamespaceConflict, offloadingv1beta1.ReasonNamespaceNotAllowed, offloadingv1beta1.ReasonNamespaceLimit,
		offloadingv1beta1.ReasonNamespaceNeverOffloaded:
		return reason
	}
	return offloadingv1beta1.ReasonTwinFailed
}

// words appends what a peer said, bounded and on one line.
func words(ours, theirs string) string {
	if theirs == "" {
		return ours
	}
	theirs = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, theirs), "")
	if len(theirs) > maxPeerWords {
		theirs = strings.ToValidUTF8(theirs[:maxPeerWords], "") + "…"
	}
	return ours + ": " + theirs
}

// Phase sums the conditions of a NamespaceOffloading's twins up.
func Phase(deleting bool, twins map[corev1beta1.ClusterID]offloadingv1beta1.RemoteNamespaceConditions) offloadingv1beta1.OffloadingPhaseType {
	if deleting {
		return offloadingv1beta1.TerminatingOffloadingPhaseType
	}
	required, ready, failed := 0, 0, 0
	for _, conditions := range twins {
		if !statusIs(conditions, offloadingv1beta1.OffloadingRequiredCondition) {
			continue
		}
		required++
		switch {
		case statusIs(conditions, offloadingv1beta1.RemoteNamespaceReadyCondition):
			ready++
		case !waiting(conditions):
			failed++
		}
	}
	switch {
	case required == 0:
		return offloadingv1beta1.NoClusterSelectedOffloadingPhaseType
	case ready == required:
		return offloadingv1beta1.ReadyOffloadingPhaseType
	case failed == required:
		return offloadingv1beta1.AllFailedOffloadingPhaseType
	case failed > 0:
		return offloadingv1beta1.SomeFailedOffloadingPhaseType
	default:
		return offloadingv1beta1.InProgressOffloadingPhaseType
	}
}

func statusIs(conditions offloadingv1beta1.RemoteNamespaceConditions, conditionType string) bool {
	c := find(conditions, conditionType)
	return c != nil && c.Status == corev1.ConditionTrue
}

// waiting tells whether a twin that is not ready may become so without anybody doing anything.
func waiting(conditions offloadingv1beta1.RemoteNamespaceConditions) bool {
	c := find(conditions, offloadingv1beta1.RemoteNamespaceReadyCondition)
	return c == nil || c.Reason == offloadingv1beta1.ReasonTwinPending || c.Reason == offloadingv1beta1.ReasonTwinTerminating
}

func find(conditions offloadingv1beta1.RemoteNamespaceConditions, conditionType string) *offloadingv1beta1.RemoteNamespaceCondition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// Blockers returns, in the order of their IDs, the clusters whose twin is not ready although it is required, each with the
// message of its condition.
func Blockers(twins map[corev1beta1.ClusterID]offloadingv1beta1.RemoteNamespaceConditions) []string {
	var blockers []string
	for _, cluster := range slices.Sorted(maps.Keys(twins)) {
		conditions := twins[cluster]
		ready := find(conditions, offloadingv1beta1.RemoteNamespaceReadyCondition)
		if !statusIs(conditions, offloadingv1beta1.OffloadingRequiredCondition) || ready == nil || ready.Status == corev1.ConditionTrue {
			continue
		}
		blockers = append(blockers, fmt.Sprintf("%s: %s", cluster, ready.Message))
	}
	return blockers
}
