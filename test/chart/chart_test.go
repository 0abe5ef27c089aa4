package chart

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/charts"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

// valueSets are the installations that are rendered; each has a golden file.
var valueSets = map[string]string{
	"default":             `discovery: {config: {clusterID: rome}}`,
	"hardened":            "profile: hardened\ndiscovery: {config: {clusterID: rome}}\nmetrics: {enabled: true, prometheusOperator: {enabled: true}}",
	"replicas":            "discovery: {config: {clusterID: rome}}\nnetworking: {enabled: false}\ncontrollerManager: {replicas: 3}\ntag: v9\nimagePullSecrets: [{name: pull}]\ncommon: {tolerations: [{operator: Exists}], nodeSelector: {a: b}, extraArgs: [--v=4]}",
	"accounts":            "discovery: {config: {clusterID: rome}}\nnetworking: {enabled: false}\nvirtualKubelet: {nodeIdentity: serviceAccount, virtualNode: {keepDaemonSetsOff: true}}\noffloading: {reflection: {ingress: {statusBack: true}}}",
	"network":             "discovery: {config: {clusterID: rome}}\nnetworking: {enabled: true}\nipam: {podCIDRs: [10.244.0.0/16], serviceCIDR: 10.96.0.0/12}\nmetrics: {enabled: true}",
	"authentication-only": "discovery: {config: {clusterID: rome}}\nnetworking: {enabled: false}\noffloading: {enabled: false}\nfullnameOverride: other",
}

func load(t testing.TB) *chart.Chart {
	t.Helper()
	var files []*loader.BufferedFile
	err := fs.WalkDir(charts.Liqo(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts.Liqo(), path)
		files = append(files, &loader.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(t testing.TB, values string) (map[string]string, error) {
	t.Helper()
	return renderFor(t, chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}, values)
}

func renderFor(t testing.TB, kubernetes chartutil.KubeVersion, values string) (map[string]string, error) {
	t.Helper()
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	if given["discovery"] == nil {
		given["discovery"] = map[string]any{"config": map[string]any{"clusterID": "rome"}}
	}
	if given["ipam"] == nil {
		given["ipam"] = map[string]any{"podCIDRs": []any{"10.244.0.0/16"}, "serviceCIDR": "10.96.0.0/12"}
	}
	return renderGiven(t, kubernetes, given)
}

// renderGiven renders the chart with just these values.
func renderGiven(t testing.TB, kubernetes chartutil.KubeVersion, given chartutil.Values) (map[string]string, error) {
	t.Helper()
	c := load(t)
	if err := chartutil.ProcessDependenciesWithMerge(c, given); err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = kubernetes
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "liqo", Namespace: "liqo", IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

func TestRender(t *testing.T) {
	for name, values := range valueSets {
		if name == "network" {
			continue // TestRenderWithTheNetwork
		}
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, path := range slices.Sorted(maps.Keys(rendered)) {
				// CRDs are compared with the code they are made from, elsewhere; rights have a golden file of their own.
				if strings.Contains(path, "liqo-crds") || strings.TrimSpace(rendered[path]) == "" || strings.HasSuffix(path, "rbac.yaml") {
					continue
				}
				text.WriteString("# " + path + "\n" + strings.TrimSpace(rendered[path]) + "\n---\n")
			}
			compare(t, name, text.String())
		})
	}
}

// compare holds what is rendered against a golden file.
func compare(t *testing.T, name, text string) {
	t.Helper()
	golden := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("the chart renders something else than %s (go test ./test/chart -update writes it):\n%s", golden, diff)
	}
}

func TestEveryDocumentIsYAML(t *testing.T) {
	for name, values := range valueSets {
		rendered, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		for path, text := range rendered {
			if strings.HasSuffix(path, "NOTES.txt") {
				continue
			}
			for _, document := range strings.Split(text, "\n---") {
				var object map[string]any
				if err := yaml.Unmarshal([]byte(document), &object); err != nil {
					t.Errorf("%s: %s: %v", name, path, err)
				}
				if len(object) > 0 && (object["kind"] == nil || object["apiVersion"] == nil) {
					t.Errorf("%s: %s: a document has no kind", name, path)
				}
			}
		}
	}
}

func TestCRDsAreKept(t *testing.T) {
	rendered, err := render(t, valueSets["default"])
	if err != nil {
		t.Fatal(err)
	}
	crds := 0
	for path, text := range rendered {
		if !strings.Contains(path, "liqo-crds") {
			continue
		}
		for _, document := range strings.Split(text, "\n---") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			crds++
			if !strings.Contains(document, "helm.sh/resource-policy: keep") {
				t.Errorf("a CRD would be deleted with the release:\n%.300s", document)
			}
		}
	}
	if crds != 28 {
		t.Errorf("the chart has %d CRDs, want the 28 of groups core, authentication, offloading, networking and ipam", crds)
	}
}

