package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/webhook/weight"
)

// versioned is the resource of a kind that consumers write.
func versioned(b weight.Bound) schema.GroupVersionResource {
	return b.WithVersion(path.Base(reflect.TypeOf(b.Kind).Elem().PkgPath()))
}

// many gives, by path, how to fill each array and map of a type with as many elements as wanted.
func many(t reflect.Type, path string, into map[string]func(v reflect.Value, count int)) {
	reach := func(step func(reflect.Value) reflect.Value, inner map[string]func(reflect.Value, int)) {
		for at, fill := range inner {
			into[at] = func(v reflect.Value, count int) { fill(step(v), count) }
		}
	}
	inner := map[string]func(reflect.Value, int){}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
	case t.Kind() == reflect.Pointer:
		many(t.Elem(), path, inner)
		reach(func(v reflect.Value) reflect.Value {
			if v.IsNil() {
				v.Set(reflect.New(t.Elem()))
			}
			return v.Elem()
		}, inner)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			fields := map[string]func(reflect.Value, int){}
			many(t.Field(i).Type, path+"."+t.Field(i).Name, fields)
			reach(func(v reflect.Value) reflect.Value { return v.Field(i) }, fields)
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		into[path] = func(v reflect.Value, count int) { v.Set(reflect.MakeSlice(t, count, count)) }
		many(t.Elem(), path+"[]", inner)
		reach(func(v reflect.Value) reflect.Value {
			v.Set(reflect.MakeSlice(t, 1, 1))
			return v.Index(0)
		}, inner)
	case t.Kind() == reflect.Map:
		into[path] = func(v reflect.Value, count int) {
			v.Set(reflect.MakeMap(t))
			for i := range count {
				value := reflect.Zero(t.Elem())
				if t.Elem().Kind() == reflect.Slice {
					value = reflect.MakeSlice(t.Elem(), 0, 0)
				}
				v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("k%d", i)).Convert(t.Key()), value)
			}
		}
	}
}

// withoutNulls is what an API server makes of fields that are null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
				continue
			}
			withoutNulls(field)
		}
	case []any:
		for _, element := range value {
			withoutNulls(element)
		}
	}
	return value
}

// written is an object as it is in a request.
func written(t *testing.T, resource schema.GroupVersionResource, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: withoutNulls(fields).(map[string]any)}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(reflect.TypeOf(o).Elem().Name()))
	return object
}

// sent is what an API server has of a request before it validates the object. A patch is an update to it, and so is what is applied, or a creation.
func sent(operation admission.Operation, resource schema.GroupVersionResource, object, old *unstructured.Unstructured, who string) *admission.VersionedAttributes {
	before, options := runtime.Object(nil), runtime.Object(&metav1.CreateOptions{})
	if operation == admission.Update {
		before, options = old, &metav1.UpdateOptions{}
	}
	kind := object.GroupVersionKind()
	attributes := admission.NewAttributesRecord(object, before, kind, "shop-rome", "x", resource, "", operation, options, false, &user.DefaultInfo{Name: "somebody", Groups: []string{who}})
	return &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(before)}
}

// elementsAsked says why the policy refuses what a consumer sends; empty if it lets it pass.
func elementsAsked(t *testing.T, m *mutation, request *admission.VersionedAttributes) string {
	t.Helper()
	ctx := m.compiler.CreateContext(context.Background())
	result := m.matcher.Match(ctx, request, nil, nil)
	if result.Error != nil {
		return result.Error.Error() // failurePolicy: Fail
	}
	if !result.Matches {
		return ""
	}
	_, err := m.patchers[0].Patch(ctx, patch.Request{MatchedResource: request.GetResource(), ObjectInterfaces: admission.NewObjectInterfacesFromScheme(clientgoscheme.Scheme),
		VersionedAttributes: request, OptionalVariables: plugincel.OptionalVariableBindings{}}, celconfig.RuntimeCELCostBudget)
	if err == nil {
		t.Fatal("the change of an object with too many elements can be made")
	}
	return err.Error()
}

// elementsHook is a webhook for what consumers write, with the conditions under which an API server asks it.
type elementsHook struct {
	admissionregistrationv1.MutatingWebhook
	compiler *plugincel.CompositedCompiler
	matcher  matchconditions.Matcher
}

