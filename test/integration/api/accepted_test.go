package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// good are manifests that are accepted, with their spec as the API server completes it.
var good = map[string]struct{ manifest, spec string }{
	"a ForeignCluster":                    {`{kind: ForeignCluster, spec: {clusterID: milan}}`, `{clusterID: milan}`},
	"a cluster ID of 51 characters":       {`{kind: ForeignCluster, spec: {clusterID: ` + long(51) + `}}`, `{clusterID: ` + long(51) + `}`},
	"a cluster ID of one digit":           {`{kind: ForeignCluster, spec: {clusterID: "7"}}`, `{clusterID: "7"}`},
	"a Tenant that an administrator made": {`{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake}}`, `{clusterID: rome, authzPolicy: TolerateNoHandshake, tenantCondition: Active}`},
	"a Tenant with keys": {`{kind: Tenant, spec: {clusterID: rome, publicKey: YQ==, csr: Yg==, signature: Yw==}}`,
		`{clusterID: rome, publicKey: YQ==, csr: Yg==, signature: Yw==, authzPolicy: KeysExchange, tenantCondition: Active}`},
	"an Identity": {`{kind: Identity, spec: {clusterID: milan, type: ControlPlane, authParams: {apiServer: "https://milan:6443"}}}`,
		`{clusterID: milan, type: ControlPlane, authParams: {apiServer: "https://milan:6443"}}`},
	"a ResourceSlice that leaves everything to the provider": {`{kind: ResourceSlice, spec: {}}`, `{}`},
	"a ResourceSlice": {`{kind: ResourceSlice, spec: {class: default, resources: {cpu: 4, memory: 8Gi, nvidia.com/gpu: "1"}}}`,
		`{class: default, resources: {cpu: 4, memory: 8Gi, nvidia.com/gpu: "1"}}`},
	"a Renew of a slice's certificate": {`{kind: Renew, spec: {consumerClusterID: rome, identityType: ResourceSlice, resourceSliceRef: {name: a}, publicKey: YQ==, csr: YQ==}}`,
		`{consumerClusterID: rome, identityType: ResourceSlice, resourceSliceRef: {name: a}, publicKey: YQ==, csr: YQ==}`},
	"a NamespaceOffloading without spec": {`{kind: NamespaceOffloading}`, `{namespaceMappingStrategy: DefaultName, podOffloadingStrategy: LocalAndRemote}`},
	"a NamespaceOffloading with everything": {`{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SelectedName, remoteNamespaceName: shop, podOffloadingStrategy: Remote, clusterSelector: {nodeSelectorTerms: [{matchExpressions: [{key: liqo.io/remote-cluster-id, operator: In, values: [milan]}]}]}}}`,
		`{namespaceMappingStrategy: SelectedName, remoteNamespaceName: shop, podOffloadingStrategy: Remote, clusterSelector: {nodeSelectorTerms: [{matchExpressions: [{key: liqo.io/remote-cluster-id, operator: In, values: [milan]}]}]}}`},
	"a NamespaceMap": {`{kind: NamespaceMap, spec: {desiredMapping: {shop: shop-rome}}}`, `{desiredMapping: {shop: shop-rome}}`},
	"a VirtualNode":  {`{kind: VirtualNode, spec: {clusterID: milan}}`, `{clusterID: milan}`},
	"a VirtualNode with a patch": {`{kind: VirtualNode, spec: {clusterID: milan, labels: {a: b}, offloadingPatch: {nodeSelector: {disk: ssd}, labelsNotReflected: [a]}}}`,
		`{clusterID: milan, labels: {a: b}, offloadingPatch: {nodeSelector: {disk: ssd}, labelsNotReflected: [a]}}`},
	"a Quota": {`{kind: Quota, spec: {user: a, resources: {cpu: 500m}}}`, `{user: a, limitsEnforcement: None, resources: {cpu: 500m}}`},
	"a ShadowPod": {`{kind: ShadowPod, spec: {pod: {containers: [{name: a, image: b}]}}}`,
		`{pod: {containers: [{name: a, image: b}]}}`},
	"a ShadowEndpointSlice": {`{kind: ShadowEndpointSlice, spec: {template: {addressType: IPv4, endpoints: [{addresses: ["10.0.0.1"]}], ports: [{port: 80}]}}}`,
		`{template: {addressType: IPv4, endpoints: [{addresses: ["10.0.0.1"]}], ports: [{port: 80}]}}`},
	"a VkOptionsTemplate": {`{kind: VkOptionsTemplate, spec: {metricsEnabled: false, containerImage: a}}`,
		`{metricsEnabled: false, containerImage: a, createNode: true, disableNetworkCheck: false}`},
}

func TestAcceptedManifests(t *testing.T) {
	for name, tc := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parse(t, newNamespace(t, env.Milan), tc.manifest)
			if err := create(t, env.Milan.Client, object); err != nil {
				t.Fatalf("the API server refused %s: %v", tc.manifest, err)
			}
			if diff := cmp.Diff(values(t, tc.spec), values(t, marshal(t, object.Object["spec"]))); diff != "" {
				t.Errorf("the API server made another spec of %s (-want +got):\n%s", tc.manifest, diff)
			}
		})
	}
}

