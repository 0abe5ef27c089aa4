package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

func keyOf(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

// columnsOf asks for a table, as kubectl get does.
func columnsOf(t *testing.T, resource schema.GroupVersionResource) []string {
	t.Helper()
	raw, err := env.Milan.Kube.Discovery().RESTClient().Get().
		AbsPath("/apis", resource.Group, resource.Version, resource.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	fixture.Must(t, "asking for a table of "+resource.Resource, err)
	var table metav1.Table
	fixture.Must(t, "reading a table of "+resource.Resource, json.Unmarshal(raw, &table))
	columns := make([]string, 0, len(table.ColumnDefinitions))
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	return columns
}

// foreign are fields whose types are Kubernetes' own: what is below them is described there.
var foreign = []string{
	"spec.pod", "spec.template", "spec.tolerations", "spec.affinity", "spec.offloadingPatch.tolerations",
	"spec.offloadingPatch.affinity", "spec.clusterSelector", "spec.resources", "spec.taints", "spec.images",
	"spec.resourceQuota", "status.containerStatuses", "metadata",
	"spec.serviceTemplate.metadata", "spec.serviceTemplate.spec", "spec.service.metadata", "spec.deployment.metadata",
	"spec.metrics.service.metadata", "spec.metrics.serviceMonitor.metadata",
}

// What "kubectl explain" shows has a sentence for every field.
func TestEveryFieldIsExplained(t *testing.T) {
	t.Parallel()
	var crds apiextensionsv1.CustomResourceDefinitionList
	fixture.Must(t, "listing CustomResourceDefinitions", env.Milan.Client.List(t.Context(), &crds))
	seen := 0
	for _, crd := range crds.Items {
		if !strings.HasSuffix(crd.Spec.Group, "liqo.io") {
			continue
		}
		seen++
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		if root.Description == "" {
			t.Errorf("%s has no description", crd.Name)
		}
		for _, path := range unexplained("", root) {
			t.Errorf("%s: %s has no description", crd.Name, path)
		}
	}
	if seen != len(groups) {
		t.Errorf("%d CustomResourceDefinitions of ours, want %d", seen, len(groups))
	}
}

func unexplained(path string, node *apiextensionsv1.JSONSchemaProps) (missing []string) {
	if slices.Contains(foreign, path) {
		return nil
	}
	for name, field := range node.Properties {
		below := strings.TrimPrefix(path+"."+name, ".")
		topLevel := slices.Contains([]string{"metadata", "spec", "status"}, below)
		if field.Description == "" && !topLevel {
			missing = append(missing, below)
		}
		missing = append(missing, unexplained(below, &field)...)
	}
	if node.Items != nil && node.Items.Schema != nil {
		missing = append(missing, unexplained(path, node.Items.Schema)...)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		missing = append(missing, unexplained(path, node.AdditionalProperties.Schema)...)
	}
	return missing
}

// A kind without sub-resource must not be asked for one by a controller; kinds with one are in TestStatusIsASubresource.
func TestKindsWithoutStatus(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, env.Milan)
	for _, manifest := range []string{
		`{kind: Quota, spec: {user: a, resources: {}}}`,
		`{kind: ShadowEndpointSlice}`,
		`{kind: VkOptionsTemplate, spec: {metricsEnabled: false, containerImage: a}}`,
		`{kind: PublicKey, spec: {publicKey: ` + wgKey + `}}`,
		`{kind: InternalFabric, spec: {gatewayIP: 10.244.1.200, interface: {gateway: {ip: 10.70.0.200}}}}`,
		`{kind: WgGatewayServerTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServer}, template: {}}}`,
		`{kind: WgGatewayClientTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayClient}, template: {}}}`,
	} {
		object := parse(t, namespace, manifest)
		fixture.Must(t, "creating "+manifest, create(t, env.Milan.Client, object))
		live := &unstructured.Unstructured{Object: object.Object}
		if err := env.Milan.Client.Status().Update(t.Context(), live); err == nil {
			t.Errorf("%s has a status sub-resource", object.GetKind())
		}
	}
}
