package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

// bases are the installations in which a changed value has to show: one of them is enough.
var bases = []string{
	"discovery: {config: {clusterID: rome}}\nipam: {podCIDRs: [10.244.0.0/16], serviceCIDR: 10.96.0.0/12}\nmetrics: {enabled: true, prometheusOperator: {enabled: true}}",
	"discovery: {config: {clusterID: rome}}\nipam: {podCIDRs: [10.244.0.0/16], serviceCIDR: 10.96.0.0/12}\nmetrics: {enabled: true}",
}

// without are the values that change nothing that is rendered, and why.
var without = map[string]string{
	"global":                               "Helm gives it to every chart that has dependencies",
	"liqo-crds.global":                     "Helm gives it to every chart that is part of another",
	"networking.gatewayTemplates.replicas": "it has one value only",
}

// another are values, as YAML, for those that have to be of a certain kind. The first pattern that fits a path counts.
var another = []struct{ pattern, value string }{
	{"apiServer.address", "https://203.0.113.7:6443"},
	{"apiServer.ca", "Zm9v"},
	{"authentication.certificateLifetime", "36h"},
	{"discovery.config.clusterID", "milan"},
	{"imagePullSecrets", "[{name: fence}]"},
	{"ipam.*s", "[10.99.0.0/16]"},
	{"ipam.*CIDR", "10.99.0.0/16"},
	{"networking.isolation", "offloaded"},
	{"networking.fabric.config.*", `"8099"`},
	{"offloading.consumers.tolerations", "[fence]"},
	{"offloading.consumers.capabilities", "[NET_ADMIN]"},
	{"offloading.consumers.serviceTypes", "[ClusterIP]"},
	{"offloading.consumers.limits.resources", `{cpu: "3"}`},
	{"offloading.sharingPercentages", `{gold: 3}`},
	{"offloading.resourcePlugin.address", "unix:///run/plugin/liqo.sock"},
	{"reflection.*.type", "AllowList"},
	{"offloading.reflection.*.*Classes", "[{name: fence, default: true}]"},
	{"offloading.serviceAccountTokens.maxLifetime", "20m"},
	{"offloading.twinNamespaces.network.peers", "[{ipBlock: {cidr: 10.99.0.0/16}}]"},
	{"*olerations", "[{key: fence, operator: Exists}]"},
	{"*resources", `{limits: {cpu: "3"}}`},
	{"*xtraArgs", "[--v=4]"},
	{"virtualKubelet.extra.args", "[--v=4]"},
	{"*nterval", "45s"},
	{"*crapeTimeout", "45s"},
	{"*axTerminationGracePeriod", "45m"},
	{"*axStoredBytes", "64Mi"},
	{"*ilentAfter", "45h"},
}

// everywhere are the values that all pods have, or all containers of them, and those pods whose own values stand for it.
var everywhere = map[string]struct {
	containers bool
	except     []string
}{
	"tag":                 {containers: true},
	"pullPolicy":          {containers: true},
	"imagePullSecrets":    {},
	"priorityClass.name":  {},
	"common.extraArgs":    {true, []string{"virtual kubelets", "gateways (server)", "gateways (client)"}},
	"common.nodeSelector": {false, []string{"virtual kubelets", "gateways (server)", "gateways (client)", "DaemonSet liqo-fabric"}},
	"common.tolerations":  {false, []string{"virtual kubelets", "gateways (server)", "gateways (client)", "DaemonSet liqo-fabric"}},
	"common.affinity":     {false, []string{"virtual kubelets", "gateways (server)", "gateways (client)", "DaemonSet liqo-fabric"}},
}

// leaf is a value of the chart that is no map of others.
type leaf struct {
	path     string
	schema   map[string]any
	fallback any
}

// leaves are all of them, in order.
func leaves(in map[string]any, values any, prefix string) []leaf {
	properties, _ := in["properties"].(map[string]any)
	var all []leaf
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, fallback := properties[name].(map[string]any), at(values, name)
		if _, isMap := property["properties"]; isMap {
			all = append(all, leaves(property, fallback, prefix+name+".")...)
		} else {
			all = append(all, leaf{prefix + name, property, fallback})
		}
	}
	return all
}

// at goes down a value; nil if nothing is there.
func at(in any, keys ...string) any {
	for _, key := range keys {
		of, _ := in.(map[string]any)
		in = of[key]
	}
	return in
}

