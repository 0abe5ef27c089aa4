package mirror

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastManager is the field manager other than self who wrote a field last, as far as the record of managed fields tells; empty if it
// does not. The name comes from the peer: it is bounded, and to be quoted where it is shown.
func LastManager(entries []metav1.ManagedFieldsEntry, path []string, self string) string {
	others := slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == self })
	return lastManager(others, path)
}