// A status is the controllers': creating an object with one does not set it, and updating the object does not either.
func TestStatusIsASubresource(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, status string }{
		"ForeignCluster":      {`{kind: ForeignCluster, spec: {clusterID: milan}}`, `{role: Provider}`},
		"Tenant":              {`{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake}}`, `{tenantNamespace: a}`},
		"Identity":            {`{kind: Identity, spec: {clusterID: milan, type: ControlPlane, authParams: {}}}`, `{kubeconfigSecretRef: {name: a}}`},
		"ResourceSlice":       {`{kind: ResourceSlice}`, `{resources: {cpu: "4"}}`},
		"Renew":               {`{kind: Renew, spec: {consumerClusterID: rome, identityType: ControlPlane, publicKey: YQ==, csr: YQ==}}`, `{authParams: {ca: YQ==}}`},
		"NamespaceOffloading": {`{kind: NamespaceOffloading}`, `{offloadingPhase: Ready}`},
		"NamespaceMap":        {`{kind: NamespaceMap}`, `{currentMapping: {shop: {phase: Accepted}}}`},
		"VirtualNode":         {`{kind: VirtualNode, spec: {clusterID: milan}}`, `{conditions: [{type: Node, status: Running}]}`},
		"ShadowPod":           {`{kind: ShadowPod, spec: {pod: {containers: [{name: a}]}}}`, `{phase: Running}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parse(t, newNamespace(t, env.Milan), tc.manifest)
			wanted := object.DeepCopy()
			wanted.Object["status"] = values(t, tc.status)
			object.Object["status"] = values(t, tc.status)
			if err := create(t, env.Milan.Client, object); err != nil {
				t.Fatalf("creating %s: %v", name, err)
			}
			if diff := cmp.Diff(values(t, tc.status), object.Object["status"]); diff == "" {
				t.Error("the status was set by creating the object")
			}
			if err := change(t, env.Milan.Client, object, wanted, true); err != nil {
				t.Fatalf("updating the status: %v", err)
			}
			live := object.DeepCopy()
			if err := env.Milan.Client.Get(t.Context(), keyOf(live), live); err != nil {
				t.Fatalf("reading the object: %v", err)
			}
			if diff := cmp.Diff(values(t, tc.status), live.Object["status"]); diff != "" {
				t.Errorf("the status sub-resource stored something else (-want +got):\n%s", diff)
			}
		})
	}
}

// discovered are scope, short names and columns of our kinds, as users type and see them.
var discovered = map[string]struct {
	namespaced bool
	shortNames []string
	columns    []string
}{
	"foreignclusters":      {false, []string{"fc"}, []string{"Name", "Role", "Ready", "ClusterID", "Message", "Age"}},
	"tenants":              {true, []string{"tn"}, []string{"Name", "Condition", "Ready", "Message", "Age"}},
	"identities":           {true, []string{"id"}, []string{"Name", "Type", "Ready", "KubeconfigSecret", "Age"}},
	"resourceslices":       {true, []string{"rslice"}, []string{"Name", "Authentication", "Resources", "Message", "Age"}},
	"renews":               {true, nil, []string{"Name", "Type", "Ready", "Age"}},
	"namespaceoffloadings": {true, []string{"nso", "nsof", "nsoff", "nsoffloading"}, []string{"Name", "NamespaceMappingStrategy", "PodOffloadingStrategy", "OffloadingPhase", "Ready", "Message", "RemoteNamespaceName", "Age"}},
	"namespacemaps":        {true, []string{"nm", "nsmap"}, []string{"Name", "Local", "Ready", "Age"}},
	"virtualnodes":         {true, []string{"vn", "vnode", "virno", "vno"}, []string{"Name", "ClusterID", "Create Node", "Ready", "Age", "Node", "VirtualKubelet"}},
	"quotas":               {true, []string{"qt"}, []string{"Name", "Enforcement", "Cordoned", "Age", "User"}},
	"shadowpods":           {true, []string{"shp", "shpod"}, []string{"Name", "Status", "Message", "Age"}},
	"shadowendpointslices": {true, []string{"shes", "sheps", "seps"}, []string{"Name", "Age"}},
	"vkoptionstemplates":   {true, []string{"vkot", "vkopt"}, []string{"Name", "Age"}},
}

func TestDiscovery(t *testing.T) {
	found := map[string]bool{}
	for _, group := range []string{"core.liqo.io", "authentication.liqo.io", "offloading.liqo.io"} {
		list, err := env.Milan.Kube.Discovery().ServerResourcesForGroupVersion(group + "/v1beta1")
		if err != nil {
			t.Fatalf("discovering %s: %v", group, err)
		}
		for _, r := range list.APIResources {
			want, known := discovered[r.Name]
			if !known { // a sub-resource
				continue
			}
			found[r.Name] = true
			if r.Namespaced != want.namespaced {
				t.Errorf("%s: namespaced = %v", r.Name, r.Namespaced)
			}
			if diff := cmp.Diff(want.shortNames, r.ShortNames); diff != "" {
				t.Errorf("%s: short names (-want +got):\n%s", r.Name, diff)
			}
			if diff := cmp.Diff([]string{"liqo"}, r.Categories); diff != "" {
				t.Errorf("%s: 'kubectl get liqo' does not list it (-want +got):\n%s", r.Name, diff)
			}
			columns := columnsOf(t, schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: r.Name})
			if diff := cmp.Diff(want.columns, columns); diff != "" {
				t.Errorf("%s: columns (-want +got):\n%s", r.Name, diff)
			}
		}
	}
	for name := range discovered {
		if !found[name] {
			t.Errorf("%s: the API server does not know it", name)
		}
	}
}

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return parsed
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatalf("encoding %v: %v", value, err)
	}
	return string(text)
}
