package info

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/diagnosis"
)

// Cause is something that does not work, by the object that shows it.
type Cause struct {
	// Object by kind and name.
	Object string `json:"object"`
	// Message says what is wrong, in a sentence.
	Message string `json:"message"`
}

// String is the cause in one line.
func (c Cause) String() string { return c.Object + ": " + c.Message }

// summaries only repeat what conditions of other objects say.
var summaries = []string{corev1beta1.ConditionReady, corev1beta1.OffloadingNodeStatus, corev1beta1.OffloadingVirtualNodeStatus}

// causes lists what does not work of a peering, the first cause first. What runs Liqo in this cluster comes before all else, because
// without it nobody brings conditions up to date; then whether the peer can be reached, then whether it accepts us, then what runs the
// virtual nodes, and last what follows of all that. What says the same as an earlier cause is left out.
func causes(p *parts, report *PeerReport) []Cause {
	var found []Cause
	var known []string
	// add leaves out what an earlier cause said already; gist is the message without the words around it.
	add := func(object, message, gist string) {
		repeats := func(earlier string) bool { return strings.Contains(earlier, gist) || strings.Contains(gist, earlier) }
		if gist != "" && slices.ContainsFunc(known, repeats) {
			return
		}
		if gist != "" {
			known = append(known, gist)
		}
		found = append(found, Cause{object, message})
	}
	conditions := func(include func(Condition) bool) {
		for _, condition := range report.Conditions {
			if !condition.Good && include(condition) {
				add(condition.Object, sentence(condition), condition.Message)
			}
		}
	}
	if len(p.liqo) == 0 && !slices.Contains(p.unseen, podsIn(p.liqoNamespace)) {
		add("Namespace "+p.liqoNamespace, "there are no pods of Liqo: nobody brings conditions up to date", "")
	}
	for _, why := range unready(p.liqo, p.liqoNamespace) {
		add(why.Object, why.Message, why.Message)
	}
	foreign := "ForeignCluster " + p.foreign.Name
	conditions(func(c Condition) bool { return c.Object == foreign && c.Type == corev1beta1.APIServerStatus })
	conditions(func(c Condition) bool { return c.Object == foreign && !slices.Contains(summaries, c.Type) })
	for _, alert := range report.Authentication.Alerts {
		if !ofCondition(alert) {
			add(foreign, alert, alert)
		}
	}
	for _, why := range unready(p.pods, p.namespace) {
		add(why.Object, why.Message, why.Message)
	}
	for _, slice := range report.Authentication.ResourceSlices {
		for _, alert := range slice.Alerts {
			add("ResourceSlice "+slice.Name, alert, alert)
		}
	}
	conditions(func(c Condition) bool {
		return strings.HasPrefix(c.Object, "VirtualNode ") && c.Type == corev1beta1.ConditionReady
	})
	conditions(func(c Condition) bool { return strings.HasPrefix(c.Object, "Node ") })
	if len(found) == 0 {
		conditions(func(Condition) bool { return true })
	}
	return found
}

// podsIn names the pods of a namespace.
func podsIn(namespace string) string { return "pods in namespace " + namespace }

// sentence says in words what a condition shows.
func sentence(c Condition) string {
	what := c.Type + " is " + c.Status
	switch {
	case c.Reason != "" && c.Message != "":
		return what + ": " + c.Reason + ": " + c.Message
	case c.Reason+c.Message != "":
		return what + ": " + c.Reason + c.Message
	default:
		return what
	}
}

// ofCondition tells whether an alert is that of a condition: it begins with the condition's type.
func ofCondition(alert string) bool {
	kind, _, found := strings.Cut(alert, ": ")
	return found && !strings.Contains(kind, " ")
}

// unready are the pods that are not ready.
func unready(pods []corev1.Pod, namespace string) []Cause {
	var found []Cause
	for i := range pods {
		why := diagnosis.WhyNotReady(&pods[i])
		if why != "" && pods[i].Status.Phase != corev1.PodSucceeded {
			found = append(found, Cause{"Pod " + namespace + "/" + pods[i].Name, why})
		}
	}
	slices.SortFunc(found, func(a, b Cause) int { return strings.Compare(a.Object, b.Object) })
	return found
}
