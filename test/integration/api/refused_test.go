package api

import (
	"fmt"
	"strings"
	"testing"

	"liqo.io/liqo/test/integration/fixture"
)

// bad is a manifest that the API server refuses. With live, it is an update of that manifest, which is accepted with its status.
type bad struct {
	live, manifest string
	// status says that the update is one of the status.
	status bool
	// want is the sentence that the user reads, or what matters of it.
	want string
}

const (
	clusterIDPattern = `spec.clusterID in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'`
)

var badCore = map[string]bad{
	"a ForeignCluster without spec":                 {manifest: `{kind: ForeignCluster}`, want: "spec: Required value"},
	"a ForeignCluster without cluster ID":           {manifest: `{kind: ForeignCluster, spec: {}}`, want: "spec.clusterID: Required value"},
	"a ForeignCluster with an empty cluster ID":     {manifest: `{kind: ForeignCluster, spec: {clusterID: ""}}`, want: "spec.clusterID in body should be at least 1 chars long"},
	"a cluster ID with capitals":                    {manifest: `{kind: ForeignCluster, spec: {clusterID: Milan}}`, want: clusterIDPattern},
	"a cluster ID with a dot":                       {manifest: `{kind: ForeignCluster, spec: {clusterID: milan.it}}`, want: clusterIDPattern},
	"a cluster ID that ends with a dash":            {manifest: `{kind: ForeignCluster, spec: {clusterID: milan-}}`, want: clusterIDPattern},
	"a cluster ID of 52 characters":                 {manifest: `{kind: ForeignCluster, spec: {clusterID: ` + long(52) + `}}`, want: "spec.clusterID: Too long: may not be more than 51 bytes"},
	"a cluster ID that is a number":                 {manifest: `{kind: ForeignCluster, spec: {clusterID: 7}}`, want: "spec.clusterID in body must be of type string"},
	"another cluster ID in a ForeignCluster":        {live: `{kind: ForeignCluster, spec: {clusterID: milan}}`, manifest: `{kind: ForeignCluster, spec: {clusterID: turin}}`, want: `spec.clusterID: Invalid value: "turin": clusterID cannot be changed; delete the object and let it be created again`},
	"an unknown role":                               {live: `{kind: ForeignCluster, spec: {clusterID: milan}}`, manifest: `{kind: ForeignCluster, status: {role: Friend}}`, status: true, want: `status.role: Unsupported value: "Friend": supported values: "Consumer", "Provider", "ConsumerAndProvider", "Unknown"`},
	"a condition status that does not exist":        {live: `{kind: ForeignCluster, spec: {clusterID: milan}}`, manifest: `{kind: ForeignCluster, status: {conditions: [{type: APIServerStatus, status: "Fine"}]}}`, status: true, want: "Ready must be True, False or Unknown; other conditions one of None, Pending, Established, Error, Ready, NotReady, SomeNotReady"},
	"a Ready condition that is Established":         {live: `{kind: ForeignCluster, spec: {clusterID: milan}}`, manifest: `{kind: ForeignCluster, status: {conditions: [{type: Ready, status: Established}]}}`, status: true, want: "Ready must be True, False or Unknown"},
	"a module's condition status that is not known": {live: `{kind: ForeignCluster, spec: {clusterID: milan}}`, manifest: `{kind: ForeignCluster, status: {modules: {offloading: {enabled: true, conditions: [{type: OffloadingNodeStatus, status: "True"}]}}}}`, status: true, want: "status must be one of None, Pending, Established, Error, Ready, NotReady, SomeNotReady"},
	"the same condition twice":                      {live: `{kind: ForeignCluster, spec: {clusterID: milan}}`, manifest: `{kind: ForeignCluster, status: {conditions: [{type: Ready, status: "True"}, {type: Ready, status: "False"}]}}`, status: true, want: `status.conditions[1]: Duplicate value: {"type":"Ready"}`},
}

