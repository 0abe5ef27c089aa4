package compat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

// value is one of v1's chart, with its default.
type value struct {
	path     []string
	fallback any
}

// String is the path as users write it.
func (v value) String() string { return strings.Join(v.path, ".") }

// alone are values of the chart with nothing but this one.
func (v value) alone() map[string]any {
	nested := v.fallback
	for i := len(v.path) - 1; i >= 0; i-- {
		nested = map[string]any{v.path[i]: nested}
	}
	return nested.(map[string]any)
}

// values are those of v1's chart.
func values(t *testing.T) []value {
	t.Helper()
	var all []value
	for _, row := range rows(t, "values.tsv", 2) {
		v := value{}
		for _, key := range strings.Split(row[0], ".") {
			// The one dot in keys is that of liqo.io/type and the like.
			if n := len(v.path); n > 0 && v.path[n-1] == "liqo" && strings.HasPrefix(key, "io/") {
				v.path[n-1] += "." + key
				continue
			}
			v.path = append(v.path, key)
		}
		if err := json.Unmarshal([]byte(row[1]), &v.fallback); err != nil {
			t.Fatalf("the default of %s: %v", v, err)
		}
		all = append(all, v)
	}
	return all
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, "charts", "liqo"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// at goes down values; ours tells whether somebody says something there.
func at(in any, path []string) (found any, ours bool) {
	for _, key := range path {
		of, is := in.(map[string]any)
		if !is {
			return nil, false
		}
		if in, ours = of[key]; !ours {
			return nil, false
		}
	}
	return in, true
}

// differences are what charts/liqo/files/compat.yaml says of values.
type differences struct {
	WithoutEffect []struct {
		Why    string         `json:"why"`
		Values map[string]any `json:"values"`
		Always bool           `json:"always"`
	} `json:"withoutEffect"`
	Defaults []struct {
		Why   string   `json:"why"`
		Paths []string `json:"paths"`
	} `json:"defaults"`
}

func told(t *testing.T) (told differences) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "charts/liqo/files/compat.yaml"))
	if err == nil {
		err = yaml.Unmarshal(content, &told)
	}
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// Each value of Liqo v1's chart is known to ours. What users see by default is what it was, or charts/liqo/files/compat.yaml says why not.
func TestValuesAreThoseOfV1(t *testing.T) {
	c, all, told := loadChart(t), values(t), told(t)
	reasons, idle := map[string]string{}, 0
	for _, one := range told.Defaults {
		for _, path := range one.Paths {
			reasons[path] = one.Why
		}
	}
	known := accepts(t, c, whole(all))
	var unlike []string
	for _, v := range all {
		if !known && !accepts(t, c, v.alone()) {
			t.Errorf("%s is refused", v)
		}
		if here, ours := at(c.Values, v.path); ours && !cmp.Equal(plain(t, here), v.fallback) {
			unlike = append(unlike, v.String())
		}
		for _, one := range told.WithoutEffect {
			if fallback, is := at(one.Values, v.path); is {
				if idle++; !cmp.Equal(fallback, v.fallback) {
					t.Errorf("%s was by default %s, not %s", v, text(t, v.fallback), text(t, fallback))
				}
			}
		}
	}
	for _, problem := range unexplained(reasons, len(reasons), unlike) {
		t.Errorf("charts/liqo/files/compat.yaml, defaults: %s", problem)
	}
	for _, one := range told.WithoutEffect {
		if !strings.HasSuffix(one.Why, ".") {
			t.Errorf("no sentence: %s", one.Why)
		}
	}
	t.Logf("of %d values of Liqo v1.2, 0 are refused, %d are known without effect, and %d have another default", len(all), idle, len(unlike))
}

// given are values with what nobody but the user knows.
func given(t *testing.T, values string) map[string]any {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	own := map[string]any{
		"discovery": map[string]any{"config": map[string]any{"clusterID": "rome"}},
		"ipam":      map[string]any{"podCIDRs": []any{"10.10.0.0/16"}, "serviceCIDR": "10.11.0.0/16"},
	}
	return chartutil.MergeTables(own, parsed)
}

// notes are what users are told of their values, one line each.
func notes(t *testing.T, c *chart.Chart, values map[string]any) []string {
	t.Helper()
	rendered, err := render(t, c, values)
	if err != nil {
		t.Fatal(err)
	}
	var configMap corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(rendered["liqo/templates/config.yaml"]), &configMap); err != nil {
		t.Fatal(err)
	}
	if _, err := v1alpha1.Parse([]byte(configMap.Data["config.yaml"])); err != nil {
		t.Fatalf("the controller manager would not start: %v", err)
	}
	return helm.Notes(rendered)
}

