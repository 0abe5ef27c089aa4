package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// consumersKind is a kind that a consumer has a right to write, and how many elements an object of it may have.
type consumersKind struct {
	object runtime.Object
	most   int
}

func consumersKinds() map[schema.GroupVersionResource]consumersKind {
	core, net, offloading, auth := corev1.SchemeGroupVersion, networkingv1.SchemeGroupVersion, offloadingv1beta1.GroupVersion, authv1beta1.GroupVersion
	return map[schema.GroupVersionResource]consumersKind{
		core.WithResource("configmaps"):                 {&corev1.ConfigMap{}, 16384},
		core.WithResource("secrets"):                    {&corev1.Secret{}, 16384},
		core.WithResource("services"):                   {&corev1.Service{}, 512},
		core.WithResource("persistentvolumeclaims"):     {&corev1.PersistentVolumeClaim{}, 512},
		net.WithResource("ingresses"):                   {&networkingv1.Ingress{}, 2048},
		offloading.WithResource("shadowpods"):           {&offloadingv1beta1.ShadowPod{}, 2048},
		offloading.WithResource("shadowendpointslices"): {&offloadingv1beta1.ShadowEndpointSlice{}, 4096},
		offloading.WithResource("namespacemaps"):        {&offloadingv1beta1.NamespaceMap{}, 15360},
		auth.WithResource("resourceslices"):             {&authv1beta1.ResourceSlice{}, 2048},
		auth.WithResource("renews"):                     {&authv1beta1.Renew{}, 512},
	}
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

// elementsAsked says why the policy refuses an object of a consumer; empty if it lets it pass.
func elementsAsked(t *testing.T, m *mutation, resource schema.GroupVersionResource, o runtime.Object, who string) string {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: withoutNulls(fields).(map[string]any)}
	kind := resource.GroupVersion().WithKind(reflect.TypeOf(o).Elem().Name())
	object.SetGroupVersionKind(kind)
	attributes := admission.NewAttributesRecord(object, nil, kind, "shop-rome", "x", resource, "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "somebody", Groups: []string{who}})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object)}
	ctx := m.compiler.CreateContext(context.Background())
	result := m.matcher.Match(ctx, versioned, nil, nil)
	if result.Error != nil {
		return result.Error.Error() // failurePolicy: Fail
	}
	if !result.Matches {
		return ""
	}
	_, err = m.patchers[0].Patch(ctx, patch.Request{MatchedResource: resource, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(clientgoscheme.Scheme),
		VersionedAttributes: versioned, OptionalVariables: plugincel.OptionalVariableBindings{}}, celconfig.RuntimeCELCostBudget)
	if err == nil {
		t.Fatal("the change of an object with too many elements can be made")
	}
	return err.Error()
}

// T41, T42: an API server works minutes for what a consumer puts into one array or map, before it asks who judges contents. Each array and map of
// each kind that consumers write has a bound before that, nested ones in every place too.
func TestEachArrayAndMapIsBoundedBeforeValidation(t *testing.T) {
	m := compiled(t, "", "elements.yaml")
	for resource, kind := range consumersKinds() {
		fills := map[string]func(reflect.Value, int){}
		many(reflect.TypeOf(kind.object).Elem(), "", fills)
		if len(fills) < 5 {
			t.Errorf("%s: only %d arrays and maps", resource.Resource, len(fills))
		}
		for path, fill := range fills {
			for _, count := range []int{kind.most + 1, 60} {
				o := kind.object.DeepCopyObject()
				fill(reflect.ValueOf(o).Elem(), count)
				why := elementsAsked(t, m, resource, o, "liqo.io:consumer:rome")
				if refused := why != ""; refused != (count > 60) {
					t.Errorf("%s%s with %d elements: refused: %v (%s)", resource.Resource, path, count, refused, why)
				}
			}
		}
		lots := kind.object.DeepCopyObject()
		fills[".ObjectMeta.Labels"](reflect.ValueOf(lots).Elem(), kind.most+1)
		if why := elementsAsked(t, m, resource, lots, "system:authenticated"); why != "" {
			t.Errorf("%s of somebody who is no consumer: %s", resource.Resource, why)
		}
		if why := elementsAsked(t, m, resource, lots, "liqo.io:tenants"); why == "" {
			t.Errorf("%s of a tenant with %d labels is let in", resource.Resource, kind.most+1)
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
		why := elementsAsked(t, m, tc.resource, tc.object, "liqo.io:consumer:rome")
		if refused := why != ""; refused != tc.refused {
			t.Errorf("%s: refused: %v (%s)", name, refused, why)
		}
		if tc.refused && !strings.Contains(why, "TooManyElements") {
			t.Errorf("%s: nobody learns why: %s", name, why)
		}
	}
}
