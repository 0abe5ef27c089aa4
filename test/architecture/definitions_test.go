package architecture

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	servervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	"sigs.k8s.io/yaml"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// definitionsFolder holds the CustomResourceDefinitions that the chart installs.
const definitionsFolder = "charts/liqo/charts/liqo-crds/files/"

// definitions are the CustomResourceDefinitions by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range repositoryFiles(t) {
		if !strings.HasPrefix(file, definitionsFolder) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), crd); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		found[crd.Spec.Names.Kind] = crd
	}
	if len(found) == 0 {
		t.Fatal("there are no definitions")
	}
	return found
}

// The oldest API server that the chart supports takes every definition: it knows the functions of all rules, and finds none of them too costly,
// by the estimates of the newest one. An API server takes new rules only if the release before it would have understood them too.
func TestTheOldestAPIServerTakesTheDefinitions(t *testing.T) {
	var chart struct {
		KubeVersion string `json:"kubeVersion"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "charts/liqo/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	oldest := version.MustParseGeneric(strings.TrimSuffix(strings.TrimPrefix(chart.KubeVersion, ">="), "-0"))
	effective, ok := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).(basecompatibility.MutableEffectiveVersion)
	if !ok {
		t.Fatal("the version that rules have to be compatible with cannot be set")
	}
	effective.SetMinCompatibilityVersion(version.MajorMinor(oldest.Major(), oldest.Minor()-1))
	var offenders []string
	for kind, crd := range definitions(t) {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		internal := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
			t.Fatalf("reading the definition of %s: %v", kind, err)
		}
		internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		for _, problem := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
			offenders = append(offenders, kind+": "+problem.Error())
		}
	}
	report(t, "an API server of Kubernetes "+oldest.String()+" takes every definition", offenders)
}

// Each definition has its type in Go, and a client that knows the packages of the API can read it.
func TestDefinitionsHaveTheirTypes(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		authv1beta1.AddToScheme, corev1beta1.AddToScheme, ipamv1alpha1.AddToScheme, networkingv1beta1.AddToScheme, offloadingv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	all := definitions(t)
	var offenders []string
	for kind, crd := range all {
		for _, name := range []string{kind, crd.Spec.Names.ListKind} {
			if gvk := (schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: name}); !scheme.Recognizes(gvk) {
				offenders = append(offenders, gvk.String()+" is not registered")
			}
		}
	}
	for gvk, kind := range scheme.AllKnownTypes() {
		if _, defined := all[strings.TrimSuffix(gvk.Kind, "List")]; !defined && strings.HasPrefix(kind.PkgPath(), "liqo.io/") {
			offenders = append(offenders, gvk.String()+" has no definition")
		}
	}
	slices.Sort(offenders)
	report(t, "a definition has a type that is registered, and a type a definition", offenders)
}

// What a definition takes as an address or a range can be read, and what Go writes as one is taken.
func TestAddressesOfTheDefinitionsAreAddresses(t *testing.T) {
	const tries = 3000
	random := rand.New(rand.NewPCG(1, 2))
	address, cidr := ruleOf(t, "IP", "ip"), ruleOf(t, "Network", "cidr")
	octets, groups := []string{"0", "1", "9", "10", "99", "255", "255", "256", "00", "f"}, []string{"0", "1", "f", "fd00", "ffff", "10000", "", "g"}
	lengths := []string{"", "", "/0", "/8", "/08", "/16", "/32", "/33", "/128", "/129", "/ 8", "/-1"}
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	taken := 0
	check := func(text string, definite bool) {
		_, addressErr := netip.ParseAddr(text)
		_, cidrErr := netip.ParsePrefix(text)
		for what, try := range map[string]struct {
			takes bool
			err   error
			can   bool
		}{
			"address": {address(text), addressErr, definite && !strings.Contains(text, "/")},
			"range":   {cidr(text), cidrErr, definite && strings.Contains(text, "/")},
		} {
			if try.takes {
				taken++
			}
			if try.takes && try.err != nil {
				t.Errorf("%q is taken as an %s: %v", text, what, try.err)
			}
			if try.can && !try.takes {
				t.Errorf("%q is not taken as an %s", text, what)
			}
		}
	}
	for range tries {
		four, six := [4]byte{}, [16]byte{}
		binary.BigEndian.PutUint32(four[:], random.Uint32()&random.Uint32())
		binary.BigEndian.PutUint64(six[:], random.Uint64()|1<<60)
		binary.BigEndian.PutUint64(six[8:], random.Uint64()&random.Uint64()&random.Uint64()&random.Uint64())
		for _, address := range []netip.Addr{netip.AddrFrom4(four), netip.AddrFrom16(six)} {
			check(address.String(), true)
			check(netip.PrefixFrom(address, random.IntN(address.BitLen()+1)).String(), true)
			text := []byte(address.String())
			text[random.IntN(len(text))] = "0123456789abcdef.:/"[random.IntN(19)]
			check(string(text), false)
		}
		parts := make([]string, 3+random.IntN(3))
		for i := range parts {
			parts[i] = pick(octets)
		}
		check(strings.Join(parts, ".")+pick(lengths), false)
		parts = make([]string, 1+random.IntN(9))
		for i := range parts {
			parts[i] = pick(groups)
		}
		check(strings.Join(parts, ":")+pick(lengths), false)
	}
	if taken < 4*tries {
		t.Errorf("only %d texts were taken", taken)
	}
}

// ruleOf tells whether the definition of a kind takes a text for a field of the specification.
func ruleOf(t *testing.T, kind, name string) func(text string) bool {
	t.Helper()
	spec := definitions(t)[kind].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	judge := judgeOf(t, &spec, false)
	return func(text string) bool { return len(judge(map[string]any{name: text})) == 0 }
}

// judgeOf tells what an API server has against a whole object, or a part of one, that has the schema: types, patterns and bounds, and the
// rules, once defaults are filled in.
func judgeOf(t *testing.T, external *apiextensionsv1.JSONSchemaProps, whole bool) func(value map[string]any) field.ErrorList {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, internal, nil); err != nil {
		t.Fatalf("reading a schema: %v", err)
	}
	validator, _, err := servervalidation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatalf("preparing a schema: %v", err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatalf("preparing the rules of a schema: %v", err)
	}
	rules := cel.NewValidator(structural, whole, celconfig.PerCallLimit)
	return func(value map[string]any) field.ErrorList {
		defaulting.Default(value, structural)
		broken, _ := rules.Validate(t.Context(), nil, structural, value, nil, celconfig.RuntimeCELCostBudget)
		return append(broken, servervalidation.ValidateCustomResource(nil, value, validator)...)
	}
}
