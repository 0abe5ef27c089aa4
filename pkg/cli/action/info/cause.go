package info

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
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

// cures are the commands that mend what a condition of a ForeignCluster says, by its type and reason: those of which it is certain.
var cures = map[[2]string]string{
	{corev1beta1.NetworkGatewayPresence, corev1beta1.ReasonGatewayMissing}:     "connect the two networks with 'liqoctl network connect'",
	{corev1beta1.NetworkConnectionStatus, networkingv1beta1.ReasonKeyMissing}:  network.WayOut(networkingv1beta1.ReasonKeyMissing),
	{corev1beta1.AuthIdentityControlPlaneStatus, authv1beta1.ReasonKeyMissing}: "run 'liqoctl peer' again",
	{corev1beta1.CutOffCondition, corev1beta1.ReasonCutOff}:                    "if the peer is to be trusted again, take it back as the message says",
}

// Cure is the command that mends the first cause of a peering that does not work; empty where that is not certain.
func (r *PeerReport) Cure() string {
	for _, c := range r.Conditions {
		if len(r.Causes) > 0 && r.Causes[0] == (Cause{c.Object, sentence(c)}) {
			return cures[[2]string{c.Type, c.Reason}]
		}
	}
	return ""
}

// summaries only repeat what conditions of other objects say.
var summaries = []string{corev1beta1.ConditionReady, corev1beta1.OffloadingNodeStatus, corev1beta1.OffloadingVirtualNodeStatus}

// causes lists what does not work of a peering, the first cause first. What runs Liqo in this cluster comes before all else, because
// without it nobody brings conditions up to date; then whether the peer can be reached, then whether it accepts us, then what runs the
// virtual nodes, and last what follows of all that. What says the same as an earlier cause is left out.
func causes(p *parts, report *PeerReport) []Cause {
	f := &findings{conditions: report.Conditions}
	foreign := "ForeignCluster " + p.foreign.Name
	if len(p.liqo) == 0 && !slices.Contains(p.unseen, podsIn(p.liqoNamespace)) {
		f.add("Namespace "+p.liqoNamespace, "there are no pods of Liqo: nobody brings conditions up to date", "")
	}
	f.pods(p.liqo, p.liqoNamespace)
	if len(f.found) == 0 {
		for _, lack := range p.lacking { // of which no pod tells
			f.add(lack.Object, lack.Why, lack.Why)
		}
	}
	f.those(func(c Condition) bool { return c.Object == foreign && c.Type == corev1beta1.APIServerStatus })
	f.those(func(c Condition) bool { return c.Object == foreign && !slices.Contains(summaries, c.Type) })
	f.those(func(c Condition) bool { return strings.HasPrefix(c.Object, internalNode) })
	for _, alert := range report.Authentication.Alerts {
		if !ofCondition(alert) {
			f.add(foreign, alert, alert)
		}
	}
	f.pods(p.pods, p.namespace)
	f.slices(report.Authentication.ResourceSlices)
	f.those(saysWhy)
	f.those(func(c Condition) bool {
		return slices.Contains(problems, c.Type) || strings.HasPrefix(c.Object, "VirtualNode ") && c.Type == corev1beta1.ConditionReady
	})
	f.those(func(c Condition) bool { return strings.HasPrefix(c.Object, "Node ") })
	if len(f.found) == 0 {
		f.those(func(Condition) bool { return true })
	}
	return f.found
}

// saysWhy tells the condition of a Node that says itself that it is not ready, and why. One of which nothing is heard only follows.
func saysWhy(c Condition) bool {
	return strings.HasPrefix(c.Object, "Node ") && c.Type == string(corev1.NodeReady) && c.Status == string(corev1.ConditionFalse)
}

// findings are the causes found so far.
type findings struct {
	// conditions are all that there are.
	conditions []Condition
	found      []Cause
	known      []string
}

// add adds a cause, unless an earlier one said the same; gist is the message without the words around it.
func (f *findings) add(object, message, gist string) {
	repeats := func(earlier string) bool { return strings.Contains(earlier, gist) || strings.Contains(gist, earlier) }
	if gist != "" && slices.ContainsFunc(f.known, repeats) {
		return
	}
	if gist != "" {
		f.known = append(f.known, gist)
	}
	f.found = append(f.found, Cause{object, message})
}

// those adds the conditions among those that are not as they should be.
func (f *findings) those(include func(Condition) bool) {
	for _, condition := range f.conditions {
		if !condition.Good && include(condition) {
			f.add(condition.Object, sentence(condition), condition.Message)
		}
	}
}

// slices adds what is wrong with ResourceSlices, but for what is wanted.
func (f *findings) slices(all []Slice) {
	for _, slice := range all {
		for _, alert := range slice.Alerts {
			if _, gist, _ := strings.Cut(alert, ": "); !slices.Contains(slice.Wanted, alert) {
				f.add("ResourceSlice "+slice.Name, alert, gist)
			}
		}
	}
}

// pods adds the pods that are not ready.
func (f *findings) pods(pods []corev1.Pod, namespace string) {
	for _, why := range unready(pods, namespace) {
		f.add(why.Object, why.Message, why.Message)
	}
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
