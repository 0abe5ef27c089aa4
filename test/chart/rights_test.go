package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/pkg/controller/networking/gateway"
)

// boundByUs are the ClusterRoles that our controllers bind cluster-wide themselves.
var boundByUs = []string{"liqo-virtual-kubelet", "liqo-virtual-kubelet-bootstrap", "liqo-virtual-kubelet-account"}

// allTurnedOn is an installation with all that brings rights along.
const allTurnedOn = `discovery: {config: {clusterID: rome}}
networking: {enabled: true}
metrics: {enabled: true, prometheusOperator: {enabled: true}}
storage: {enabled: true}
virtualKubelet: {nodeIdentity: serviceAccount, virtualNode: {keepDaemonSetsOff: true}}
offloading: {reflection: {ingress: {statusBack: true}}, consumers: {networkPolicies: true}}`

// The golden file has all rights that somebody wrote by hand, and who gets them: first those of the default installation, then what is
// otherwise with everything that can be turned on, and at an older API server.
func TestRightsThatAreWrittenByHand(t *testing.T) {
	var text strings.Builder
	shown := map[string]string{}
	for _, installation := range []struct{ name, minor, values string }{
		{"by default", "36", valueSets["default"]}, {"with everything", "36", allTurnedOn}, {"with everything, at an older API server", "35", allTurnedOn},
	} {
		text.WriteString("# Rights " + installation.name + ".\n")
		rights := rightsByHand(t, installation.minor, installation.values)
		for _, name := range slices.Sorted(maps.Keys(rights)) {
			if shown[name] != rights[name] {
				text.WriteString(name + ":\n" + rights[name])
			}
			shown[name] = rights[name]
		}
	}
	compare(t, "rights", text.String())
}

// rightsByHand are the rules of roles and the subjects of bindings, one a line, without the roles that are generated.
func rightsByHand(t *testing.T, minor, values string) map[string]string {
	t.Helper()
	rendered, err := renderFor(t, chartutil.KubeVersion{Version: "v1." + minor + ".0", Major: "1", Minor: minor}, values)
	if err != nil {
		t.Fatal(err)
	}
	var generated strings.Builder
	for _, file := range load(t).Files {
		generated.Write(file.Data)
	}
	all := map[string]string{}
	for _, file := range rendered {
		for _, document := range strings.Split("\n"+file, "\n---") {
			var object struct {
				rbacv1.ClusterRole `json:",inline"`
				RoleRef            rbacv1.RoleRef   `json:"roleRef"`
				Subjects           []rbacv1.Subject `json:"subjects"`
			}
			if !strings.Contains(document, "\napiVersion: rbac.authorization.k8s.io/") || strings.Contains(generated.String(), strings.TrimSpace(document)) {
				continue
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSpace(object.Kind + " " + object.Name + " " + object.Namespace)
			// By such a label Kubernetes adds the rules to a role of its own.
			for _, key := range slices.Sorted(maps.Keys(object.Labels)) {
				if strings.HasPrefix(key, "rbac.authorization.k8s.io/") {
					all[name] += oneLine("- label", key+":", object.Labels[key])
				}
			}
			for _, rule := range object.Rules {
				what := strings.Join(slices.Concat(rule.Resources, rule.NonResourceURLs), ", ")
				if len(rule.ResourceNames) > 0 {
					what += " named " + strings.Join(rule.ResourceNames, ", ")
				}
				all[name] += oneLine("-", strings.Join(rule.APIGroups, ", "), what+":", strings.Join(rule.Verbs, ", "))
			}
			for _, subject := range object.Subjects {
				all[name] += oneLine("-", object.RoleRef.Kind, object.RoleRef.Name+":", subject.Kind, subject.Name, subject.Namespace)
			}
		}
	}
	return all
}

// oneLine has words with one space between them, also where one is empty.
func oneLine(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ") + "\n"
}

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
