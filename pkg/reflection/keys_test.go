package reflection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a provider does not let objects of others have stays at home; the rest of the object crosses, and our own keys with it.
func TestKeysThatAProviderRefusesStayAtHome(t *testing.T) {
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web", "grafana_dashboard": "1", "offloading.liqo.io/origin": "rome"},
			Annotations: map[string]string{"vault.example.com/role": "payroll", "liqo.io/origin-uid": "u"}}
	}
	const words = `admission policy denied request: KeyNotAllowed: consumers' objects may not have these labels and annotations here (offloading.consumers.objectKeys): `
	for name, tc := range map[string]struct {
		words               string
		labels, annotations int
		given               string
	}{
		"a label and an annotation": {words + "grafana_dashboard vault.example.com/role", 2, 1, "grafana_dashboard, vault.example.com/role"},
		"a label":                   {words + "grafana_dashboard", 2, 2, "grafana_dashboard"},
		"what it does not have":     {words + "other app.kubernetes.io/name", 3, 2, ""},
		"ours":                      {words + "offloading.liqo.io/origin liqo.io/origin-uid", 3, 2, ""},
		"another refusal":           {"VolumeNotAllowed: app", 3, 2, ""},
	} {
		for _, kind := range Kinds() {
			if kind.Relax == nil {
				continue
			}
			wanted := kind.RemoteKind().NewObject()
			m := meta()
			wanted.SetLabels(m.Labels)
			wanted.SetAnnotations(m.Annotations)
			relaxed, given := kind.Relax(wanted, tc.words)
			if (relaxed == nil) != (tc.given == "") || relaxed != nil && (len(relaxed.GetLabels()) != tc.labels || len(relaxed.GetAnnotations()) != tc.annotations) {
				t.Errorf("%s, kind %s: %v is without %q", name, kind.Name, relaxed, given)
			}
			if diff := cmp.Diff(meta().Labels, wanted.GetLabels()); diff != "" {
				t.Errorf("%s, kind %s: the wanted object changed:\n%s", name, kind.Name, diff)
			}
		}
	}
	var kinds []string
	for _, kind := range Kinds() {
		if kind.Relax != nil {
			kinds = append(kinds, kind.Name)
		}
	}
	if len(kinds) != 6 {
		t.Errorf("these kinds cross without refused keys: %v", kinds)
	}
}
