package v1beta1

import (
	"fmt"
	"slices"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// IsSet tells whether an annotation is there and does not say no.
func IsSet(annotations map[string]string, key string) bool {
	value, ok := annotations[key]
	return ok && value != "false" && value != "False" && value != "0"
}

// WhyCordoned says in words that the provider lets the slice get no new pods; empty if it does.
func (s *ResourceSlice) WhyCordoned() string {
	c := s.trouble(CordonedCondition)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("the provider takes no new pods of ResourceSlice %s: %s: %s", s.Name, c.Reason, c.Message)
}

// WhyOverCommitted says in words by how much more of the slice runs than it is offered; empty if no more does.
func (s *ResourceSlice) WhyOverCommitted() string {
	c := s.trouble(OverCommittedCondition)
	if c == nil {
		return ""
	}
	return c.Message
}

// trouble is a condition of the summary that is true; nil if it is not.
func (s *ResourceSlice) trouble(conditionType string) *corev1beta1.Condition {
	i := slices.IndexFunc(s.Status.Summary, func(c corev1beta1.Condition) bool { return c.Type == conditionType && c.Status == "True" })
	if i < 0 {
		return nil
	}
	return &s.Status.Summary[i]
}

// WhyDenied says in words that the provider denies the slice, or a part of it; empty if it does not.
func (s *ResourceSlice) WhyDenied() string {
	for _, kind := range []string{AuthenticationCondition, ResourcesCondition} {
		i := slices.IndexFunc(s.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == kind && c.Status == Denied })
		if i >= 0 {
			c := &s.Status.Conditions[i]
			return fmt.Sprintf("the provider denies ResourceSlice %s: %s: %s", s.Name, c.Reason, c.Message)
		}
	}
	return ""
}