// changed is another value than the default, of which the schema and the configuration think well.
func (l leaf) changed(t *testing.T) any {
	t.Helper()
	for _, one := range another {
		// A pattern that begins with a star fits the last key.
		name := l.path
		if strings.HasPrefix(one.pattern, "*") {
			name = name[strings.LastIndex(name, ".")+1:]
		}
		if ok, err := path.Match(one.pattern, name); err != nil || !ok {
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(one.value), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	if words, is := l.schema["enum"].([]any); is {
		return words[slices.IndexFunc(words, func(word any) bool { return word != "" && word != l.fallback })]
	}
	kind := l.schema["type"]
	if either, nullable := kind.([]any); nullable {
		kind = either[0]
	}
	switch kind {
	case "boolean":
		return l.fallback != true
	case "integer":
		return l.fallback.(float64) + 1
	case "array":
		return []any{"fence"}
	case "object":
		return map[string]any{"example.org/fence": "3"}
	default:
		return "fence"
	}
}

// rendering is what the chart makes of values.
type rendering struct {
	files map[string]string
	// config is the configuration of the controller manager, as it is in its file.
	config map[string]any
	// values are those that templates see.
	values map[string]any
}

// withoutDefinitions is the chart without the one that it depends on, whose definitions no value changes.
func withoutDefinitions(t *testing.T) *chart.Chart {
	t.Helper()
	c := load(t)
	c.SetDependencies()
	c.Metadata.Dependencies = nil
	return c
}

// read renders values, with another one at a path; an empty path stands for none.
func (r *rendering) read(t *testing.T, c *chart.Chart, values, where string, value any) {
	t.Helper()
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	if where != "" {
		into, keys := map[string]any(given), strings.Split(where, ".")
		for _, key := range keys[:len(keys)-1] {
			if into[key] == nil {
				into[key] = map[string]any{}
			}
			into = into[key].(map[string]any)
		}
		into[keys[len(keys)-1]] = value
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "liqo", Namespace: "liqo", IsInstall: true}, capabilities)
	if err != nil {
		t.Fatalf("%s as %v: %v", where, value, err)
	}
	r.values = plain(t, all["Values"]).(map[string]any)
	if r.files, err = engine.Render(c, all); err != nil {
		t.Fatalf("%s as %v: %v", where, value, err)
	}
	var configMap corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(r.files["liqo/templates/config.yaml"]), &configMap); err != nil {
		t.Fatal(err)
	}
	if _, err := v1alpha1.Parse([]byte(configMap.Data["config.yaml"])); err != nil {
		t.Fatalf("%s as %v: %v", where, value, err)
	}
	if err := yaml.Unmarshal([]byte(configMap.Data["config.yaml"]), &r.config); err != nil {
		t.Fatal(err)
	}
}

// pods are those that the chart makes or has made, by whose they are: of each its containers, by their names, and, nameless, the rest.
func (r *rendering) pods(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	add := func(whose string, pod any) {
		rest, _ := pod.(map[string]any)
		if rest == nil {
			return
		}
		all[whose] = map[string]any{}
		for _, key := range []string{"initContainers", "containers"} {
			containers, _ := rest[key].([]any)
			for _, container := range containers {
				all[whose][at(container, "name").(string)] = container
			}
			delete(rest, key)
		}
		all[whose][""] = rest
	}
	for file, text := range r.files {
		if strings.HasSuffix(file, "NOTES.txt") {
			continue
		}
		for _, document := range strings.Split("\n"+text, "\n---") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			add(fmt.Sprint(object["kind"], " ", at(object, "metadata", "name")), at(object, "spec", "template", "spec"))
		}
	}
	for _, mode := range []string{"server", "client"} {
		// A copy, because add takes it apart.
		add("gateways ("+mode+")", plain(t, at(r.config, "networking", "gatewayTemplates", mode, "spec", "deployment", "spec", "template", "spec")))
	}
	// Of virtual kubelets the configuration has what differs, in a shape of its own.
	kubelet := at(r.config, "virtualKubelet")
	all["virtual kubelets"] = map[string]any{"": kubelet, "virtual-kubelet": kubelet}
	return all
}

// reachesAll checks that a value of all pods, or all containers, changes each of them.
func (l leaf) reachesAll(t *testing.T, before, now *rendering) {
	t.Helper()
	of, is := everywhere[l.path]
	if !is {
		return
	}
	changed := now.pods(t)
	for whose, parts := range before.pods(t) {
		for name, part := range parts {
			if (name != "") != of.containers {
				continue
			}
			switch reached, spared := !cmp.Equal(part, changed[whose][name]), slices.Contains(of.except, whose); {
			case !reached && !spared:
				t.Errorf("value %s does not reach the pod of %s, container %q: use it in the template, or list those pods in everywhere", l.path, whose, name)
			case reached && spared:
				t.Errorf("value %s reaches the pod of %s, which everywhere lists as one that it is not for", l.path, whose)
			}
		}
	}
}

// plain is a value of the types that JSON knows.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var result any
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// moved are the fields of the configuration that have another path than their value, the longest prefix first.
var moved = []struct{ field, value string }{
	{"virtualKubelet.imagePullSecrets", "imagePullSecrets"},
	{"virtualKubelet.pullPolicy", "pullPolicy"},
	{"controllerManager", "controllerManager.config"},
	{"discovery", "discovery.config"},
	{"runtimeClass", "offloading.runtimeClass.name"},
}

