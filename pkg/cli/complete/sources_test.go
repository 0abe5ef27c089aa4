package complete

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
)

// answering returns a cluster whose API server has these objects at these paths, with their query, and nothing else.
func answering(t *testing.T, objects map[string][]metav1.ObjectMeta) *target.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items, ok := objects[r.URL.RequestURI()]
		if !ok {
			t.Logf("asked for %s", r.URL.RequestURI())
			http.NotFound(w, r)
			return
		}
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for _, item := range items {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: item})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],"clusters":[{"name":"a","cluster":{"server":"` + server.URL + `"}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := target.FromKubeconfig(file, "")
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestSources(t *testing.T) {
	named := func(names ...string) []metav1.ObjectMeta {
		var items []metav1.ObjectMeta
		for _, name := range names {
			items = append(items, metav1.ObjectMeta{Name: name, Namespace: "of-" + name})
		}
		return items
	}
	labelled := func(key string, values ...string) []metav1.ObjectMeta {
		var items []metav1.ObjectMeta
		for _, value := range values {
			items = append(items, metav1.ObjectMeta{Name: "n", Labels: map[string]string{key: value, "same": "everywhere"}})
		}
		return items
	}
	for name, c := range map[string]struct {
		source Source
		path   string
		items  []metav1.ObjectMeta
		want   []string
	}{
		"namespaces, sorted": {Namespaces, "/api/v1/namespaces", named("shop", "bank"), []string{"bank", "shop"}},
		"namespaces that can be offloaded": {OffloadableNamespaces, "/api/v1/namespaces", append(
			named("shop", "liqo", "liqo-tenant-milan", "liqo-storage", "kube-system", "kube-node-lease", "default", "liqo-demo"),
			metav1.ObjectMeta{Name: "renamed", Labels: map[string]string{corev1beta1.TenantNamespaceLabel: "true"}}), []string{"default", "liqo-demo", "shop"}},
		"no namespaces": {Namespaces, "/api/v1/namespaces", nil, []string{}},
		"offloaded namespaces are where the objects are": {OffloadedNamespaces, "/apis/offloading.liqo.io/v1beta1/namespaceoffloadings",
			named("a", "a"), []string{"of-a"}},
		"virtual nodes": {VirtualNodes, "/apis/offloading.liqo.io/v1beta1/virtualnodes", named("milan"), []string{"milan"}},
		"tenants":       {Tenants, "/apis/authentication.liqo.io/v1beta1/tenants", named("rome"), []string{"rome"}},
		"slices":        {Slices, "/apis/authentication.liqo.io/v1beta1/resourceslices", named("rome", "gpus"), []string{"gpus", "rome"}},
		"slices of consumers, not of this cluster": {ConsumersSlices, "/apis/authentication.liqo.io/v1beta1/resourceslices?labelSelector=liqo.io%2Freplicated%3Dtrue",
			named("rome", "gpus"), []string{"gpus", "rome"}},
		"slices of this cluster, not of consumers": {OwnSlices, "/apis/authentication.liqo.io/v1beta1/resourceslices?labelSelector=liqo.io%2Freplication%3Dtrue%2Cliqo.io%2Freplicated%21%3Dtrue",
			named("milan", "gpus"), []string{"gpus", "milan"}},
		"peers, by the labels of their namespaces": {ClusterIDs, "/api/v1/namespaces?labelSelector=liqo.io%2Ftenant-namespace%3Dtrue",
			append(labelled(corev1beta1.RemoteClusterIDLabel, "milan", "turin", "milan"), named("half-made")...), []string{"milan", "turin"}},
		"labels of virtual nodes": {NodeSelectors, "/api/v1/nodes?labelSelector=liqo.io%2Ftype%3Dvirtual-node",
			labelled("region", "north", "south"), []string{"region=north", "region=south"}},
		"labels of namespaces": {NamespaceSelectors, "/api/v1/namespaces", labelled("team", "a", "b"), []string{"team=a", "team=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.source.Ask(t.Context(), answering(t, map[string][]metav1.ObjectMeta{c.path: c.items}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an API server that says no", func(t *testing.T) {
		if got, err := Tenants.Ask(t.Context(), answering(t, nil)); err == nil {
			t.Errorf("got %v", got)
		}
	})
}
