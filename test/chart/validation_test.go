package chart

import (
	"context"
	"slices"
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
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// validation is a ValidatingAdmissionPolicy of the chart, compiled as an API server does it. Its match conditions are not asked.
type validation struct {
	policy    admissionregistrationv1.ValidatingAdmissionPolicy
	compiler  *plugincel.CompositedCompiler
	validator validating.Validator
}

// validations reads the policy of a name out of what values render.
func validations(t testing.TB, values, template, name string) *validation {
	t.Helper()
	rendered, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	v := &validation{}
	for _, document := range strings.Split(rendered["liqo/templates/"+template], "\n---") {
		policy := admissionregistrationv1.ValidatingAdmissionPolicy{}
		if yaml.Unmarshal([]byte(document), &policy) == nil && policy.Kind == "ValidatingAdmissionPolicy" && policy.Name == name {
			v.policy = policy
		}
	}
	if v.policy.Name == "" {
		t.Fatalf("there is no policy %s in %s", name, template)
	}
	if v.compiler, err = plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())); err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasParams: v.policy.Spec.ParamKind != nil, HasAuthorizer: true}
	var variables []plugincel.NamedExpressionAccessor
	for _, variable := range v.policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: variable.Name, Expression: variable.Expression})
	}
	v.compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	var conditions, messages []plugincel.ExpressionAccessor
	for _, one := range v.policy.Spec.Validations {
		conditions = append(conditions, &validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason})
		var message plugincel.ExpressionAccessor
		if one.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression}
		}
		messages = append(messages, message)
	}
	v.validator = validating.NewValidator(v.compiler.CompileCondition(conditions, declared, environment.StoredExpressions), nil,
		v.compiler.CompileCondition(nil, declared, environment.StoredExpressions),
		v.compiler.CompileCondition(messages, plugincel.OptionalVariableDeclarations{HasParams: declared.HasParams}, environment.StoredExpressions),
		v.policy.Spec.FailurePolicy, nil)
	return v
}

// covers tells whether the policy is asked about requests for a resource.
func (v *validation) covers(operation admission.Operation, resource string) bool {
	return slices.ContainsFunc(v.policy.Spec.MatchConstraints.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.Resources, resource) && slices.Contains(rule.Operations, admissionregistrationv1.OperationType(operation))
	})
}

// asked gives the messages of the refusals of one request by a consumer's virtual kubelet in its twin namespace.
func (v *validation) asked(t testing.TB, operation admission.Operation, resource, subresource string, object, old runtime.Object) []string {
	t.Helper()
	whole := resource
	if subresource != "" {
		whole += "/" + subresource
	}
	if !v.covers(operation, whole) {
		return nil
	}
	kind := object.GetObjectKind().GroupVersionKind()
	who := &user.DefaultInfo{Name: "liqo.io:consumer:rome:slice", Groups: []string{"liqo.io:consumer:rome"}}
	var options runtime.Object = &metav1.CreateOptions{}
	if operation == admission.Update {
		options = &metav1.UpdateOptions{}
	}
	gvr := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: resource}
	attributes := admission.NewAttributesRecord(object, old, kind, "shop-rome", "x", gvr, subresource, operation, options, false, who)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old)}
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-rome", Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"}}}
	result := v.validator.Validate(v.compiler.CreateContext(context.Background()), gvr, versioned, nil, twin, celconfig.RuntimeCELCostBudget, nil)
	var refusals []string
	for _, decision := range result.Decisions {
		if decision.Action == validating.ActionDeny {
			refusals = append(refusals, decision.Message)
		}
	}
	return refusals
}
