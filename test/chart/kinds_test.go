package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/offloading/vkoptions"
	"liqo.io/liqo/pkg/reflection"
)

// reflected is what the chart has to know of a kind that crosses.
type reflected struct {
	// atHome and remote are the rights that virtual kubelets need in offloaded namespaces and in their twins.
	atHome, remote rights
	// policies that its users may choose.
	policies []offloadingv1beta1.ReflectionType
	// turnedOn are the values of a provider that lets consumers have the kind, where by default none does.
	turnedOn string
	// golden are files below pkg/reflection/testdata that show what becomes of one; its own folder if empty.
	golden string
}

type rights struct {
	resource schema.GroupResource
	verbs    []string
}

var (
	readVerbs    = []string{"get", "list", "watch"}
	writeVerbs   = []string{"create", "patch", "delete"}
	bothWays     = slices.Concat(readVerbs, writeVerbs)
	listPolicies = []offloadingv1beta1.ReflectionType{offloadingv1beta1.DenyList, offloadingv1beta1.AllowList}
)

// reflectedKinds are those of the table and the four that have rules of their own.
func reflectedKinds() map[string]reflected {
	core := func(resource string) schema.GroupResource { return schema.GroupResource{Resource: resource} }
	shadows := schema.GroupResource{Group: offloadingv1beta1.GroupVersion.Group, Resource: "shadowpods"}
	kinds := map[string]reflected{
		"pod":   {atHome: rights{core("pods"), []string{"list", "watch"}}, remote: rights{shadows, bothWays}},
		"event": {atHome: rights{core("events"), []string{"create", "patch"}}, remote: rights{core("events"), readVerbs}, policies: listPolicies},
		// Tokens are asked for as a node or by a Role of the chart, and become Secrets.
		"serviceaccount":        {remote: rights{core("secrets"), writeVerbs}, golden: "tokensecret.yaml"},
		"persistentvolumeclaim": {atHome: rights{core("persistentvolumeclaims"), readVerbs}, remote: rights{core("persistentvolumeclaims"), bothWays}},
	}
	for _, kind := range reflection.Kinds() {
		verbs := bothWays
		if kind.WriteOnly() {
			verbs = writeVerbs
		}
		of := reflected{atHome: rights{kind.GVR.GroupResource(), readVerbs}, remote: rights{kind.RemoteKind().GVR.GroupResource(), verbs}, policies: kind.Policies()}
		if kind.Name == "networkpolicy" {
			of.turnedOn = allTurnedOn
		}
		kinds[kind.Name] = of
	}
	return kinds
}

// Each reflected kind has its field in the configuration and its value in the chart, which arrives at virtual kubelets; the policies that it may
// have are those of the chart's schema; virtual kubelets have rights to it in both clusters; what consumers write is looked at by the admission
// policy; and golden files show what becomes of one.
func TestReflectedKindsAreKnownEverywhere(t *testing.T) {
	kinds := reflectedKinds()
	names := slices.Sorted(maps.Keys(kinds))
	if diff := cmp.Diff(names, fieldsOfReflection()); diff != "" {
		t.Errorf("v1alpha1.Reflection has other kinds than are reflected (-reflected +configured):\n%s", diff)
	}
	allowed := below(t, schemaOfValues(t), "offloading", "reflection")["properties"].(map[string]any)
	var given []string
	for name, property := range allowed {
		if at(property, "properties", "workers") != nil {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	if diff := cmp.Diff(names, given); diff != "" {
		t.Errorf("offloading.reflection has workers of other kinds than are reflected (-reflected +values):\n%s", diff)
	}
	workersArrive(t, names)
	byDefault := valueSets["default"]
	local, remote := rulesOf(t, byDefault, "liqo-virtual-kubelet-local"), rulesOf(t, byDefault, "liqo-virtual-kubelet-remote")
	policy := policyNamed(t, valueSets["default"], "admissionpolicies.yaml", "liqo-consumer-objects").policy
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			kind := kinds[name]
			if diff := cmp.Diff(kind.policies, policiesOf(allowed, name)); diff != "" {
				t.Errorf("values and code know other policies (-code +values):\n%s", diff)
			}
			for _, missing := range kind.atHome.lacking(local) {
				t.Errorf("ClusterRole liqo-virtual-kubelet-local does not allow to %s %s", missing, kind.atHome.resource)
			}
			remote := remote
			if kind.turnedOn != "" {
				if missing := kind.remote.lacking(remote); len(missing) < len(kind.remote.verbs) {
					t.Errorf("ClusterRole liqo-virtual-kubelet-remote allows some of %v %s although nobody turned it on", kind.remote.verbs, kind.remote.resource)
				}
				remote = rulesOf(t, kind.turnedOn, "liqo-virtual-kubelet-remote")
			}
			for _, missing := range kind.remote.lacking(remote) {
				t.Errorf("ClusterRole liqo-virtual-kubelet-remote does not allow to %s %s", missing, kind.remote.resource)
			}
			if slices.Contains(kind.remote.verbs, "create") && !looksAt(policy, kind.remote.resource) {
				t.Errorf("ValidatingAdmissionPolicy %s does not look at what consumers do with %s", policy.Name, kind.remote.resource)
			}
			golden := kind.golden
			if golden == "" {
				golden = name + "/*.yaml"
			}
			if files, err := filepath.Glob(filepath.Join("..", "..", "pkg", "reflection", "testdata", golden)); err != nil || len(files) == 0 {
				t.Errorf("there is no pkg/reflection/testdata/%s, which shows what becomes of one: %v", golden, err)
			}
		})
	}
}

