// Package conditions sets and finds conditions: the standard ones, and those lists in which Liqo v1's statuses stand
// beside the standard Ready condition. The times are passed in, so that tests can fix them.
package conditions

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// MaxMessage bounds the message of a condition, in bytes.
const MaxMessage = corev1beta1.MaxMessage

// Set puts a condition into a list, replacing the one of its type, and tells whether anything changed. The transition
// time moves only with the status.
func Set(list *[]corev1beta1.Condition, c corev1beta1.Condition, now time.Time) bool {
	c.Message = Bound(c.Message)
	old := Find(*list, c.Type)
	if old == nil {
		c.LastTransitionTime = metav1.NewTime(now)
		*list = append(*list, c)
		return true
	}
	c.LastTransitionTime = old.LastTransitionTime
	if old.Status != c.Status {
		c.LastTransitionTime = metav1.NewTime(now)
	}
	if *old == c {
		return false
	}
	*old = c
	return true
}

// Replace makes a list those conditions that are wanted. What was there stays in its place and keeps its time as long as its status stays.
func Replace(list *[]corev1beta1.Condition, wanted []corev1beta1.Condition, now time.Time) {
	*list = slices.DeleteFunc(*list, func(c corev1beta1.Condition) bool { return Find(wanted, c.Type) == nil })
	for _, c := range wanted {
		Set(list, c, now)
	}
	if len(*list) == 0 {
		*list = nil
	}
}

// Find returns the condition of a type, or nil. The pointer leads into the list.
func Find(list []corev1beta1.Condition, conditionType string) *corev1beta1.Condition {
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}

// Is tells whether the condition of a type has a status; a missing condition has none.
func Is(list []corev1beta1.Condition, conditionType, status string) bool {
	c := Find(list, conditionType)
	return c != nil && c.Status == status
}

// Remove takes the condition of a type out of a list and tells whether it was there.
func Remove(list *[]corev1beta1.Condition, conditionType string) bool {
	for i := range *list {
		if (*list)[i].Type == conditionType {
			*list = append((*list)[:i], (*list)[i+1:]...)
			return true
		}
	}
	return false
}

// SetStandard puts a standard condition into a list and tells whether anything changed.
func SetStandard(list *[]metav1.Condition, c metav1.Condition) bool {
	c.Message = Bound(c.Message)
	return meta.SetStatusCondition(list, c)
}

// Bound makes a message printable and cuts it to MaxMessage bytes without splitting a character.
func Bound(message string) string { return corev1beta1.BoundMessage(message) }