// composed are the fields that are made of several values: of all that begin like one of these.
var composed = map[string][]string{
	"virtualKubelet.image":        {"virtualKubelet.image.", "tag"},
	"storage.moverImage":          {"storage.mover.image.", "tag"},
	"networking.gatewayTemplates": {"networking.gatewayTemplates."},
}

// unset are the fields that no value sets, and why.
var unset = map[string]string{
	"offloading.reflection.*.type":                  "some kinds have rules of their own",
	"offloading.reflection.*.statusBack":            "only Ingresses have a status to bring back",
	"offloading.consumers.limits.namespaces":        "it is offloading.twinNamespaces.maxPerTenant",
	"offloading.consumers.limits.sharingPercentage": "it is offloading.sharingPercentage",
}

// valueOf is the path of the value that a field of the configuration has.
func valueOf(field string) string {
	for _, one := range moved {
		if rest, is := strings.CutPrefix(field+".", one.field+"."); is {
			return strings.TrimSuffix(one.value+"."+rest, ".")
		}
	}
	return field
}

// fieldsOf are the fields of the configuration that are no structs of ours, by their paths.
func fieldsOf(of reflect.Type, prefix string) []string {
	var all []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		below := prefix + name + "."
		if options == "inline" {
			below = prefix
		}
		_, whole := composed[prefix+name]
		ours := strings.HasPrefix(field.Type.PkgPath(), reflect.TypeFor[v1alpha1.ControllerManager]().PkgPath()) ||
			field.Type == reflect.TypeFor[offloadingv1beta1.ReflectorConfig]() || field.Type == reflect.TypeFor[authv1beta1.TenantLimits]()
		if ours && !whole && field.Type.Kind() == reflect.Struct {
			all = append(all, fieldsOf(field.Type, below)...)
		} else {
			all = append(all, prefix+name)
		}
	}
	return all
}

// Each value of the chart changes something that is rendered, and each field of the configuration has the value that was given.
func TestEveryValueArrives(t *testing.T) {
	c, defaults := withoutDefinitions(t), make([]rendering, len(bases))
	for i := range bases {
		defaults[i].read(t, c, bases[i], "", nil)
		var again rendering
		if again.read(t, c, bases[i], "", nil); !maps.Equal(defaults[i].files, again.files) {
			t.Fatal("the same values are rendered in two ways")
		}
	}
	all := leaves(schemaOfValues(t), defaults[0].values, "")
	fields, known := map[string]string{}, map[string]bool{}
	for _, field := range fieldsOf(reflect.TypeFor[v1alpha1.ControllerManager](), "") {
		fields[valueOf(field)] = field
	}
	for _, one := range all {
		known[one.path] = true
		if text, _ := one.schema["description"].(string); without[one.path] != "" || strings.HasPrefix(text, "No effect here: ") {
			continue
		}
		t.Run(one.path, func(t *testing.T) {
			one.arrives(t, c, defaults, fields[one.path])
		})
	}
	for path := range without {
		if !known[path] {
			t.Errorf("there is no value %s: remove it from the list of those that change nothing", path)
		}
	}
	for path := range everywhere {
		if !known[path] {
			t.Errorf("there is no value %s: remove it from the list of those that all pods have", path)
		}
	}
	for path, field := range fields {
		_, made := composed[field]
		if !known[path] && !made && !fits(unset, field) {
			t.Errorf("field %s of the configuration has no value in the chart", field)
		}
	}
}

func fits(patterns map[string]string, name string) bool {
	for pattern := range patterns {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// arrives checks that a change of the value shows, and in the field of the configuration that has it.
func (l leaf) arrives(t *testing.T, c *chart.Chart, defaults []rendering, field string) {
	value := l.changed(t)
	for i := range bases {
		var now rendering
		now.read(t, c, bases[i], l.path, value)
		if maps.Equal(now.files, defaults[i].files) {
			continue
		}
		l.reachesAll(t, &defaults[i], &now)
		if field != "" {
			want, got := at(now.values, strings.Split(l.path, ".")...), at(now.config, strings.Split(field, ".")...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("field %s of the configuration is not what value %s is (-value +field):\n%s", field, l.path, diff)
			}
		}
		for field, prefixes := range composed {
			keys := strings.Split(field, ".")
			part := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(l.path, prefix) })
			if part && cmp.Equal(at(defaults[i].config, keys...), at(now.config, keys...)) {
				t.Errorf("field %s of the configuration does not change with value %s", field, l.path)
			}
		}
		return
	}
	t.Errorf("nothing that is rendered changes with value %s, here %v", l.path, value)
}