// The default values of Liqo v1, as a file, are those of an installation that works, with our images.
func TestTheDefaultValuesOfV1Render(t *testing.T) {
	c := loadChart(t)
	told := notes(t, c, chartutil.MergeTables(given(t, ""), whole(values(t))))
	want := []string{
		"no effect of metricAgent.enabled: There is no metric agent; virtual kubelets read what pods use from the provider's metrics API, which 'kubectl top' and autoscalers need there.",
		"no effect of proxy.enabled: There is no proxy of the API server, so peering in-band is not possible, and consumers have to reach apiServer.address themselves.",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	rendered, err := render(t, c, chartutil.MergeTables(given(t, ""), whole(values(t))))
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range rendered {
		if strings.Contains(content, "ghcr.io/liqotech/fabric:") || strings.Contains(content, "ghcr.io/liqotech/gateway:") {
			t.Errorf("%s has an image of Liqo v1", path)
		}
	}
}

// A value that would change what its user relies on never passes in silence, and one that changes nothing is not told.
func TestWhatUsersAreToldOfTheirValues(t *testing.T) {
	c := loadChart(t)
	for values, want := range map[string]string{
		"":                                 "",
		"telemetry: {enabled: false}":      "no effect of telemetry.enabled: There is no telemetry, so nothing is sent to anybody.",
		"telemetry: {enabled: true}":       "",
		"proxy: {enabled: true}":           "no effect of proxy.enabled: There is no proxy of the API server",
		"proxy: {enabled: false}":          "no effect of proxy.enabled: There is no proxy of the API server",
		"proxy: {replicas: 2}":             "no effect of proxy.replicas: ",
		"webhook: {replicas: 2}":           "no effect of webhook.replicas: Webhooks are part of the controller manager and answer on all of its pods",
		"openshiftConfig: {enabled: true}": "no effect of openshiftConfig.enabled: No SecurityContextConstraints are made",
		"networking: {gatewayTemplates: {wireguard: {implementation: userspace}}}": "no effect of networking.gatewayTemplates.wireguard.implementation: ",
		"networking: {gatewayTemplates: {ping: {interval: 1s, lossThreshold: 3}}}": "no effect of networking.gatewayTemplates.ping.interval, networking.gatewayTemplates.ping.lossThreshold: ",
		"networking: {fabric: {config: {fullMasquerade: true}}}":                   "no effect of networking.fabric.config.fullMasquerade: ",
		"ipam: {external: {enabled: true, url: 'ipam:6000'}}":                      "no effect of ipam.external.enabled, ipam.external.url: An IPAM of somebody else's cannot be asked here",
		"ipam: {internal: {graphviz: false}}":                                      "",
		"authentication: {awsConfig: {secretAccessKey: hidden}}":                   "no effect of authentication.awsConfig.secretAccessKey: No users of AWS IAM are made",
		"authentication: {awsConfig: {accessKeyId: {secretKeyRef: {name: a}}}}":    "no effect of authentication.awsConfig.accessKeyId: ",
		"requirements: {kernel: {disabled: true}}":                                 "no effect of requirements.kernel.disabled: ",
		"liqo-crds: {crdUpgrade: {enabled: true}}":                                 "no effect of liqo-crds.crdUpgrade.enabled: ",
		"crdReplicator: {pod: {labels: {a: b}}}":                                   "no effect of crdReplicator.pod.labels: ",
		"metricAgent: {enabled: false}":                                            "no effect of metricAgent.enabled: ",
		"reflection: {secret: {type: AllowList}}":                                  "deprecated reflection.secret.type: it is offloading.reflection.secret.type now, which takes it.",
	} {
		t.Run(values, func(t *testing.T) {
			told := strings.Join(notes(t, c, given(t, values)), "\n")
			if (want == "") != (told == "") || !strings.HasPrefix(told, want) || strings.Contains(told, "hidden") || strings.Contains(told, "\n") {
				t.Errorf("%q, want %q", told, want)
			}
		})
	}
}

// whole are v1's default values.
func whole(all []value) map[string]any {
	values := map[string]any{}
	for _, v := range all {
		values = chartutil.MergeTables(v.alone(), values)
	}
	return values
}

// accepts tells whether the schema of the chart takes values.
func accepts(t *testing.T, c *chart.Chart, given map[string]any) bool {
	t.Helper()
	merged, err := chartutil.CoalesceValues(c, given)
	if err != nil {
		t.Fatal(err)
	}
	return chartutil.ValidateAgainstSchema(c, merged) == nil
}

func text(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// plain is a value of the types that JSON knows.
func plain(t *testing.T, value any) (out any) {
	t.Helper()
	if err := json.Unmarshal(text(t, value), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// render renders the chart with values, as plain Helm does without a cluster.
func render(t *testing.T, c *chart.Chart, given map[string]any) (map[string]string, error) {
	t.Helper()
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	complete, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "liqo", Namespace: "liqo", IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, complete)
}
