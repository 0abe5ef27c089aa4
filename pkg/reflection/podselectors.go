package reflection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spelledConstraints are the pod's topology spread constraints with matchLabelKeys spelled out. An API server enters the keys into
// the selector and keeps them, too, which the next API server refuses; older ones do not enter them. crossing are the labels that
// the remote pod has of the local one's. Our own labels never count.
func spelledConstraints(constraints []corev1.TopologySpreadConstraint, crossing map[string]string) []corev1.TopologySpreadConstraint {
	for i := range constraints {
		c := &constraints[i]
		c.LabelSelector = withoutOurLabels(spellOut(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn, crossing))
		// How many domains there have to be was asked of this cluster's nodes, of which the virtual one is one.
		c.MatchLabelKeys, c.MinDomains = nil, nil
	}
	return constraints
}

// spellTerms does the same to the terms of an anti-affinity.
func spellTerms(anti *corev1.PodAntiAffinity, crossing map[string]string) {
	for _, term := range antiAffinityTerms(anti) {
		term.LabelSelector = spellOut(term.LabelSelector, term.MatchLabelKeys, metav1.LabelSelectorOpIn, crossing)
		term.LabelSelector = withoutOurLabels(spellOut(term.LabelSelector, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn, crossing))
		term.MatchLabelKeys, term.MismatchLabelKeys = nil, nil
	}
}

// antiAffinityTerms are all terms of an anti-affinity, to be read or changed in place.
func antiAffinityTerms(anti *corev1.PodAntiAffinity) []*corev1.PodAffinityTerm {
	var terms []*corev1.PodAffinityTerm
	for i := range anti.RequiredDuringSchedulingIgnoredDuringExecution {
		terms = append(terms, &anti.RequiredDuringSchedulingIgnoredDuringExecution[i])
	}
	for i := range anti.PreferredDuringSchedulingIgnoredDuringExecution {
		terms = append(terms, &anti.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
	}
	return terms
}

// spellOut returns the selector with the pod's own value of each key, as an API server enters it. A key that the remote pod does not
// have counts for nothing, as Kubernetes has it, also where this cluster's API server entered it. Without a selector keys mean nothing.
func spellOut(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator, crossing map[string]string) *metav1.LabelSelector {
	if selector == nil || len(keys) == 0 {
		return selector
	}
	selector = selector.DeepCopy()
	for _, key := range keys {
		value, crosses := crossing[key]
		// Nobody but an API server names a key there: it refuses those who do.
		entered := func(e metav1.LabelSelectorRequirement) bool { return e.Key == key && e.Operator == operator }
		switch {
		case !crosses:
			selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, entered)
		case !slices.ContainsFunc(selector.MatchExpressions, entered):
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
	return selector
}
