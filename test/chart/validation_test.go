package chart

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// validation is a ValidatingAdmissionPolicy of the chart, compiled as an API server does it.
type validation struct {
	policy    admissionregistrationv1.ValidatingAdmissionPolicy
	validator validating.Validator
}

// everything is an authorizer that knows whether somebody may do everything, and nothing else.
type everything bool

// Authorize answers whether the user may do all verbs with all resources of all groups.
func (e everything) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if e && a.GetVerb() == "*" && a.GetAPIGroup() == "*" && a.GetResource() == "*" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// attempt is a request that a policy is asked about. The objects may be nil.
type attempt struct {
	user        string
	groups      []string
	extra       map[string][]string
	operation   admission.Operation
	group       string
	resource    string // with its subresource
	namespace   *corev1.Namespace
	name        string
	object, old runtime.Object
	// administrator tells that the user may do everything.
	administrator bool
}

// policyNamed compiles the policy of a name, which is in a template.
func policyNamed(t testing.TB, values, template, name string) *validation {
	t.Helper()
	rendered, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	v := &validation{}
	for _, document := range strings.Split(rendered["liqo/templates/"+template], "\n---") {
		if !strings.Contains(document, "kind: ValidatingAdmissionPolicy\n") || !strings.Contains(document, "\n  name: "+name+"\n") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), &v.policy); err != nil {
			t.Fatal(err)
		}
	}
	if v.policy.Name != name {
		t.Fatalf("there is no policy %s in %s", name, template)
	}
	v.compile(t)
	return v
}

func (v *validation) compile(t testing.TB) {
	t.Helper()
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiler, err := plugincel.NewCompositedCompiler(environments)
	if err != nil {
		t.Fatal(err)
	}
	spec := v.policy.Spec
	declared := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	var variables []plugincel.NamedExpressionAccessor
	for _, one := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: one.Name, Expression: one.Expression})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	var conditions, validations, messages []plugincel.ExpressionAccessor
	for _, one := range spec.MatchConditions {
		condition := matchconditions.MatchCondition(one)
		conditions = append(conditions, &condition)
	}
	for _, one := range spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason})
		var message plugincel.ExpressionAccessor
		if one.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression}
		}
		messages = append(messages, message)
	}
	checks := compiler.CompileCondition(validations, declared, environment.StoredExpressions)
	matches := compiler.CompileCondition(conditions, declared, environment.StoredExpressions)
	words := compiler.CompileCondition(messages, plugincel.OptionalVariableDeclarations{HasParams: declared.HasParams}, environment.StoredExpressions)
	for _, err := range append(checks.CompilationErrors(), append(matches.CompilationErrors(), words.CompilationErrors()...)...) {
		t.Error(err)
	}
	matcher := matchconditions.NewMatcher(matches, spec.FailurePolicy, "policy", "validate", v.policy.Name)
	v.validator = validating.NewValidator(checks, matcher, compiler.CompileCondition(nil, declared, environment.StoredExpressions), words, spec.FailurePolicy, nil)
}

// concerns tells whether the policy's rules name the request.
func (v *validation) concerns(attributes admission.Attributes) bool {
	for _, rule := range v.policy.Spec.MatchConstraints.ResourceRules {
		matcher := rules.Matcher{Rule: rule.RuleWithOperations, Attr: attributes}
		if matcher.Matches() {
			return true
		}
	}
	return false
}

// try gives the messages of the policy's refusals, none if the request passes.
func (v *validation) try(t testing.TB, a attempt, params runtime.Object) string {
	t.Helper()
	resource, subresource, _ := strings.Cut(a.resource, "/")
	namespace := ""
	if a.namespace != nil {
		namespace = a.namespace.Name
	}
	kind, plural := schema.GroupVersionKind{Group: a.group, Version: "v1", Kind: resource}, schema.GroupVersionResource{Group: a.group, Version: "v1", Resource: resource}
	options := map[admission.Operation]runtime.Object{admission.Create: &metav1.CreateOptions{}, admission.Update: &metav1.UpdateOptions{}, admission.Delete: &metav1.DeleteOptions{}}
	attributes := admission.NewAttributesRecord(a.object, a.old, kind, namespace, a.name, plural, subresource, a.operation, options[a.operation], false, &user.DefaultInfo{Name: a.user, Groups: a.groups, Extra: a.extra})
	if !v.concerns(attributes) {
		return ""
	}
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind,
		VersionedObject: admission.NewLazyObject(a.object), VersionedOldObject: admission.NewLazyObject(a.old)}
	var found []string
	for _, decision := range v.validator.Validate(t.Context(), plural, versioned, params, a.namespace, celconfig.RuntimeCELCostBudget, everything(a.administrator)).Decisions {
		if decision.Action == validating.ActionDeny {
			found = append(found, decision.Message)
		}
	}
	return strings.Join(found, "; ")
}

// asked gives the refusals of one request by a consumer's virtual kubelet in its twin namespace.
func (v *validation) asked(t testing.TB, operation admission.Operation, resource, subresource string, object, old runtime.Object) string {
	t.Helper()
	if subresource != "" {
		resource += "/" + subresource
	}
	return v.try(t, attempt{user: "liqo.io:consumer:rome:slice", groups: []string{"liqo.io:consumer:rome"}, operation: operation, group: object.GetObjectKind().GroupVersionKind().Group,
		resource: resource, name: "x", object: object, old: old,
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-rome", Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"}}}}, nil)
}