// elementsHooks are those of an installation at API servers of a version.
func elementsHooks(t *testing.T, version string) (all []elementsHook) {
	t.Helper()
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(documents(t, version, valueSets["default"])["MutatingWebhookConfiguration liqo-webhook"]), &configuration); err != nil {
		t.Fatal(err)
	}
	for _, hook := range configuration.Webhooks {
		if *hook.ClientConfig.Service.Path != weight.Path {
			continue
		}
		// Of the kinds of the second, a consumer has those that are in namespaces in its tenant namespace alone.
		var where *metav1.LabelSelector
		if hook.Name == "toomany.mutate.liqo.io" {
			where = &metav1.LabelSelector{MatchLabels: map[string]string{"liqo.io/tenant-namespace": "true"}}
		}
		if *hook.FailurePolicy != admissionregistrationv1.Fail || hook.ObjectSelector != nil || !equality.Semantic.DeepEqual(hook.NamespaceSelector, where) {
			t.Errorf("%s is not asked about everything, or lets in what nobody looked at", hook.Name)
		}
		compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		if err != nil {
			t.Fatal(err)
		}
		var conditions []plugincel.ExpressionAccessor
		for _, c := range hook.MatchConditions {
			condition := matchconditions.MatchCondition(c)
			conditions = append(conditions, &condition)
		}
		compiled := compiler.CompileCondition(conditions, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
		all = append(all, elementsHook{hook, compiler, matchconditions.NewMatcher(compiled, hook.FailurePolicy, "webhook", "admit", hook.Name)})
	}
	return all
}

// hooksAsked says why webhooks refuse what a consumer sends, empty if they let it pass, and how many were asked.
func hooksAsked(t *testing.T, hooks []elementsHook, request *admission.VersionedAttributes) (why string, asked int) {
	t.Helper()
	for _, hook := range hooks {
		if !slices.ContainsFunc(hook.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return covers(rule, request) }) {
			continue
		}
		ctx := hook.compiler.CreateContext(context.Background())
		result := hook.matcher.Match(ctx, request, nil, nil)
		if result.Error != nil {
			return result.Error.Error(), asked
		}
		if !result.Matches {
			continue
		}
		raw, err := json.Marshal(request.GetObject())
		if err != nil {
			t.Fatal(err)
		}
		asked++
		review := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Resource: metav1.GroupVersionResource(request.GetResource()), Object: runtime.RawExtension{Raw: raw}}}
		if answer := weight.Judge(ctx, review); !answer.Allowed {
			return answer.Result.Message, asked
		}
	}
	return "", asked
}

// covers tells whether a rule is about a request.
func covers(rule admissionregistrationv1.RuleWithOperations, request *admission.VersionedAttributes) bool {
	return slices.Contains(rule.APIGroups, request.GetResource().Group) && slices.Contains(rule.Resources, request.GetResource().Resource) &&
		slices.Contains(rule.Operations, admissionregistrationv1.OperationType(request.GetOperation()))
}

// rulesOfPeers are those of all roles that peers can have: policy liqo-controller-manager says which are bound to them, and Kubernetes lets
// everybody ask what he may do. Providers have no role in their consumers' clusters.
func rulesOfPeers(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{
		"Role liqo-pod-logs":      {{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}}},
		"Role liqo-sign-of-life-": {{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"patch"}}},
	}
	bound := map[string]bool{}
	quoted := regexp.MustCompile(`'((?:Cluster)?Role [^']+)'`)
	rendered := documents(t, "v1.36.0", allTurnedOn)
	for _, validation := range policyNamed(t, valueSets["default"], "managerpolicies.yaml", "liqo-controller-manager").policy.Spec.Validations {
		for clause := range strings.SplitSeq(validation.Expression, "||") {
			if !strings.Contains(clause, "variables.toTenant") && !strings.Contains(clause, "variables.toConsumer") {
				continue
			}
			for _, name := range quoted.FindAllStringSubmatch(clause, -1) {
				bound[name[1]] = true
				if !strings.HasPrefix(name[1], "ClusterRole ") {
					continue
				}
				var role rbacv1.ClusterRole
				if err := yaml.Unmarshal([]byte(rendered[name[1]]), &role); err != nil {
					t.Fatal(err)
				}
				rules[name[1]] = role.Rules
			}
		}
	}
	if len(bound) < 4 {
		t.Fatalf("the policy was not understood: only %v are bound to peers", bound)
	}
	for name := range rules {
		if !bound[name] || len(rules[name]) == 0 {
			t.Errorf("%s is not what the policy lets be bound to peers, or has no rules", name)
		}
	}
	for name := range bound {
		if rules[name] == nil {
			t.Errorf("what %s grants to peers is not known here", name)
		}
	}
	rules["system:basic-user"] = []rbacv1.PolicyRule{
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{"create"}},
	}
	return rules
}

