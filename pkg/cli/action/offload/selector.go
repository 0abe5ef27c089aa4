package offload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

var operators = map[selection.Operator]corev1.NodeSelectorOperator{
	selection.In:           corev1.NodeSelectorOpIn,
	selection.Equals:       corev1.NodeSelectorOpIn,
	selection.DoubleEquals: corev1.NodeSelectorOpIn,
	selection.NotIn:        corev1.NodeSelectorOpNotIn,
	selection.NotEquals:    corev1.NodeSelectorOpNotIn,
	selection.Exists:       corev1.NodeSelectorOpExists,
	selection.DoesNotExist: corev1.NodeSelectorOpDoesNotExist,
	selection.GreaterThan:  corev1.NodeSelectorOpGt,
	selection.LessThan:     corev1.NodeSelectorOpLt,
}

// Selector returns the node selector that selects a virtual node if any of the label selectors does. None selects all nodes.
func Selector(selectors []string) (corev1.NodeSelector, error) {
	var result corev1.NodeSelector
	for _, text := range selectors {
		parsed, err := labels.Parse(text)
		if err != nil {
			return result, fmt.Errorf("the cluster selector %q cannot be parsed: %w", text, err)
		}
		requirements, selectable := parsed.Requirements()
		if !selectable || len(requirements) == 0 {
			return result, fmt.Errorf("the cluster selector %q is empty", text)
		}
		term := corev1.NodeSelectorTerm{}
		for _, requirement := range requirements {
			operator, known := operators[requirement.Operator()]
			if !known {
				return result, fmt.Errorf("the cluster selector %q uses the operator %q, which nodes cannot be selected by", text, requirement.Operator())
			}
			values := requirement.Values().List()
			if len(values) == 0 {
				values = nil
			}
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: requirement.Key(), Operator: operator, Values: values})
		}
		result.NodeSelectorTerms = append(result.NodeSelectorTerms, term)
	}
	return result, nil
}
