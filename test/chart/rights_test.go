package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/pkg/controller/networking/gateway"
)

// boundByUs are the ClusterRoles that our controllers bind cluster-wide themselves.
var boundByUs = []string{"liqo-virtual-kubelet", "liqo-virtual-kubelet-bootstrap", "liqo-virtual-kubelet-account"}

// Whoever holds a ClusterRole of ours cluster-wide gets neither Secrets nor tokens by it, nor the right to take them.
func TestNothingGrantsSecretsOrTokensClusterWide(t *testing.T) {
	for name, values := range valueSets {
		rendered, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		roles := map[string]rbacv1.ClusterRole{}
		bound := slices.Clone(boundByUs)
		for _, text := range rendered {
			for _, document := range strings.Split("\n"+text, "\n---") {
				var role rbacv1.ClusterRole
				var binding rbacv1.ClusterRoleBinding
				switch {
				case strings.Contains(document, "kind: ClusterRoleBinding\n"):
					if err := yaml.Unmarshal([]byte(document), &binding); err != nil {
						t.Fatal(err)
					}
					bound = append(bound, binding.RoleRef.Name)
				case strings.Contains(document, "kind: ClusterRole\n"):
					if err := yaml.Unmarshal([]byte(document), &role); err != nil {
						t.Fatal(err)
					}
					roles[role.Name] = role
				}
			}
		}
		if len(bound) == len(boundByUs) || len(roles[bound[len(bound)-1]].Rules) == 0 {
			t.Fatalf("%s: the chart's bindings were not understood: %v", name, bound)
		}
		for _, role := range bound {
			for _, rule := range roles[role].Rules {
				for _, resource := range []string{"secrets", "serviceaccounts/token", "serviceaccounts/*", "*"} {
					if slices.Contains(rule.Resources, resource) {
						t.Errorf("%s: ClusterRole %s grants %s cluster-wide", name, role, resource)
					}
				}
				named := len(rule.ResourceNames) > 0
				if slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Verbs, "bind") && !named {
					t.Errorf("%s: ClusterRole %s lets its holder take any right: %v", name, role, rule)
				}
			}
		}
	}
}

// A rule about a kind that there is not grants nothing, and nobody is told: the plural of PublicKey is publickeies.
func TestRightsAreAboutKindsThatExist(t *testing.T) {
	rendered := documents(t, "v1.36.0", valueSets["network"])
	known, rules := map[string]bool{}, map[string][]rbacv1.PolicyRule{
		"gateways' servers": gateway.Rules("gatewayservers", "milan"), "gateways' clients": gateway.Rules("gatewayclients", "milan"),
	}
	for name, document := range rendered {
		if definition, is := strings.CutPrefix(name, "CustomResourceDefinition "); is {
			known[definition] = true
		}
		var role rbacv1.ClusterRole
		if strings.HasPrefix(name, "ClusterRole ") || strings.HasPrefix(name, "Role ") {
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
			rules[name] = role.Rules
		}
	}
	checked := 0
	for who, all := range rules {
		for _, rule := range all {
			if len(rule.APIGroups) == 0 || !strings.HasSuffix(rule.APIGroups[0], "liqo.io") {
				continue
			}
			for _, resource := range rule.Resources {
				plural, _, _ := strings.Cut(resource, "/")
				if checked++; !known[plural+"."+rule.APIGroups[0]] {
					t.Errorf("%s: there is no %s.%s", who, plural, rule.APIGroups[0])
				}
			}
		}
	}
	if checked == 0 {
		t.Fatal("no rule was found")
	}
}

// What a virtual kubelet may read of pods for reflection, it may in offloaded namespaces only, where this role is bound.
func TestReflectionReadsPodsInOffloadedNamespacesOnly(t *testing.T) {
	rendered, err := render(t, valueSets["default"])
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, text := range rendered {
		for _, document := range strings.Split("\n"+text, "\n---") {
			var role rbacv1.ClusterRole
			if !strings.Contains(document, "kind: ClusterRole\n") {
				continue
			}
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				if strings.HasPrefix(role.Name, "liqo-virtual-kubelet") && slices.Contains(rule.Resources, "pods") && slices.Contains(rule.APIGroups, "") {
					got[role.Name] = append(got[role.Name], rule.Verbs...)
				}
			}
		}
	}
	want := map[string][]string{
		"liqo-virtual-kubelet-local": {"list", "watch"},
		// A consumer's in its twin namespaces here.
		"liqo-virtual-kubelet-remote": {"get", "list", "watch"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