// uncounted is what peers may send though nobody counts its elements, and why none of them keeps an API server busy.
var uncounted = map[string]string{
	"create pods/eviction":    "of an Eviction one option is validated, with one error",
	"create pods/exec":        "options are in the URL, which is 1 MiB long at most; there is no body",
	"create pods/attach":      "options are in the URL, which is 1 MiB long at most; there is no body",
	"create pods/portforward": "options are in the URL, which is 1 MiB long at most; there is no body",
	"create selfsubjectrulesreviews.authorization.k8s.io": "nothing of it is validated",
	"create selfsubjectreviews.authentication.k8s.io":     "nothing of it is validated",
	"delete configmaps":                              deletes,
	"delete secrets":                                 deletes,
	"delete services":                                deletes,
	"delete persistentvolumeclaims":                  deletes,
	"delete ingresses.networking.k8s.io":             deletes,
	"delete networkpolicies.networking.k8s.io":       deletes,
	"delete shadowpods.offloading.liqo.io":           deletes,
	"delete shadowendpointslices.offloading.liqo.io": deletes,
	"delete namespacemaps.offloading.liqo.io":        deletes,
	"delete resourceslices.authentication.liqo.io":   deletes,
	"delete renews.authentication.liqo.io":           deletes,
}

const deletes = "options of deletions have one array, about which there is one error"

// operationsOfPeers are how peers may write what is counted, by group and resource.
func operationsOfPeers(t *testing.T) map[schema.GroupResource]map[admission.Operation]bool {
	t.Helper()
	all, known := map[schema.GroupResource]map[admission.Operation]bool{}, maps.Clone(uncounted)
	for role, rules := range rulesOfPeers(t) {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				of := schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}
				if len(rule.APIGroups) != 1 || strings.Contains(resource, "*") {
					t.Errorf("%s grants more than one can walk: %v", role, rule)
				}
				bounded := slices.ContainsFunc(weight.Bounds(), func(b weight.Bound) bool { return b.GroupResource == of })
				for _, verb := range rule.Verbs {
					right := verb + " " + of.String()
					operation := map[string]admission.Operation{"create": admission.Create, "update": admission.Update, "patch": admission.Update}[verb]
					switch _, excepted := uncounted[right]; {
					case slices.Contains([]string{"get", "list", "watch"}, verb):
					case excepted:
						delete(known, right)
					case operation == "" || !bounded:
						t.Errorf("%s lets peers %s, of which nobody counts the elements", role, right)
					default:
						if all[of] == nil {
							all[of] = map[admission.Operation]bool{}
						}
						all[of][operation] = true
					}
				}
			}
		}
	}
	for right := range known {
		t.Errorf("no role lets peers %s: take it out of the table", right)
	}
	return all
}

// T41, T42: an API server works minutes for what a consumer puts into one array or map, before it asks who judges contents. Each array and map of
// each kind that consumers may write, however they may write it, has a bound before that, nested ones in every place too: by a policy, or by
// webhooks where API servers ask none.
func TestEachArrayAndMapIsBoundedBeforeValidation(t *testing.T) {
	var policy admissionregistrationv1.MutatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(documents(t, "v1.36.0", valueSets["default"])["MutatingAdmissionPolicy liqo-consumer-elements"]), &policy); err != nil {
		t.Fatal(err)
	}
	m, newest, older := compiled(t, "", "elements.yaml"), elementsHooks(t, "v1.36.0"), elementsHooks(t, "v1.35.9")
	byPolicy := func(request *admission.VersionedAttributes) string {
		if !slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
			return covers(rule.RuleWithOperations, request)
		}) {
			return ""
		}
		return elementsAsked(t, m, request)
	}
	by := func(hooks []elementsHook) func(*admission.VersionedAttributes) string {
		return func(request *admission.VersionedAttributes) string {
			why, _ := hooksAsked(t, hooks, request)
			return why
		}
	}
	operations := operationsOfPeers(t)
	for _, bound := range weight.Bounds() {
		if len(operations[bound.GroupResource]) == 0 {
			t.Errorf("no role lets peers write %s: take it out of the bounds", bound.GroupResource)
		}
		fills := map[string]func(reflect.Value, int){}
		many(reflect.TypeOf(bound.Kind).Elem(), "", fills)
		if len(fills) < 5 {
			t.Errorf("%s: only %d arrays and maps", bound.Resource, len(fills))
		}
		filled := func(path string, count int) *unstructured.Unstructured {
			o := bound.Kind.DeepCopyObject()
			fills[path](reflect.ValueOf(o).Elem(), count)
			return written(t, versioned(bound), o)
		}
		type judge struct {
			why  func(*admission.VersionedAttributes) string
			most int
		}
		judges := map[string]judge{"the policy": {byPolicy, bound.Most}, "webhooks of an older API server": {by(older), 2 * bound.Most}}
		if bound.Vital {
			judges = map[string]judge{"webhooks": {by(newest), 2 * bound.Most}, "webhooks of an older API server": {by(older), 2 * bound.Most}}
		}
		for name, judge := range judges {
			lots := filled(".ObjectMeta.Labels", judge.most+1)
			for path := range fills {
				tooMany, few := filled(path, judge.most+1), filled(path, 60)
				for operation := range operations[bound.GroupResource] {
					if why := judge.why(sent(operation, versioned(bound), tooMany, tooMany, "liqo.io:consumer:rome")); why == "" {
						t.Errorf("%s: %s %s%s with %d elements is let in", name, operation, bound.Resource, path, judge.most+1)
					}
					if why := judge.why(sent(operation, versioned(bound), few, tooMany, "liqo.io:consumer:rome")); why != "" {
						t.Errorf("%s: %s %s%s with 60 elements: %s", name, operation, bound.Resource, path, why)
					}
				}
			}
			for operation := range operations[bound.GroupResource] {
				if why := judge.why(sent(operation, versioned(bound), lots, lots, "system:authenticated")); why != "" {
					t.Errorf("%s: %s %s of somebody who is no consumer: %s", name, operation, bound.Resource, why)
				}
				if why := judge.why(sent(operation, versioned(bound), lots, lots, "liqo.io:tenants")); why == "" {
					t.Errorf("%s: %s %s of a tenant with %d labels is let in", name, operation, bound.Resource, judge.most+1)
				}
			}
		}
	}
}