func TestConfigurationFileIsUnderstood(t *testing.T) {
	for name, values := range valueSets {
		t.Run(name, func(t *testing.T) {
			c := configuration(t, values)
			wantLevel := ""
			if name == "hardened" {
				wantLevel = "baseline"
			}
			if c.Offloading.TwinNamespaces.PodSecurity != wantLevel {
				t.Errorf("twin namespaces enforce %q, want %q", c.Offloading.TwinNamespaces.PodSecurity, wantLevel)
			}
		})
	}
}

// configuration is what the controller manager reads.
func configuration(t *testing.T, values string) *v1alpha1.ControllerManager {
	t.Helper()
	rendered, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	var configMap corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(rendered["liqo/templates/config.yaml"]), &configMap); err != nil {
		t.Fatal(err)
	}
	c, err := v1alpha1.Parse([]byte(configMap.Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPodsAreHardened(t *testing.T) {
	rendered, err := render(t, valueSets["default"])
	if err != nil {
		t.Fatal(err)
	}
	const template = "liqo/templates/deployment.yaml"
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal([]byte(strings.Split(rendered[template], "\n---")[0]), &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	of := ptr.Deref(pod.SecurityContext, corev1.PodSecurityContext{})
	for _, c := range pod.Containers {
		own := ptr.Deref(c.SecurityContext, corev1.SecurityContext{})
		for what, is := range map[string]bool{
			"securityContext.runAsNonRoot: true (of the pod)":     ptr.Deref(of.RunAsNonRoot, false),
			"securityContext.seccompProfile.type: RuntimeDefault": ptr.Deref(of.SeccompProfile, corev1.SeccompProfile{}).Type == corev1.SeccompProfileTypeRuntimeDefault,
			"securityContext.readOnlyRootFilesystem: true":        ptr.Deref(own.ReadOnlyRootFilesystem, false),
			"securityContext.allowPrivilegeEscalation: false":     !ptr.Deref(own.AllowPrivilegeEscalation, true),
			"securityContext.capabilities.drop: [ALL]":            slices.Contains(ptr.Deref(own.Capabilities, corev1.Capabilities{}).Drop, "ALL"),
			"resources.requests.cpu":                              !c.Resources.Requests.Cpu().IsZero(),
			"readinessProbe":                                      c.ReadinessProbe != nil,
			"livenessProbe":                                       c.LivenessProbe != nil,
		} {
			if !is {
				t.Errorf("%s: container %s of Deployment %s is not hardened: give it %s", template, c.Name, deployment.Name, what)
			}
		}
	}
}

func TestRefusedValues(t *testing.T) {
	for name, tc := range map[string]struct{ values, want string }{
		"a resource plugin at a URL":     {"offloading: {resourcePlugin: {address: 'https://plugin:443'}}", "resourcePlugin"},
		"a resource plugin on no port":   {"offloading: {resourcePlugin: {address: plugin, tlsSecret: a}}", "resourcePlugin"},
		"a socket of no folder":          {"offloading: {resourcePlugin: {address: 'unix://s'}}", "resourcePlugin"},
		"a Secret of no name":            {"offloading: {resourcePlugin: {tlsSecret: A_B}}", "tlsSecret"},
		"an unknown key":                 {"reflecting: {}", "reflecting"},
		"an unknown key further down":    {"offloading: {createNodes: true}", "createNodes"},
		"a cluster ID with capitals":     {"discovery: {config: {clusterID: Rome}}", "clusterID"},
		"a cluster ID that is too long":  {"discovery: {config: {clusterID: " + strings.Repeat("a", 52) + "}}", "clusterID"},
		"an unknown profile":             {"profile: strict", "profile"},
		"an unknown policy":              {"offloading: {reflection: {secret: {type: Deny}}}", "type"},
		"an unknown pull policy":         {"pullPolicy: Sometimes", "pullPolicy"},
		"negative workers":               {"offloading: {reflection: {pod: {workers: -1}}}", "workers"},
		"no replicas":                    {"controllerManager: {replicas: 0}", "replicas"},
		"a plain http API server":        {"apiServer: {address: 'http://a'}", "address"},
		"a pod CIDR that is none":        {"ipam: {podCIDR: ten}", "podCIDR"},
		"an unknown failure policy":      {"webhook: {failurePolicy: Maybe}", "failurePolicy"},
		"an unknown Pod Security level":  {"offloading: {twinNamespaces: {podSecurity: safe}}", "podSecurity"},
		"an unknown node identity":       {"virtualKubelet: {nodeIdentity: admin}", "nodeIdentity"},
		"a scrape every now and then":    {"virtualKubelet: {metrics: {podMonitor: {interval: often}}}", "interval"},
		"a second gateway":               {"networking: {gatewayTemplates: {replicas: 2}}", "replicas"},
		"an overlay port that is none":   {"networking: {genevePort: 65536}", "genevePort"},
		"a health port that is none":     {"networking: {fabric: {config: {healthProbeBindAddressPort: http}}}", "healthProbeBindAddressPort"},
		"a pool that is no text":         {"ipam: {pools: [{}]}", "pools"},
		"an external range that is none": {"ipam: {externalCIDR: ten}", "externalCIDR"},
		"a string for a number":          {"webhook: {port: https}", "port"},
		"an unknown enforcement":         {"controllerManager: {config: {defaultLimitsEnforcement: Harder}}", "defaultLimitsEnforcement"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tc.values)
			if err == nil {
				t.Fatalf("the chart took %s", tc.values)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error does not name %q: %v", tc.want, err)
			}
		})
	}
}

func TestLint(t *testing.T) {
	for _, message := range lint.All(filepath.Join("..", "..", "charts", "liqo"), map[string]any{}, "liqo", false).Messages {
		if message.Severity >= support.WarningSev {
			t.Error(message)
		}
	}
}

// What identifies the cluster is never made up: each rendering would do it anew.
func TestTheClusterIDIsGiven(t *testing.T) {
	_, err := renderGiven(t, chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}, chartutil.Values{"networking": map[string]any{"enabled": false}})
	if err == nil || !strings.Contains(err.Error(), "give discovery.config.clusterID") {
		t.Errorf("a chart without cluster and cluster ID renders: %v", err)
	}
}

