package counting

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Older tells whether an object comes before another one: it was created earlier, or in the same second and its name is less. Nothing is
// older than itself.
func Older(a, b metav1.Object) bool {
	at, than := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Equal(&than) {
		return a.GetName() < b.GetName()
	}
	return at.Before(&than)
}