var badAuthentication = map[string]bad{
	"a Tenant without cluster ID":                  {manifest: `{kind: Tenant, spec: {authzPolicy: TolerateNoHandshake}}`, want: "spec.clusterID: Required value"},
	"a Tenant with an unknown policy":              {manifest: `{kind: Tenant, spec: {clusterID: rome, authzPolicy: Trust}}`, want: `spec.authzPolicy: Unsupported value: "Trust": supported values: "KeysExchange", "TolerateNoHandshake"`},
	"a Tenant with an unknown condition":           {manifest: `{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake, tenantCondition: Frozen}}`, want: `spec.tenantCondition: Unsupported value: "Frozen": supported values: "Active", "Cordoned", "Drained"`},
	"a Tenant whose key is not base64":             {manifest: `{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake, publicKey: "-----BEGIN"}}`, want: "spec.publicKey in body must be of type byte"},
	"a Tenant with a huge CSR":                     {manifest: `{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake, csr: ` + long(16388) + `}}`, want: "spec.csr: Too long: may not be more than 16384 bytes"},
	"a Tenant with a huge proxy URL":               {manifest: `{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake, proxyURL: "http://` + long(2048) + `"}}`, want: "spec.proxyURL: Too long: may not be more than 2048 bytes"},
	"another cluster ID in a Tenant":               {live: `{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake}}`, manifest: `{kind: Tenant, spec: {clusterID: turin, authzPolicy: TolerateNoHandshake}}`, want: `spec.clusterID: Invalid value: "turin": clusterID cannot be changed; create another Tenant`},
	"an unknown field":                             {manifest: `{kind: Tenant, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake, cordoned: true}}`, want: `unknown field "spec.cordoned"`},
	"an Identity without parameters":               {manifest: `{kind: Identity, spec: {clusterID: milan, type: ControlPlane}}`, want: "spec.authParams: Required value"},
	"an Identity of an unknown type":               {manifest: `{kind: Identity, spec: {clusterID: milan, type: Admin, authParams: {}}}`, want: `spec.type: Unsupported value: "Admin": supported values: "ControlPlane", "ResourceSlice"`},
	"an Identity with a plain HTTP API server":     {manifest: `{kind: Identity, spec: {clusterID: milan, type: ControlPlane, authParams: {apiServer: "http://milan:6443"}}}`, want: `spec.authParams.apiServer: Invalid value: "http://milan:6443": apiServer must be an https:// URL`},
	"an Identity with half of the AWS credentials": {manifest: `{kind: Identity, spec: {clusterID: milan, type: ControlPlane, authParams: {awsConfig: {awsRegion: eu}}}}`, want: "spec.authParams.awsConfig.awsAccessKeyID: Required value"},
	"an Identity in a namespace that cannot be":    {manifest: `{kind: Identity, spec: {clusterID: milan, type: ControlPlane, authParams: {}, namespace: ` + long(64) + `}}`, want: "spec.namespace: Too long: may not be more than 63 bytes"},
	"another cluster ID in an Identity":            {live: `{kind: Identity, spec: {clusterID: milan, type: ControlPlane, authParams: {}}}`, manifest: `{kind: Identity, spec: {clusterID: turin, type: ControlPlane, authParams: {}}}`, want: "clusterID cannot be changed; create another Identity"},
	"another type of an Identity":                  {live: `{kind: Identity, spec: {clusterID: milan, type: ControlPlane, authParams: {}}}`, manifest: `{kind: Identity, spec: {clusterID: milan, type: ResourceSlice, authParams: {}}}`, want: "type cannot be changed; create another Identity"},
	"a ResourceSlice with a quantity in words":     {manifest: `{kind: ResourceSlice, spec: {resources: {cpu: four}}}`, want: "spec.resources.cpu in body should match"},
	"a quantity that takes minutes to be read":     {manifest: `{kind: ResourceSlice, spec: {resources: {cpu: "1e-999999999"}}}`, want: "spec.resources.cpu in body should match"},
	"a ResourceSlice with a boolean quantity":      {manifest: `{kind: ResourceSlice, spec: {resources: {cpu: true}}}`, want: `spec.resources.cpu: Invalid value: "boolean"`},
	"a ResourceSlice of a bad provider":            {manifest: `{kind: ResourceSlice, spec: {providerClusterID: Milan}}`, want: "spec.providerClusterID in body should match"},
	"another provider of a ResourceSlice":          {live: `{kind: ResourceSlice, spec: {providerClusterID: milan}}`, manifest: `{kind: ResourceSlice, spec: {providerClusterID: turin}}`, want: "providerClusterID cannot be changed"},
	"no consumer any more in a ResourceSlice":      {live: `{kind: ResourceSlice, spec: {consumerClusterID: rome}}`, manifest: `{kind: ResourceSlice, spec: {}}`, want: "consumerClusterID cannot be changed"},
	"a ResourceSlice with a class of 254 letters":  {manifest: `{kind: ResourceSlice, spec: {class: ` + long(254) + `}}`, want: "spec.class: Too long: may not be more than 253 bytes"},
	"a slice's condition that is True":             {live: `{kind: ResourceSlice}`, manifest: `{kind: ResourceSlice, status: {conditions: [{type: Resources, status: "True"}]}}`, status: true, want: "Ready and Cordoned must be True, False or Unknown; Authentication and Resources must be Accepted or Denied"},
	"a slice's answer with a plain API server":     {live: `{kind: ResourceSlice}`, manifest: `{kind: ResourceSlice, status: {authParams: {apiServer: "ftp://x"}}}`, status: true, want: "apiServer must be an https:// URL"},
	"a Renew of nothing":                           {manifest: `{kind: Renew, spec: {consumerClusterID: rome, identityType: ControlPlane}}`, want: "spec.csr: Required value"},
	"a Renew of a slice without its name":          {manifest: `{kind: Renew, spec: {consumerClusterID: rome, identityType: ResourceSlice, publicKey: YQ==, csr: YQ==}}`, want: "resourceSliceRef is required when identityType is ResourceSlice"},
	"another consumer in a Renew":                  {live: `{kind: Renew, spec: {consumerClusterID: rome, identityType: ControlPlane, publicKey: YQ==, csr: YQ==}}`, manifest: `{kind: Renew, spec: {consumerClusterID: turin, identityType: ControlPlane, publicKey: YQ==, csr: YQ==}}`, want: "consumerClusterID cannot be changed"},
}

