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
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// mutation is a MutatingAdmissionPolicy of the chart, compiled as an API server does it.
type mutation struct {
	compiler *plugincel.CompositedCompiler
	matcher  matchconditions.Matcher
	patchers []patch.Patcher
	// namespace is the one of the objects.
	namespace *corev1.Namespace
}

// failer is what a test and a property share.
type failer interface {
	Helper()
	Fatal(...any)
}

// compiled reads the policy that is the first document of a template.
func compiled(t testing.TB, values, template string) *mutation {
	t.Helper()
	return compiledAt(t, values, template, 0)
}

// compiledAt reads the policy that is a document of a template, counted from zero.
func compiledAt(t testing.TB, values, template string, document int) *mutation {
	t.Helper()
	rendered, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	var policy admissionregistrationv1.MutatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(strings.Split(rendered["liqo/templates/"+template], "\n---")[document]), &policy); err != nil {
		t.Fatal(err)
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	var variables []plugincel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	m := &mutation{compiler: compiler, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	if len(policy.Spec.MatchConditions) > 0 {
		var conditions []plugincel.ExpressionAccessor
		for _, c := range policy.Spec.MatchConditions {
			condition := matchconditions.MatchCondition(c)
			conditions = append(conditions, &condition)
		}
		m.matcher = matchconditions.NewMatcher(compiler.CompileCondition(conditions, declared, environment.StoredExpressions), policy.Spec.FailurePolicy, "policy", "mutate", policy.Name)
	}
	declared.HasPatchTypes = true
	for _, mutation := range policy.Spec.Mutations {
		m.patchers = append(m.patchers, patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(
			&patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}, declared, environment.StoredExpressions)))
	}
	return m
}

// apply gives what the policy makes of a new object.
func (m *mutation) apply(t failer, object, params runtime.Object, kind schema.GroupVersionKind, resource schema.GroupVersionResource) runtime.Object {
	t.Helper()
	attributes := admission.NewAttributesRecord(object, nil, kind, "default", "name", resource, "", admission.Create, &metav1.CreateOptions{}, false, nil)
	return m.mutate(t, attributes, params)
}

// update gives what the policy makes of a change.
func (m *mutation) update(t failer, object, old runtime.Object, kind schema.GroupVersionKind, resource schema.GroupVersionResource) runtime.Object {
	t.Helper()
	return m.mutate(t, admission.NewAttributesRecord(object, old, kind, "default", "name", resource, "", admission.Update, &metav1.UpdateOptions{}, false, nil), nil)
}

func (m *mutation) mutate(t failer, attributes admission.Attributes, params runtime.Object) runtime.Object {
	t.Helper()
	object, kind, resource := attributes.GetObject(), attributes.GetKind(), attributes.GetResource()
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(attributes.GetOldObject())}
	ctx := m.compiler.CreateContext(context.Background())
	if m.matcher != nil {
		result := m.matcher.Match(ctx, versioned, params, nil)
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		if !result.Matches {
			return object
		}
	}
	for _, patcher := range m.patchers {
		patched, err := patcher.Patch(ctx, patch.Request{
			MatchedResource: resource, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(clientgoscheme.Scheme), VersionedAttributes: versioned,
			Namespace: m.namespace, OptionalVariables: plugincel.OptionalVariableBindings{VersionedParams: params},
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		versioned.VersionedObject = admission.NewLazyObject(patched)
	}
	return versioned.VersionedObject.Object()
}