// Signs of life, and whether a provider answers, do not depend on a webhook: about what has few elements it is not asked.
func TestWhatIsVitalAsksNoWebhook(t *testing.T) {
	for _, version := range []string{"v1.35.9", "v1.36.0"} {
		hooks := elementsHooks(t, version)
		for _, bound := range weight.Bounds() {
			few := bound.Kind.DeepCopyObject()
			few.(metav1.Object).SetLabels(map[string]string{"a": "b"})
			_, asked := hooksAsked(t, hooks, sent(admission.Create, versioned(bound), written(t, versioned(bound), few), nil, "liqo.io:consumer:rome"))
			if want := !bound.Vital && version == "v1.35.9"; (asked == 1) != want || asked > 1 {
				t.Errorf("%s at %s: %d webhooks are asked", bound.Resource, version, asked)
			}
		}
	}
}

// Elements are counted together: of many arrays, each of which is short, none is the one that has too many.
func TestElementsAreCountedTogether(t *testing.T) {
	m := compiled(t, "", "elements.yaml")
	shadow := func(containers, variables int) *offloadingv1beta1.ShadowPod {
		s := &offloadingv1beta1.ShadowPod{}
		for range containers {
			s.Spec.Pod.Containers = append(s.Spec.Pod.Containers, corev1.Container{Name: "a", Image: "b", Env: make([]corev1.EnvVar, variables)})
		}
		return s
	}
	ingress := &networkingv1.Ingress{}
	for range 100 {
		ingress.Spec.Rules = append(ingress.Spec.Rules, networkingv1.IngressRule{IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: make([]networkingv1.HTTPIngressPath, 100)}}})
	}
	endpoints := &offloadingv1beta1.ShadowEndpointSlice{}
	for i := range 1000 {
		endpoints.Spec.Template.Endpoints = append(endpoints.Spec.Template.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250)},
			Zone: ptr.To("a"), Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}}})
	}
	keys := &corev1.ConfigMap{Data: map[string]string{}}
	for i := range 10_000 {
		keys.Data[fmt.Sprintf("key-%d", i)] = "a"
	}
	invalid := keys.DeepCopy()
	invalid.Data["/"] = ""
	offloading := offloadingv1beta1.GroupVersion
	for name, tc := range map[string]struct {
		resource schema.GroupVersionResource
		object   runtime.Object
		refused  bool
	}{
		"an ordinary pod":                          {offloading.WithResource("shadowpods"), shadow(3, 60), false},
		"a large pod":                              {offloading.WithResource("shadowpods"), shadow(18, 110), false},
		"a hundred variables in 40 containers":     {offloading.WithResource("shadowpods"), shadow(40, 100), true},
		"a hundred paths of each of 100 hosts":     {networkingv1.SchemeGroupVersion.WithResource("ingresses"), ingress, true},
		"as many endpoints as a slice may have":    {offloading.WithResource("shadowendpointslices"), endpoints, false},
		"ten thousand keys":                        {corev1.SchemeGroupVersion.WithResource("configmaps"), keys, false},
		"ten thousand keys of which one is a path": {corev1.SchemeGroupVersion.WithResource("configmaps"), invalid, true},
	} {
		why := elementsAsked(t, m, sent(admission.Create, tc.resource, written(t, tc.resource, tc.object), nil, "liqo.io:consumer:rome"))
		if refused := why != ""; refused != tc.refused {
			t.Errorf("%s: refused: %v (%s)", name, refused, why)
		}
		if tc.refused && !strings.Contains(why, "TooManyElements") {
			t.Errorf("%s: nobody learns why: %s", name, why)
		}
	}
}
