package chart

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/cli/action/move"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/controller/authentication/slicegrant"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/reflection"
)

// fallbacks are what code does where nobody says anything, by the value of the chart that says it.
func fallbacks(t *testing.T) map[string][]any {
	duration := func(d time.Duration) any { return metav1.Duration{Duration: d} }
	all := map[string][]any{
		"authentication.certificateLifetime":             {duration(certificate.DefaultLifetime)},
		"networking.genevePort":                          {v1alpha1.DefaultOverlayPort, dataplane.DefaultOverlayPort},
		"offloading.consumers.limits.resourceSlices":     {slicegrant.DefaultResourceSlices},
		"offloading.consumers.maxTerminationGracePeriod": {duration(reflection.DefaultMaxGracePeriod)},
		"offloading.sharingPercentage":                   {capacity.DefaultPercentage},
		"offloading.reflection.maxRemovals":              {massremoval.DefaultShare},
		"offloading.runtimeClass.name":                   {offloadingv1beta1.DefaultRuntimeClass},
		"offloading.serviceAccountTokens.maxLifetime":    {duration(reflection.MaxTokenLifetime)},
		"storage.mover.image.name":                       {move.DefaultImage},
		"storage.storageNamespace":                       {offloadingv1beta1.DefaultStorageNamespace},
		"virtualKubelet.nodeIdentity":                    {v1alpha1.NodeIdentityNode},

		"offloading.reflection.pod.workers":                   {number(t, "pkg/virtualkubelet/settings", "podWorkers")},
		"offloading.reflection.serviceaccount.workers":        {number(t, "pkg/virtualkubelet/settings", "tokenWorkers"), number(t, "pkg/virtualkubelet/token", "defaultWorkers")},
		"offloading.reflection.persistentvolumeclaim.workers": {number(t, "pkg/virtualkubelet/settings", "claimWorkers")},
		"offloading.reflection.event.workers":                 {number(t, "pkg/virtualkubelet/settings", "eventWorkers")},
	}
	for _, kind := range reflection.Kinds() {
		all["offloading.reflection."+kind.Name+".workers"] = []any{kind.DefaultWorkers}
		if len(kind.Policies()) > 0 {
			all["offloading.reflection."+kind.Name+".type"] = []any{kind.DefaultPolicy}
		}
	}
	return all
}

// number is the text of a constant that a package keeps to itself.
func number(t *testing.T, folder, name string) any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var found any
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Values) != len(spec.Names) {
				return true
			}
			if i := slices.IndexFunc(spec.Names, func(n *ast.Ident) bool { return n.Name == name }); i >= 0 {
				if literal, is := spec.Values[i].(*ast.BasicLit); is {
					if err := yaml.Unmarshal([]byte(literal.Value), &found); err != nil {
						t.Fatal(err)
					}
				}
			}
			return true
		})
		if found != nil {
			return found
		}
	}
	t.Fatalf("package %s has no constant %s that is a number: look where its default is now", folder, name)
	return nil
}

// completed are the default values of the chart, with what the configuration makes of those that are empty.
func completed(t *testing.T) (raw rendering, values, config map[string]any) {
	t.Helper()
	raw.read(t, withoutDefinitions(t), bases[1], "", nil)
	config = parsed(t, raw.config)
	values = plain(t, raw.values).(map[string]any)
	return raw, values, config
}

// parsed is a configuration as the controller manager reads it; nil if it takes none of it.
func parsed(t *testing.T, raw map[string]any) map[string]any {
	t.Helper()
	text, err := yaml.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	c, err := v1alpha1.Parse(text)
	if err != nil {
		return nil
	}
	return plain(t, c).(map[string]any)
}

// says tells whether a value says something.
func says(value any) bool {
	switch is := value.(type) {
	case nil:
		return false
	case string:
		return is != "" && is != "0s"
	case bool:
		return is
	case float64:
		return is != 0
	case []any:
		return len(is) > 0
	case map[string]any:
		for _, part := range is {
			if says(part) {
				return true
			}
		}
		return false
	default:
		return true
	}
}

// A default of the chart that code has as well is the same there.
func TestDefaultsOfCodeAreThoseOfTheChart(t *testing.T) {
	_, values, config := completed(t)
	all := fallbacks(t)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		keys := strings.Split(path, ".")
		chart := at(values, keys...)
		for _, code := range all[path] {
			if !says(chart) {
				// The profile decides, which the configuration knows.
				chart = at(config, keys...)
			}
			code = plain(t, code)
			if text, is := chart.(string); is {
				if d, err := time.ParseDuration(text); err == nil {
					chart = d.String()
				}
			}
			if diff := cmp.Diff(chart, code); diff != "" {
				t.Errorf("%s has another default in the chart than in code (-chart +code):\n%s", path, diff)
			}
		}
	}
}

// What the configuration puts in for a field that is not given is the default of the chart, where that has one.
func TestDefaultsOfTheConfigurationAreThoseOfTheChart(t *testing.T) {
	raw, _, config := completed(t)
	compared := 0
	for _, field := range fieldsOf(reflect.TypeFor[v1alpha1.ControllerManager](), "") {
		keys := strings.Split(field, ".")
		if !says(at(raw.config, keys...)) {
			continue
		}
		less := plain(t, raw.config).(map[string]any)
		delete(at(less, keys[:len(keys)-1]...).(map[string]any), keys[len(keys)-1])
		filled := at(parsed(t, less), keys...)
		if !says(filled) {
			continue
		}
		compared++
		if diff := cmp.Diff(at(config, keys...), filled); diff != "" {
			t.Errorf("field %s has another default in the chart than in pkg/config (-chart +config):\n%s", field, diff)
		}
	}
	if compared < 3 {
		t.Errorf("only %d fields have a default in both", compared)
	}
}

// inDefinitions are the fields of our kinds that have a default which a value of the chart sets in every object that we make: kind, field of
// the specification, value.
var inDefinitions = map[string]map[string]string{
	"vkoptionstemplates": {"createNode": "offloading.createNode", "disableNetworkCheck": "offloading.disableNetworkCheck"},
	"quotas":             {"limitsEnforcement": "controllerManager.config.defaultLimitsEnforcement"},
}

func TestDefaultsOfDefinitionsAreThoseOfTheChart(t *testing.T) {
	_, _, config := completed(t)
	for plural, fields := range inDefinitions {
		content, err := os.ReadFile(filepath.Join("..", "..", "charts", "liqo", "charts", "liqo-crds", "files", "offloading.liqo.io_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatal(err)
		}
		seen := map[string]string{}
		for name, field := range definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
			if field.Default == nil {
				continue
			}
			seen[name] = fields[name]
			var fallback any
			if err := yaml.Unmarshal(field.Default.Raw, &fallback); err != nil {
				t.Fatal(err)
			}
			// The profile may decide about a value that says nothing.
			path := strings.Split(strings.Replace(fields[name], "controllerManager.config.", "controllerManager.", 1), ".")
			if diff := cmp.Diff(at(config, path...), fallback); diff != "" {
				t.Errorf("spec.%s of %s has another default than value %q (-chart +definition):\n%s", name, plural, fields[name], diff)
			}
		}
		if diff := cmp.Diff(fields, seen); diff != "" {
			t.Errorf("%s has defaults in other fields than are compared with values (-compared +has):\n%s", plural, diff)
		}
	}
}