// Ranges are not made up either. Whoever routes pod networks otherwise needs none.
func TestTheNetworkModuleNeedsRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		values  string
		refused bool
	}{
		"none":                   {"ipam: {}", true},
		"those of pods alone":    {"ipam: {podCIDRs: [10.244.0.0/16]}", true},
		"those of Services":      {"ipam: {serviceCIDR: 10.96.0.0/12}", true},
		"both":                   {"ipam: {podCIDRs: [10.244.0.0/16], serviceCIDR: 10.96.0.0/12}", false},
		"both, as v1 has them":   {"ipam: {podCIDR: 10.244.0.0/16, serviceCIDR: 10.96.0.0/12}", false},
		"none, and no networks":  {"ipam: {}\nnetworking: {enabled: false}", false},
		"without authentication": {"ipam: {}\nauthentication: {enabled: false}\noffloading: {enabled: false}", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tc.values)
			if refused := err != nil && strings.Contains(err.Error(), "give ipam.podCIDRs and ipam.serviceCIDR"); refused != tc.refused || err != nil && !refused {
				t.Errorf("refused: %v, %v", refused, err)
			}
		})
	}
}

func TestImagesHaveNames(t *testing.T) {
	for _, key := range []string{"controllerManager: {image: {name: ''}}", "virtualKubelet: {image: {name: ''}}", "storage: {mover: {image: {name: ''}}}",
		"networking: {fabric: {image: {name: ''}}}", "networking: {gatewayTemplates: {container: {gateway: {image: {name: ''}}}}}"} {
		if _, err := render(t, "discovery: {config: {clusterID: rome}}\n"+key); err == nil || !strings.Contains(err.Error(), "does not match pattern") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A class of the cluster's own is taken, made by the chart or not, and none if that is wanted.
func TestPriorityClass(t *testing.T) {
	for name, tc := range map[string]struct{ values, made, pods string }{
		"the chart's":     {"", "name: liqo-critical", "priorityClassName: liqo-critical"},
		"the cluster's":   {"priorityClass: {create: false, name: system-cluster-critical}", "", "priorityClassName: system-cluster-critical"},
		"of each its own": {"controllerManager: {pod: {priorityClassName: a}}\nvirtualKubelet: {extra: {priorityClassName: a}}", "name: liqo-critical", "priorityClassName: a"},
		"none":            {"priorityClass: {name: ''}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "discovery: {config: {clusterID: rome}}\n"+tc.values)
			if err != nil {
				t.Fatal(err)
			}
			class := rendered["liqo/templates/priorityclass.yaml"]
			if strings.Contains(class, "kind: PriorityClass") != (tc.made != "") || !strings.Contains(class, tc.made) {
				t.Errorf("the chart makes %s", class)
			}
			for _, path := range []string{"liqo/templates/deployment.yaml", "liqo/templates/config.yaml"} {
				if text := rendered[path]; tc.pods == "" && (strings.Contains(text, "priorityClassName: liqo") || strings.Contains(text, "priorityClassName: sys")) || !strings.Contains(text, tc.pods) {
					t.Errorf("%s does not say %q", path, tc.pods)
				}
			}
		})
	}
}
