package api

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/test/integration/fixture"
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
	"a VirtualNode with a preference": {`{kind: VirtualNode, spec: {clusterID: milan, offloadingPatch: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}}}}}`,
		`{clusterID: milan, offloadingPatch: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}}}}`},
	"a VirtualNode with a patch": {`{kind: VirtualNode, spec: {clusterID: milan, labels: {a: b}, offloadingPatch: {nodeSelector: {disk: ssd}, labelsNotReflected: [a]}}}`,
		`{clusterID: milan, labels: {a: b}, offloadingPatch: {nodeSelector: {disk: ssd}, labelsNotReflected: [a]}}`},
	"a Quota": {`{kind: Quota, spec: {user: a, resources: {cpu: 500m}}}`, `{user: a, limitsEnforcement: None, resources: {cpu: 500m}}`},
	"a ShadowPod": {`{kind: ShadowPod, spec: {pod: {containers: [{name: a, image: b}]}}}`,
		`{pod: {containers: [{name: a, image: b}]}}`},
	"a ShadowEndpointSlice": {`{kind: ShadowEndpointSlice, spec: {template: {addressType: IPv4, endpoints: [{addresses: ["10.0.0.1"]}], ports: [{port: 80}]}}}`,
		`{template: {addressType: IPv4, endpoints: [{addresses: ["10.0.0.1"]}], ports: [{port: 80}]}}`},
	"a VkOptionsTemplate": {`{kind: VkOptionsTemplate, spec: {metricsEnabled: false, containerImage: a}}`,
		`{metricsEnabled: false, containerImage: a, createNode: true, disableNetworkCheck: false}`},
	"a Configuration of a peer with two pod ranges": {`{kind: Configuration, spec: {remote: {cidr: {pod: [10.244.0.0/16, "fd00:1::/48"], external: [10.70.0.0/16]}}}}`,
		`{remote: {cidr: {pod: [10.244.0.0/16, "fd00:1::/48"], external: [10.70.0.0/16]}}}`},
	"32 ranges":       {configuration(`{cidr: {pod: ` + ranges(31) + `, external: [172.16.0.0/16]}}`), `{remote: {cidr: {pod: ` + ranges(31) + `, external: [172.16.0.0/16]}}}`},
	"a GatewayServer": {server(`{endpoint: {port: 51840}}`), `{endpoint: {port: 51840, serviceType: ClusterIP}}`},
	"a GatewayServer with everything": {server(`{mtu: 1340, endpoint: {port: 51840, serviceType: LoadBalancer, nodePort: 30000, loadBalancerIP: 192.0.2.1}, secretRef: {name: keys}, serverTemplateRef: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServerTemplate, name: wireguard-server, namespace: liqo}, serviceAnnotations: {a: b}, serviceLabels: {a: b}}`),
		`{mtu: 1340, endpoint: {port: 51840, serviceType: LoadBalancer, nodePort: 30000, loadBalancerIP: 192.0.2.1}, secretRef: {name: keys}, serverTemplateRef: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServerTemplate, name: wireguard-server, namespace: liqo}, serviceAnnotations: {a: b}, serviceLabels: {a: b}}`},
	"a GatewayServer without chosen node port": {server(`{endpoint: {port: 51840, serviceType: ClusterIP, nodePort: 0}}`), `{endpoint: {port: 51840, serviceType: ClusterIP, nodePort: 0}}`},
	"a GatewayServer with a name of 60 characters": {`{kind: GatewayServer, metadata: {name: ` + long(60) + `}, spec: {endpoint: {port: 51840}}}`,
		`{endpoint: {port: 51840, serviceType: ClusterIP}}`},
	"a GatewayClient": {clientOf(`{endpoint: {port: 51840, addresses: [192.0.2.1, "2001:db8::1", gw.example.com, GW-1.example.com., localhost]}}`),
		`{endpoint: {port: 51840, addresses: [192.0.2.1, "2001:db8::1", gw.example.com, GW-1.example.com., localhost], protocol: UDP}}`},
	"a PublicKey":  {publicKey(wgKey), `{publicKey: ` + wgKey + `}`},
	"a Connection": {`{kind: Connection, spec: {type: Server, gatewayRef: {kind: WgGatewayServer, name: a, namespace: b}}}`, `{type: Server, gatewayRef: {kind: WgGatewayServer, name: a, namespace: b}}`},
	"a GeneveTunnel of Liqo v1": {`{kind: GeneveTunnel, spec: {id: 1, internalNodeRef: {name: a}, internalFabricRef: {name: b, namespace: c}}}`,
		`{id: 1, internalNodeRef: {name: a}, internalFabricRef: {name: b, namespace: c}}`},
	"an InternalFabric": {`{kind: InternalFabric, spec: {mtu: 1440, gatewayIP: 10.244.1.200, remoteCIDRs: [10.61.0.0/16], interface: {node: {name: cni-liqo}, gateway: {ip: 10.70.0.200}}}}`,
		`{mtu: 1440, gatewayIP: 10.244.1.200, remoteCIDRs: [10.61.0.0/16], interface: {node: {name: cni-liqo}, gateway: {ip: 10.70.0.200}}}`},
	"an InternalNode": {`{kind: InternalNode, spec: {interface: {node: {ip: 10.70.255.254}}}}`, `{interface: {node: {ip: 10.70.255.254}}}`},
	"an IP":           {ip("10.0.0.1"), `{ip: 10.0.0.1}`},
	"an IP of IPv6":   {ip("fd00:1:2:3:4:5:6:7"), `{ip: "fd00:1:2:3:4:5:6:7"}`},
	"an IP that ends in seven groups and a gap": {ip("1:2:3:4:5:6:7::"), `{ip: "1:2:3:4:5:6:7::"}`},
	"the IP of no host":                         {ip("::"), `{ip: "::"}`},
	"an IP with a Service": {`{kind: IP, spec: {ip: 10.0.0.1, masquerade: true, networkRef: {name: external, namespace: liqo}, serviceTemplate: {metadata: {labels: {a: b}}, spec: {type: ClusterIP, ports: [{port: 80}]}}}}`,
		`{ip: 10.0.0.1, masquerade: true, networkRef: {name: external, namespace: liqo}, serviceTemplate: {metadata: {labels: {a: b}}, spec: {type: ClusterIP, ports: [{port: 80, protocol: TCP}]}}}`},
	"a Network": {`{kind: Network, spec: {cidr: 10.0.0.0/16, preAllocated: 1}}`, `{cidr: 10.0.0.0/16, preAllocated: 1}`},
	"a WgGatewayServer": {`{kind: WgGatewayServer, spec: {service: {metadata: {labels: {a: b}}, spec: {ports: [{port: 51840}]}}, deployment: {spec: ` + podTemplate + `}, metrics: {enabled: true, serviceMonitor: {spec: {endpoints: [{port: metrics}]}}}}}`,
		`{service: {metadata: {labels: {a: b}}, spec: {ports: [{port: 51840}]}}, deployment: {spec: ` + podTemplate + `}, metrics: {enabled: true, serviceMonitor: {spec: {endpoints: [{port: metrics}]}}}}`},
	"a WgGatewayClient": {`{kind: WgGatewayClient, spec: {deployment: {spec: ` + podTemplate + `}}}`, `{deployment: {spec: ` + podTemplate + `}}`},
	"a WgGatewayServerTemplate": {`{kind: WgGatewayServerTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServer}, template: {spec: {service: {spec: {ports: [{port: "{{ .Spec.Endpoint.Port }}", "?nodePort": "{{ .Spec.Endpoint.NodePort }}"}]}}}}}}`,
		`{objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServer}, template: {spec: {service: {spec: {ports: [{port: "{{ .Spec.Endpoint.Port }}", "?nodePort": "{{ .Spec.Endpoint.NodePort }}"}]}}}}}`},
	"a WgGatewayClientTemplate": {`{kind: WgGatewayClientTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayClient}, template: {spec: {}}}}`,
		`{objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayClient}, template: {spec: {}}}`},
	"a FirewallConfiguration that bounds segments": {filterRule(`{name: clamp, action: tcpmssclamp, value: "0", match: [{op: eq, dev: {value: liqo-tunnel, position: out}, proto: {value: tcp}}]}`),
		`{table: {name: a, family: IPV4, chains: [{name: a, type: filter, hook: forward, policy: accept, priority: 0, rules: {filterRules: [{name: clamp, action: tcpmssclamp, value: "0", counter: true, match: [{op: eq, dev: {value: liqo-tunnel, position: out}, proto: {value: tcp}}]}]}}]}}`},
	"a FirewallConfiguration that translates": {natRule("prerouting", `{natType: dnat, to: 10.1.0.0/16, match: [{op: eq, ip: {value: 10.2.0.0/16, position: dst}}, {op: neq, ip: {value: "10.2.0.1-10.2.0.9", position: src}, port: {value: 3000-4000, position: dst}}]}`),
		`{table: {name: a, family: IPV4, chains: [{name: a, type: nat, hook: prerouting, policy: accept, priority: 0, rules: {natRules: [{natType: dnat, to: 10.1.0.0/16, match: [{op: eq, ip: {value: 10.2.0.0/16, position: dst}}, {op: neq, ip: {value: "10.2.0.1-10.2.0.9", position: src}, port: {value: 3000-4000, position: dst}}]}]}}]}}`},
	"a RouteConfiguration": {routes(`{dst: 10.0.0.0/8, iif: liqo-tunnel, priority: 100, routes: [{dst: 0.0.0.0/0, gw: 10.0.0.1, dev: eth0, onlink: true, scope: global, src: 10.0.0.2}]}`),
		`{table: {name: a, rules: [{dst: 10.0.0.0/8, iif: liqo-tunnel, priority: 100, routes: [{dst: 0.0.0.0/0, gw: 10.0.0.1, dev: eth0, onlink: true, scope: global, src: 10.0.0.2}]}]}}`},
}