// fieldsOfReflection are the kinds that the configuration knows.
func fieldsOfReflection() []string {
	var names []string
	all, config := reflect.TypeFor[v1alpha1.Reflection](), reflect.TypeFor[offloadingv1beta1.ReflectorConfig]()
	for i := range all.NumField() {
		field := all.Field(i)
		if field.Type == config || field.Type.Kind() == reflect.Struct && field.Type.NumField() > 0 && field.Type.Field(0).Type == config {
			names = append(names, field.Tag.Get("json"))
		}
	}
	slices.Sort(names)
	return names
}

// workersArrive checks that the number of workers of each kind gets from the chart's values into the template of virtual kubelets.
func workersArrive(t *testing.T, names []string) {
	t.Helper()
	want := map[string]int32{}
	var values strings.Builder
	values.WriteString("offloading:\n  reflection:\n")
	for i, name := range names {
		want[name] = int32(101 + i)
		fmt.Fprintf(&values, "    %s: {workers: %d}\n", name, want[name])
	}
	got := map[string]int32{}
	for name, config := range vkoptions.Template(configuration(t, values.String()), "liqo").Spec.ReflectorsConfig {
		got[name] = config.NumWorkers
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers of workers do not arrive at virtual kubelets (-values +VkOptionsTemplate):\n%s", diff)
	}
}

// policiesOf are those that the chart's schema allows for a kind.
func policiesOf(allowed map[string]any, name string) []offloadingv1beta1.ReflectionType {
	choice, is := at(allowed, name, "properties", "type", "enum").([]any)
	if !is {
		return nil
	}
	var policies []offloadingv1beta1.ReflectionType
	for _, word := range choice {
		if word != "" {
			policies = append(policies, offloadingv1beta1.ReflectionType(word.(string)))
		}
	}
	return policies
}

// rulesOf are the rules of a ClusterRole of the chart.
func rulesOf(t *testing.T, values, name string) []rbacv1.PolicyRule {
	t.Helper()
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal([]byte(documents(t, "v1.36.0", values)["ClusterRole "+name]), &role); err != nil || len(role.Rules) == 0 {
		t.Fatalf("ClusterRole %s has no rules: %v", name, err)
	}
	return role.Rules
}

// lacking are the verbs that the rules do not allow.
func (r rights) lacking(rules []rbacv1.PolicyRule) []string {
	return slices.DeleteFunc(slices.Clone(r.verbs), func(verb string) bool {
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, r.resource.Group) && slices.Contains(rule.Resources, r.resource.Resource) &&
				slices.Contains(rule.Verbs, verb) && len(rule.ResourceNames) == 0
		})
	})
}

// looksAt tells whether a policy is asked about all that can be written of a resource.
func looksAt(policy admissionregistrationv1.ValidatingAdmissionPolicy, resource schema.GroupResource) bool {
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		all := true
		for _, operation := range []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete} {
			all = all && slices.Contains(rule.Operations, operation)
		}
		if all && slices.Contains(rule.APIGroups, resource.Group) && slices.Contains(rule.Resources, resource.Resource) {
			return true
		}
	}
	return false
}

// schemaOfValues is the chart's schema.
func schemaOfValues(t *testing.T) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "charts", "liqo", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := yaml.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// below goes down the properties of a schema.
func below(t *testing.T, in map[string]any, keys ...string) map[string]any {
	t.Helper()
	for _, key := range keys {
		properties, _ := in["properties"].(map[string]any)
		next, is := properties[key].(map[string]any)
		if !is {
			t.Fatalf("the chart's schema has no %s in %s", key, strings.Join(keys, "."))
		}
		in = next
	}
	return in
}
