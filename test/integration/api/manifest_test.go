package api

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/test/integration/fixture"
)

// groups are the API versions of our kinds, so that manifests in tables need none.
var groups = map[string]string{
	"ForeignCluster": "core.liqo.io/v1beta1",
	"Tenant":         "authentication.liqo.io/v1beta1", "Identity": "authentication.liqo.io/v1beta1",
	"ResourceSlice": "authentication.liqo.io/v1beta1", "Renew": "authentication.liqo.io/v1beta1",
	"NamespaceOffloading": "offloading.liqo.io/v1beta1", "NamespaceMap": "offloading.liqo.io/v1beta1",
	"VirtualNode": "offloading.liqo.io/v1beta1", "Quota": "offloading.liqo.io/v1beta1",
	"ShadowPod": "offloading.liqo.io/v1beta1", "ShadowEndpointSlice": "offloading.liqo.io/v1beta1",
	"VkOptionsTemplate": "offloading.liqo.io/v1beta1",
	"Configuration":     "networking.liqo.io/v1beta1", "Connection": "networking.liqo.io/v1beta1",
	"GatewayServer": "networking.liqo.io/v1beta1", "GatewayClient": "networking.liqo.io/v1beta1", "PublicKey": "networking.liqo.io/v1beta1",
	"GeneveTunnel": "networking.liqo.io/v1beta1", "InternalFabric": "networking.liqo.io/v1beta1", "InternalNode": "networking.liqo.io/v1beta1",
	"FirewallConfiguration": "networking.liqo.io/v1beta1", "RouteConfiguration": "networking.liqo.io/v1beta1",
	"WgGatewayServer": "networking.liqo.io/v1beta1", "WgGatewayServerTemplate": "networking.liqo.io/v1beta1",
	"WgGatewayClient": "networking.liqo.io/v1beta1", "WgGatewayClientTemplate": "networking.liqo.io/v1beta1",
	"IP": "ipam.liqo.io/v1alpha1", "Network": "ipam.liqo.io/v1alpha1",
}

// parse reads a manifest: one line "kind: X" is enough of a head, the name is "one" (or the only one allowed) unless given.
func parse(t *testing.T, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	fixture.Must(t, "parsing "+manifest, yaml.Unmarshal([]byte(manifest), &object.Object))
	object.SetAPIVersion(groups[object.GetKind()])
	if object.GetName() == "" && object.GetGenerateName() == "" {
		object.SetName("one")
		if object.GetKind() == "NamespaceOffloading" {
			object.SetName("offloading")
		}
	}
	if object.GetKind() == "ForeignCluster" || object.GetKind() == "InternalNode" { // cluster-scoped: the namespace's name makes it unique
		object.SetName(namespace)
	} else {
		object.SetNamespace(namespace)
	}
	return object
}

// newNamespace makes a namespace that nothing else uses.
func newNamespace(t *testing.T, c *fixture.Cluster) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("it")}}
	fixture.Must(t, "creating a namespace", c.Client.Create(t.Context(), namespace))
	return namespace.Name
}

// create sends a manifest as "kubectl create" does, unknown fields refused.
func create(t *testing.T, c client.Client, object *unstructured.Unstructured) error {
	t.Helper()
	return client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), object)
}

// change sends the live object with another spec, or another status through the sub-resource.
func change(t *testing.T, c client.Client, live, wanted *unstructured.Unstructured, status bool) error {
	t.Helper()
	changed := live.DeepCopy()
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	if status {
		changed.Object["status"] = wanted.Object["status"]
		return strict.Status().Update(t.Context(), changed)
	}
	changed.Object["spec"] = wanted.Object["spec"]
	return strict.Update(t.Context(), changed)
}

func long(n int) string { return strings.Repeat("a", n) }