func TestAcceptedManifests(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
		"Configuration":       {configuration(`{cidr: {pod: [10.244.0.0/16]}}`), `{remote: {cidr: {pod: [10.61.0.0/16]}}}`},
		"Connection":          {`{kind: Connection, spec: {type: Client, gatewayRef: {name: a}}}`, `{value: Connected, latency: {value: 12.5ms, timestamp: "2026-01-01T00:00:00Z"}, mtu: 1440}`},
		"GatewayServer":       {server(`{endpoint: {port: 51840}}`), `{endpoint: {addresses: [192.0.2.1, gw.example.com], port: 51840, protocol: UDP}, internalEndpoint: {ip: 10.244.1.200, node: a}}`},
		"GatewayClient":       {to("192.0.2.1"), `{clientRef: {kind: WgGatewayClient, name: a}, secretRef: {name: a}}`},
		"InternalNode": {`{kind: InternalNode, spec: {interface: {node: {ip: 10.70.255.254}}}}`,
			`{nodeIP: {local: 10.244.2.1, remote: 172.31.1.2}, addresses: [172.31.1.2, "fd00::2"], podRanges: [10.244.2.0/24, 10.244.7.7/32]}`},
		"FirewallConfiguration": {firewall(`{name: a, family: IPV4}`), `{conditions: [{host: a, type: Applied, status: "True"}, {host: b, type: Applied, status: "True"}, {host: b, type: Error, status: "False"}]}`},
		"RouteConfiguration":    {routes(`{iif: a, routes: []}`), `{conditions: [{host: a, type: Error, status: "True", reason: A, message: b, observedGeneration: 1}]}`},
		"WgGatewayServer":       {`{kind: WgGatewayServer, spec: {service: {}, deployment: {}}}`, `{endpoint: {addresses: [192.0.2.1], port: 51840}}`},
		"WgGatewayClient":       {`{kind: WgGatewayClient, spec: {deployment: {}}}`, `{internalEndpoint: {ip: 10.244.1.200}}`},
		"IP":                    {ip("10.0.0.1"), `{ip: 10.70.0.1, cidr: 10.70.0.0/16}`},
		"Network":               {network("10.0.0.0/16"), `{cidr: 10.61.0.0/16}`},
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
			if diff := cmp.Diff(values(t, tc.status), values(t, marshal(t, live.Object["status"]))); diff != "" {
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

	"configurations":           {true, []string{"conf"}, []string{"Name", "Desired Pod CIDR", "Remapped Pod CIDR", "Ready", "Age", "Desired External CIDR", "Remapped External CIDR", "ClusterID", "Message"}},
	"connections":              {true, []string{"conn"}, []string{"Name", "Type", "Status", "Age", "Latency", "Message"}},
	"gatewayservers":           {true, []string{"gws", "gwserver"}, []string{"Name", "Template Kind", "Template Name", "Template Namespace", "IP", "Port", "Protocol", "MTU", "Ready", "Message", "Age"}},
	"gatewayclients":           {true, []string{"gwc", "gwclient"}, []string{"Name", "Template Kind", "Template Name", "Template Namespace", "IP", "Port", "Protocol", "MTU", "Ready", "Message", "Age"}},
	"publickeies":              {true, []string{"pk", "pkies", "pkey"}, []string{"Name", "ClusterID", "Age"}},
	"genevetunnels":            {true, []string{"gvtn"}, []string{"Name", "Age"}},
	"internalfabrics":          {true, []string{"if", "ifabric"}, []string{"Name", "Gateway IP", "Age"}},
	"internalnodes":            {false, []string{"in", "inode"}, []string{"Name", "Node IP Local", "Node IP Remote", "Ready", "Age", "Message"}},
	"firewallconfigurations":   {true, []string{"fw", "fwconfig", "fwcfg"}, []string{"Name", "Age"}},
	"routeconfigurations":      {true, []string{"rcnf", "rcnfg", "rcfg", "routecfg"}, []string{"Name", "Age"}},
	"wggatewayservers":         {true, []string{"wgs", "wggs"}, []string{"Name", "Ready", "Message", "Age"}},
	"wggatewayclients":         {true, []string{"wgc", "wggc"}, []string{"Name", "Ready", "Message", "Age"}},
	"wggatewayservertemplates": {true, []string{"wggst", "wgst"}, []string{"Name", "Age"}},
	"wggatewayclienttemplates": {true, []string{"wggct", "wgct"}, []string{"Name", "Age"}},
	"ips":                      {true, nil, []string{"Name", "Local IP", "Remapped IP", "Remapped IP CIDR", "Age", "Message"}},
	"networks":                 {true, []string{"net"}, []string{"Name", "Desired CIDR", "Remapped CIDR", "Age", "Message"}},
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, group := range slices.Compact(slices.Sorted(maps.Values(groups))) {
		version, err := schema.ParseGroupVersion(group)
		fixture.Must(t, "reading the version "+group, err)
		list, err := env.Milan.Kube.Discovery().ServerResourcesForGroupVersion(group)
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
			columns := columnsOf(t, version.WithResource(r.Name))
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
