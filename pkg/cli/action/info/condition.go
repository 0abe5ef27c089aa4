package info

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Condition of an object that a peering consists of.
type Condition struct {
	// Object by kind and name.
	Object string `json:"object"`
	// Type, Status, Reason and Message of the condition.
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Good tells whether that is how it should be.
	Good bool `json:"good"`
}

// good are the statuses of our own kinds' conditions that are as they should be.
var good = map[string]bool{
	string(corev1.ConditionTrue): true, corev1beta1.StatusEstablished: true, corev1beta1.StatusReady: true, corev1beta1.StatusNone: true,
	offloadingv1beta1.StatusRunning: true,
}

// problems are the conditions that are there only while something waits for an administrator, be they true.
var problems = []string{
	offloadingv1beta1.RemovalsHeldCondition, offloadingv1beta1.CordonedCondition, offloadingv1beta1.OverCommittedCondition, corev1beta1.CutOffCondition,
}

// isGood tells whether a condition of one of our own kinds is as it should be.
func isGood(c corev1beta1.Condition) bool {
	return good[c.Status] && !slices.Contains(problems, c.Type)
}

// own are the conditions of one of our own objects.
func own(object string, list []corev1beta1.Condition) []Condition {
	result := make([]Condition, 0, len(list))
	for _, c := range list {
		result = append(result, Condition{object, c.Type, c.Status, c.Reason, c.Message, isGood(c)})
	}
	return result
}

// ofMap is the condition of a NamespaceMap that waits for an administrator, if it does.
func ofMap(nm *offloadingv1beta1.NamespaceMap) []Condition {
	c := meta.FindStatusCondition(nm.Status.Conditions, offloadingv1beta1.RemovalsHeldCondition)
	if c == nil {
		return nil
	}
	return []Condition{{Object: "NamespaceMap " + nm.Name, Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message}}
}

// ofNode are the conditions of a Node; it should be ready, and nothing else should be the case.
func ofNode(node *corev1.Node) []Condition {
	result := make([]Condition, 0, len(node.Status.Conditions))
	for _, c := range node.Status.Conditions {
		wanted := corev1.ConditionFalse
		if c.Type == corev1.NodeReady {
			wanted = corev1.ConditionTrue
		}
		result = append(result, Condition{"Node " + node.Name, string(c.Type), string(c.Status), c.Reason, c.Message, c.Status == wanted})
	}
	return result
}

// ofForeign are the conditions of a ForeignCluster, those of its modules included.
func ofForeign(foreign *corev1beta1.ForeignCluster) []Condition {
	name, modules := "ForeignCluster "+foreign.Name, &foreign.Status.Modules
	result := own(name, foreign.Status.All())
	for _, module := range []corev1beta1.Module{modules.Authentication, modules.Networking, modules.Offloading} {
		result = append(result, own(name, module.Conditions)...)
	}
	return result
}

// authentication is a peering's module with the conditions that tell whether the peer's API server answers, and whether it was cut off: then
// nobody can be authenticated with.
func authentication(foreign *corev1beta1.ForeignCluster) corev1beta1.Module {
	module := *foreign.Status.Modules.Authentication.DeepCopy()
	for _, condition := range foreign.Status.All() {
		if (condition.Type == corev1beta1.APIServerStatus || condition.Type == corev1beta1.CutOffCondition) && !isGood(condition) {
			module.Conditions = append([]corev1beta1.Condition{condition}, module.Conditions...)
		}
	}
	if foreign.IsMarkedDead() {
		module.Conditions = append(module.Conditions, markedDead(foreign))
	}
	return module
}

// permanentlyUnreachable is what info calls the mark of a dead peer among the conditions; no object has such a condition.
const permanentlyUnreachable = "PermanentlyUnreachable"

// markedDead is what an administrator said of a peer, as a condition, with how to go on.
func markedDead(foreign *corev1beta1.ForeignCluster) corev1beta1.Condition {
	return corev1beta1.Condition{Type: permanentlyUnreachable, Status: corev1beta1.StatusError, Message: fmt.Sprintf(
		"it is marked so: what it holds of this cluster is given up, volumes included; "+
			"finish with 'liqoctl unpeer --force %s', or take the word back with 'liqoctl peer'",
		foreign.Spec.ClusterID)}
}