var badOffloading = map[string]bad{
	"a NamespaceOffloading of another name":        {manifest: `{kind: NamespaceOffloading, metadata: {name: mine}}`, want: "a NamespaceOffloading must be named 'offloading'"},
	"SelectedName without a name":                  {manifest: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SelectedName}}`, want: "remoteNamespaceName is required when namespaceMappingStrategy is SelectedName"},
	"SelectedName with an empty name":              {manifest: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SelectedName, remoteNamespaceName: ""}}`, want: "remoteNamespaceName is required when namespaceMappingStrategy is SelectedName"},
	"a remote name with capitals":                  {manifest: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SelectedName, remoteNamespaceName: Shop}}`, want: "spec.remoteNamespaceName in body should match"},
	"a remote name of 64 characters":               {manifest: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SelectedName, remoteNamespaceName: ` + long(64) + `}}`, want: "spec.remoteNamespaceName: Too long: may not be more than 63 bytes"},
	"an unknown mapping strategy":                  {manifest: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SameName}}`, want: `spec.namespaceMappingStrategy: Unsupported value: "SameName": supported values: "EnforceSameName", "DefaultName", "SelectedName"`},
	"an unknown pod strategy":                      {manifest: `{kind: NamespaceOffloading, spec: {podOffloadingStrategy: Everywhere}}`, want: `spec.podOffloadingStrategy: Unsupported value: "Everywhere": supported values: "Local", "Remote", "LocalAndRemote"`},
	"a selector without terms":                     {manifest: `{kind: NamespaceOffloading, spec: {clusterSelector: {matchLabels: {a: b}}}}`, want: `unknown field "spec.clusterSelector.matchLabels"`},
	"another mapping strategy":                     {live: `{kind: NamespaceOffloading}`, manifest: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: EnforceSameName}}`, want: "namespaceMappingStrategy cannot be changed; unoffload the namespace and offload it again"},
	"another remote name":                          {live: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SelectedName, remoteNamespaceName: shop}}`, manifest: `{kind: NamespaceOffloading, spec: {namespaceMappingStrategy: SelectedName, remoteNamespaceName: stall}}`, want: "remoteNamespaceName cannot be changed; unoffload the namespace and offload it again"},
	"a remote name afterwards":                     {live: `{kind: NamespaceOffloading}`, manifest: `{kind: NamespaceOffloading, spec: {remoteNamespaceName: stall}}`, want: "remoteNamespaceName cannot be changed"},
	"an unknown offloading phase":                  {live: `{kind: NamespaceOffloading}`, manifest: `{kind: NamespaceOffloading, status: {offloadingPhase: Done}}`, status: true, want: `status.offloadingPhase: Unsupported value: "Done"`},
	"a twin's condition of an unknown type":        {live: `{kind: NamespaceOffloading}`, manifest: `{kind: NamespaceOffloading, status: {remoteNamespacesConditions: {milan: [{type: Fine, status: "True"}]}}}`, status: true, want: `status.remoteNamespacesConditions.milan[0].type: Unsupported value: "Fine": supported values: "OffloadingRequired", "Ready"`},
	"a mapping to a name that is too long":         {manifest: `{kind: NamespaceMap, spec: {desiredMapping: {shop: ` + long(64) + `}}}`, want: "namespace names have at most 63 characters"},
	"a mapping to a list":                          {manifest: `{kind: NamespaceMap, spec: {desiredMapping: {shop: [a]}}}`, want: "spec.desiredMapping.shop in body must be of type string"},
	"an unknown mapping phase":                     {live: `{kind: NamespaceMap}`, manifest: `{kind: NamespaceMap, status: {currentMapping: {shop: {phase: Ready}}}}`, status: true, want: `status.currentMapping.shop.phase: Unsupported value: "Ready": supported values: "Accepted", "CreationLoopBackOff", "Terminating"`},
	"a VirtualNode without cluster ID":             {manifest: `{kind: VirtualNode, spec: {}}`, want: "spec.clusterID: Required value"},
	"another cluster ID in a VirtualNode":          {live: `{kind: VirtualNode, spec: {clusterID: milan}}`, manifest: `{kind: VirtualNode, spec: {clusterID: turin}}`, want: "clusterID cannot be changed; create another VirtualNode"},
	"no kubeconfig any more in a VirtualNode":      {live: `{kind: VirtualNode, spec: {clusterID: milan, kubeconfigSecretRef: {name: a}}}`, manifest: `{kind: VirtualNode, spec: {clusterID: milan}}`, want: "kubeconfigSecretRef cannot be removed"},
	"a VirtualNode with a taint without effect":    {manifest: `{kind: VirtualNode, spec: {clusterID: milan, taints: [{key: a}]}}`, want: "spec.taints[0].effect: Required value"},
	"a VirtualNode with a quantity in words":       {manifest: `{kind: VirtualNode, spec: {clusterID: milan, resourceQuota: {hard: {cpu: lots}}}}`, want: "spec.resourceQuota.hard.cpu in body should match"},
	"a VirtualNode in an unknown state":            {live: `{kind: VirtualNode, spec: {clusterID: milan}}`, manifest: `{kind: VirtualNode, status: {conditions: [{type: Node, status: Up}]}}`, status: true, want: "VirtualKubelet and Node one of None, Creating, Running, NotReady, Draining, Deleting"},
	"a VirtualNode with a weight of nothing":       {manifest: `{kind: VirtualNode, spec: {clusterID: milan, offloadingPatch: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {}}]}}}}}`, want: "a weight is from 1 to 100"},
	"a VirtualNode with an unknown patch":          {manifest: `{kind: VirtualNode, spec: {clusterID: milan, offloadingPatch: {image: x}}}`, want: `unknown field "spec.offloadingPatch.image"`},
	"a Quota without user":                         {manifest: `{kind: Quota, spec: {resources: {}}}`, want: "spec.user: Required value"},
	"a Quota without resources":                    {manifest: `{kind: Quota, spec: {user: a}}`, want: "spec.resources: Required value"},
	"a Quota with an unknown enforcement":          {manifest: `{kind: Quota, spec: {user: a, resources: {}, limitsEnforcement: Harder}}`, want: `spec.limitsEnforcement: Unsupported value: "Harder": supported values: "None", "Soft", "Hard"`},
	"a Quota with a negative suffix":               {manifest: `{kind: Quota, spec: {user: a, resources: {memory: 4GB}}}`, want: "spec.resources.memory in body should match"},
	"a ShadowPod without containers":               {manifest: `{kind: ShadowPod, spec: {pod: {}}}`, want: "spec.pod.containers: Required value"},
	"a ShadowPod whose container has no name":      {manifest: `{kind: ShadowPod, spec: {pod: {containers: [{image: a}]}}}`, want: "spec.pod.containers[0].name: Required value"},
	"a ShadowPod with a made-up field":             {manifest: `{kind: ShadowPod, spec: {pod: {containers: [{name: a}], root: true}}}`, want: `unknown field "spec.pod.root"`},
	"an endpoint slice of an unknown address type": {manifest: `{kind: ShadowEndpointSlice, spec: {template: {addressType: DNS}}}`, want: `spec.template.addressType: Unsupported value: "DNS": supported values: "IPv4", "IPv6", "FQDN"`},
	"a template without image":                     {manifest: `{kind: VkOptionsTemplate, spec: {metricsEnabled: false}}`, want: "spec.containerImage: Required value"},
	"a template with an empty image":               {manifest: `{kind: VkOptionsTemplate, spec: {metricsEnabled: false, containerImage: ""}}`, want: "spec.containerImage in body should be at least 1 chars long"},
	"a template with negative workers":             {manifest: `{kind: VkOptionsTemplate, spec: {metricsEnabled: false, containerImage: a, reflectorsConfig: {pod: {workers: -1}}}}`, want: "spec.reflectorsConfig.pod.workers in body should be greater than or equal to 0"},
	"a template with an unknown policy":            {manifest: `{kind: VkOptionsTemplate, spec: {metricsEnabled: false, containerImage: a, reflectorsConfig: {secret: {workers: 1, type: Deny}}}}`, want: `spec.reflectorsConfig.secret.type: Unsupported value: "Deny": supported values: "DenyList", "AllowList", "Referenced", "CustomLiqo"`},
	"a template with an unknown pull policy":       {manifest: `{kind: VkOptionsTemplate, spec: {metricsEnabled: false, containerImage: a, pullPolicy: Sometimes}}`, want: `spec.pullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`},
}

func TestRefusedManifests(t *testing.T) {
	t.Parallel()
	for area, cases := range map[string]map[string]bad{
		"core": badCore, "authentication": badAuthentication, "offloading": badOffloading,
		"networking": badNetworking, "templates": badTemplates, "rules": badRules,
	} {
		for name, tc := range cases {
			t.Run(fmt.Sprintf("%s/%s", area, name), func(t *testing.T) {
				t.Parallel()
				err := send(t, tc)
				if err == nil {
					t.Fatalf("the API server accepted %s", tc.manifest)
				}
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("the API server says\n  %v\nwant\n  %s", err, tc.want)
				}
			})
		}
	}
}

func send(t *testing.T, tc bad) error {
	t.Helper()
	if tc.live == "" {
		return create(t, env.Milan.Client, parse(t, "default", tc.manifest))
	}
	namespace := newNamespace(t, env.Milan)
	live := parse(t, namespace, tc.live)
	complete := live.DeepCopy()
	if err := create(t, env.Milan.Client, live); err != nil {
		t.Fatalf("the API server refused what has to be accepted first: %v", err)
	}
	if complete.Object["status"] != nil {
		if err := change(t, env.Milan.Client, live, complete, true); err != nil {
			t.Fatalf("the API server refused the status that has to be accepted first: %v", err)
		}
		fixture.Must(t, "reading what was accepted", env.Milan.Client.Get(t.Context(), keyOf(live), live))
	}
	return change(t, env.Milan.Client, live, parse(t, namespace, tc.manifest), tc.status)
}
