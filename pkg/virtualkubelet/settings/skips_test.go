package settings

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Namespaces are read again when one is annotated or not any more, and else never.
func TestSkippedNamespacesAreNoticed(t *testing.T) {
	refreshed := 0
	s := &skips{refresh: func() { refreshed++ }}
	for i, step := range []struct {
		value string
		want  int
	}{{"", 0}, {"", 0}, {"a", 1}, {"a", 1}, {"b", 2}, {"", 3}} {
		m := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"x": "y"}}}
		if step.value != "" {
			m.Annotations[offloadingv1beta1.SkippedNamespacesAnnotation] = step.value
		}
		if s.see(m); refreshed != step.want {
			t.Errorf("version %d (%q): namespaces were read %d times again, want %d", i, step.value, refreshed, step.want)
		}
	}
	s = &skips{refresh: func() { refreshed++ }}
	s.see(&offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		offloadingv1beta1.SkippedNamespacesAnnotation: "a"}}})
	if refreshed != 3 {
		t.Error("after a restart namespaces were read twice")
	}
}
