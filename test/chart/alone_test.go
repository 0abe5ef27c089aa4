package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// inCluster is what templates look up: the objects of a cluster.
type inCluster struct{ dynamic.Interface }

func (c inCluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	return c.Resource(version.WithResource(strings.ToLower(kind) + "s")), kind != "Namespace", err
}

func deploymentWith(namespace, name, arg string) runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "args": []any{arg}}}}}},
	}}
}

// Plain Helm does not install over Liqo v1 either, which has a release and a controller manager of the same names.
func TestTheChartIsNotInstalledOverV1(t *testing.T) {
	const says = " is of Liqo v1, and two controllers must not work on the same objects: " +
		"end its peerings and uninstall it with the liqoctl of Liqo v1, then run the same command again (docs/guide/migration.md)"
	for sentence, test := range map[string]struct {
		there runtime.Object
		want  string
	}{
		"an upgrade of ours":     {deploymentWith("liqo", "liqo-controller-manager", "--config=/etc/liqo/config.yaml"), ""},
		"v1's manager":           {deploymentWith("liqo", "liqo-controller-manager", "--cluster-id=$(CLUSTER_ID)"), "Deployment liqo/liqo-controller-manager" + says},
		"v1's replicator":        {deploymentWith("liqo", "liqo-crd-replicator", "--cluster-id=$(CLUSTER_ID)"), "Deployment liqo/liqo-crd-replicator" + says},
		"one of another product": {deploymentWith("shop", "liqo-crd-replicator", ""), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := load(t)
			given := chartutil.Values{"discovery": map[string]any{"config": map[string]any{"clusterID": "rome"}}, "networking": map[string]any{"enabled": false}}
			if err := chartutil.ProcessDependenciesWithMerge(c, given); err != nil {
				t.Fatal(err)
			}
			capabilities := chartutil.DefaultCapabilities.Copy()
			capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
			all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "liqo", Namespace: "liqo", IsUpgrade: true}, capabilities)
			if err != nil {
				t.Fatal(err)
			}
			_, err = engine.RenderWithClientProvider(c, all, inCluster{fake.NewSimpleDynamicClient(runtime.NewScheme(), test.there)})
			if (test.want == "") != (err == nil) || err != nil && !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
