package chart

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The right to write the status of Ingresses comes with the option that needs it.
func TestStatusBackHasItsRight(t *testing.T) {
	for name, tc := range map[string]struct {
		values string
		verbs  []string
	}{
		"off": {valueSets["default"], nil},
		"on":  {valueSets["accounts"], []string{"patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, text := range rendered {
				for _, document := range strings.Split("\n"+text, "\n---") {
					if !strings.Contains(document, "kind: ClusterRole\n") {
						continue
					}
					var role rbacv1.ClusterRole
					if err := yaml.Unmarshal([]byte(document), &role); err != nil {
						t.Fatal(err)
					}
					if role.Name != "liqo-virtual-kubelet-local" {
						continue
					}
					found = true
					var verbs []string
					for _, rule := range role.Rules {
						if slices.Contains(rule.Resources, "ingresses/status") {
							verbs = append(verbs, rule.Verbs...)
						}
					}
					if !slices.Equal(verbs, tc.verbs) {
						t.Errorf("verbs for the status of Ingresses are %v, want %v", verbs, tc.verbs)
					}
				}
			}
			if !found {
				t.Fatal("there is no ClusterRole liqo-virtual-kubelet-local")
			}
		})
	}
}
