package inspection_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/info"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/inspection"
	"liqo.io/liqo/pkg/cli/session"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (write it with -update if the change is wanted):\n%s", file, diff)
	}
}

// peering is what a cluster has of its provider milan, as controllers leave it when all is well.
type peering struct {
	foreign      *corev1beta1.ForeignCluster
	slice        *authv1beta1.ResourceSlice
	virtual      *offloadingv1beta1.VirtualNode
	node         *corev1.Node
	manager, pod *corev1.Pod
	network      []client.Object
}

func (p *peering) objects() []client.Object {
	return append(p.network, p.foreign, p.slice, p.virtual, p.node, p.manager, p.pod)
}

func runs(namespace, name, container string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// waits has the container of a pod wait.
func waits(pod *corev1.Pod, reason, message string) {
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
}

func healthy() *peering {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	p := &peering{
		foreign: &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}},
		slice:   &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}},
		virtual: &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{
			corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: "milan"}}},
		manager: runs("liqo", "liqo-controller-manager-0", "controller-manager"),
		pod:     runs("liqo-tenant-milan", "milan-0", "virtual-kubelet"),
	}
	p.foreign.Status = corev1beta1.ForeignClusterStatus{
		Role: corev1beta1.ProviderRole, APIServerURL: "https://172.30.0.5:6443",
		Conditions: []corev1beta1.Condition{{Type: "APIServerStatus", Status: "Established", Reason: "APIServerReady", Message: "the peer's API server answers"}},
		Summary:    []corev1beta1.Condition{{Type: "Ready", Status: "True", Reason: "PeeringReady", Message: "everything of the peering works"}},
		Modules: corev1beta1.Modules{
			Authentication: corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{
				{Type: "AuthIdentityControlPlaneStatus", Status: "Established", Reason: "IdentityReady", Message: "the identity's kubeconfig is in place"}}},
			Offloading: corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{
				{Type: "OffloadingVirtualNodeStatus", Status: "Ready", Reason: "VirtualKubeletReady", Message: "all 1 virtual kubelets are ready"},
				{Type: "OffloadingNodeStatus", Status: "Ready", Reason: "NodeReady", Message: "all 1 nodes are ready"}}},
		},
	}
	p.slice.Status = authv1beta1.ResourceSliceStatus{Resources: cpu, Conditions: []corev1beta1.Condition{
		{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted}, {Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted}},
		Summary: []corev1beta1.Condition{{Type: "Ready", Status: "True"}}}
	p.virtual.Spec.ResourceQuota.Hard = cpu
	p.virtual.Status.Conditions = []corev1beta1.Condition{
		{Type: "VirtualKubelet", Status: "Running", Reason: "VirtualNodeReady"}, {Type: "Node", Status: "Running", Reason: "VirtualNodeReady"},
	}
	p.virtual.Status.Summary = []corev1beta1.Condition{{Type: "Ready", Status: "True", Reason: "VirtualNodeReady", Message: "the virtual kubelet runs and the node is ready"}}
	p.node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the provider's API server answers"},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "SufficientResources", Message: "the provider grants resources"},
	}
	return p
}

// nodeNotReady is what follows for virtual node and peering when the Node is not ready.
func (p *peering) nodeNotReady(status corev1.ConditionStatus, reason, message string) {
	p.node.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: reason, Message: message}
	p.virtual.Status.Conditions[1] = corev1beta1.Condition{Type: "Node", Status: "Creating", Reason: "VirtualKubeletStarting"}
	p.virtual.Status.Summary[0] = corev1beta1.Condition{Type: "Ready", Status: "False", Reason: "NodeNotReady", Message: "the Node is not ready: " + message}
	p.foreign.Status.Modules.Offloading.Conditions[1] = corev1beta1.Condition{
		Type: "OffloadingNodeStatus", Status: "NotReady", Reason: "NodeNotReady", Message: "nodes that are not ready: milan"}
	p.foreign.Status.Summary[0] = corev1beta1.Condition{Type: "Ready", Status: "False", Reason: "ModuleNotReady", Message: "nodes that are not ready: milan"}
}

// kubeletNotReady is what follows when the virtual kubelet does not run.
func (p *peering) kubeletNotReady(why string) {
	p.nodeNotReady(corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
	p.virtual.Status.Conditions[0] = corev1beta1.Condition{Type: "VirtualKubelet", Status: "Creating", Reason: "VirtualKubeletStarting"}
	p.virtual.Status.Summary[0] = corev1beta1.Condition{Type: "Ready", Status: "False", Reason: "VirtualKubeletStarting", Message: why}
	p.foreign.Status.Modules.Offloading.Conditions[0] = corev1beta1.Condition{
		Type: "OffloadingVirtualNodeStatus", Status: "NotReady", Reason: "VirtualKubeletNotReady", Message: "virtual kubelets that are not ready: milan"}
}

// connect has the peering connect networks; without a reason the tunnel is up.
func (p *peering) connect(reason string) {
	meta := metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}}
	ready := []metav1.Condition{{Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue}}
	configuration, gateway := &networkingv1beta1.Configuration{ObjectMeta: meta}, &networkingv1beta1.GatewayClient{ObjectMeta: meta}
	configuration.Spec.Remote.CIDR = networkingv1beta1.ClusterConfigCIDR{Pod: []networkingv1beta1.CIDR{"10.244.0.0/16"}, External: []networkingv1beta1.CIDR{"10.70.0.0/16"}}
	configuration.Status.Remote = &networkingv1beta1.ClusterConfig{
		CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: []networkingv1beta1.CIDR{"10.61.0.0/16"}, External: []networkingv1beta1.CIDR{"10.71.0.0/16"}}}
	gateway.Spec.Endpoint = networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{"192.0.2.1", "192.0.2.2"}, Port: 51840}
	configuration.Status.Conditions, gateway.Status.Conditions = ready, ready
	connection := &networkingv1beta1.Connection{ObjectMeta: meta}
	connection.Status = networkingv1beta1.ConnectionStatus{Value: networkingv1beta1.Connected, MTU: 1440}
	connection.Status.Latency.Value = "12.5ms"
	told := corev1beta1.Condition{Type: corev1beta1.NetworkConnectionStatus, Status: corev1beta1.StatusEstablished, Reason: "TunnelConnected", Message: "the other end of the tunnel answers"}
	if reason != "" {
		connection.Status = networkingv1beta1.ConnectionStatus{Value: networkingv1beta1.Connecting}
		told.Status, told.Reason, told.Message = corev1beta1.StatusPending, reason, "Connection milan: the other end does not answer"
	}
	p.foreign.Status.Modules.Networking = corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{told}}
	p.network = []client.Object{configuration, gateway, connection}
}

// Whatever is down, info and info peer name the first cause on top, and exit with a code that says so.
func TestWhatIsDownIsSaid(t *testing.T) {
	const refused = `Get "https://172.30.0.5:6443/version": dial tcp 172.30.0.5:6443: connect: connection refused`
	cases := map[string]struct {
		change func(p *peering)
		// forbidden tells that the user may not see pods.
		forbidden bool
		// first cause; empty if all is well.
		first string
		// next is what to do about it; empty where docs/troubleshooting.md says more.
		next string
	}{
		"all-is-well":        {change: func(*peering) {}},
		"networks-connected": {change: func(p *peering) { p.connect("") }},
		"no-handshake": {change: func(p *peering) { p.connect(networkingv1beta1.ReasonNoHandshake) },
			first: "ForeignCluster milan: NetworkConnectionStatus is Pending: NoHandshake: Connection milan: the other end does not answer"},
		"no-key": {change: func(p *peering) { p.connect(networkingv1beta1.ReasonKeyMissing) },
			first: "ForeignCluster milan: NetworkConnectionStatus is Pending: KeyMissing: Connection milan: the other end does not answer",
			next:  "run 'liqoctl network connect' again"},
		"no-gateway": {change: func(p *peering) {
			p.foreign.Status.Modules.Networking = corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{{Type: corev1beta1.NetworkGatewayPresence,
				Status: corev1beta1.StatusPending, Reason: corev1beta1.ReasonGatewayMissing, Message: "there is no gateway to the peer"}}}
		}, first: "ForeignCluster milan: NetworkGatewayPresence is Pending: GatewayMissing: there is no gateway to the peer",
			next: "connect the two networks with 'liqoctl network connect'"},
		"api-server-dead": {change: func(p *peering) {
			p.nodeNotReady(corev1.ConditionFalse, "APIServerUnreachable", refused)
			p.foreign.Status.Conditions[0] = corev1beta1.Condition{Type: "APIServerStatus", Status: "Error", Reason: "APIServerUnreachable", Message: refused}
		}, first: "ForeignCluster milan: APIServerStatus is Error: APIServerUnreachable: " + refused},
		// The virtual kubelet notices before the controller manager does.
		"api-server-dead-a-moment-ago": {change: func(p *peering) {
			p.nodeNotReady(corev1.ConditionFalse, "Unreachable", refused)
		}, first: "Node milan: Ready is False: Unreachable: " + refused},
		"api-server-refuses": {change: func(p *peering) {
			p.nodeNotReady(corev1.ConditionFalse, "APIServerRefused", "Unauthorized")
			p.foreign.Status.Conditions[0] = corev1beta1.Condition{Type: "APIServerStatus", Status: "Error", Reason: "APIServerRefused", Message: "Unauthorized"}
		}, first: "ForeignCluster milan: APIServerStatus is Error: APIServerRefused: Unauthorized"},
		"rights-revoked": {change: func(p *peering) {
			p.foreign.Status.Modules.Authentication.Conditions[0] = corev1beta1.Condition{
				Type: "AuthIdentityControlPlaneStatus", Status: "Error", Reason: "RightsRevoked", Message: "the provider took back the rights in namespace liqo-tenant-rome"}
		}, first: "ForeignCluster milan: AuthIdentityControlPlaneStatus is Error: RightsRevoked: the provider took back the rights in namespace liqo-tenant-rome"},
		"image-of-the-virtual-kubelet": {change: func(p *peering) {
			waits(p.pod, "ImagePullBackOff", `Back-off pulling image "registry/virtual-kubelet:v9"`)
			p.kubeletNotReady(`the virtual kubelet does not run yet: pod milan-0: ImagePullBackOff: Back-off pulling image "registry/virtual-kubelet:v9"`)
		}, first: `Pod liqo-tenant-milan/milan-0: container virtual-kubelet waits: ImagePullBackOff Back-off pulling image "registry/virtual-kubelet:v9"`},
		"virtual-kubelet-unschedulable": {change: func(p *peering) {
			p.pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Insufficient memory."}}}
			p.kubeletNotReady("the virtual kubelet does not run yet: pod milan-0: Unschedulable: 0/2 nodes are available: 2 Insufficient memory.")
		}, first: "Pod liqo-tenant-milan/milan-0: Unschedulable: 0/2 nodes are available: 2 Insufficient memory."},
		"virtual-kubelet-gone": {change: func(p *peering) {
			p.kubeletNotReady("waiting for the virtual kubelet to become ready")
			p.pod.Namespace = "elsewhere"
		}, first: "VirtualNode milan: Ready is False: VirtualKubeletStarting: waiting for the virtual kubelet to become ready"},
		// Nobody brings the conditions up to date: they still say that all is well.
		"controller-manager-crashes": {change: func(p *peering) {
			waits(p.manager, "CrashLoopBackOff", "back-off 5m0s restarting failed container")
		}, first: "Pod liqo/liqo-controller-manager-0: container controller-manager waits: CrashLoopBackOff back-off 5m0s restarting failed container"},
		"controller-manager-gone": {change: func(p *peering) { p.manager.Namespace = "elsewhere" },
			first: "Namespace liqo: there are no pods of Liqo: nobody brings conditions up to date"},
		"slice-denied": {change: func(p *peering) {
			p.slice.Status.Conditions[1] = corev1beta1.Condition{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Denied, Message: "the class gives 2 cpu at most"}
		}, first: "ResourceSlice milan: Resources is Denied: the class gives 2 cpu at most"},
		"less-granted-than-asked": {change: func(p *peering) {
			p.slice.Spec.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("8Gi"), "nvidia.com/gpu": resource.MustParse("2")}
		}},
		"no-pod-address-range": {change: func(p *peering) {
			p.virtual.Status.Summary = append(p.virtual.Status.Summary, corev1beta1.Condition{
				Type: "AddressesShown", Status: "False", Reason: "NoPodAddressRange", Message: `set ipam.podCIDRs there, then run here: kubectl annotate …`})
		}, first: "VirtualNode milan: AddressesShown is False: NoPodAddressRange: set ipam.podCIDRs there, then run here: kubectl annotate …"},
		"who-may-not-see-pods": {change: func(p *peering) {
			p.kubeletNotReady("waiting for the virtual kubelet to become ready")
		}, forbidden: true, first: "VirtualNode milan: Ready is False: VirtualKubeletStarting: waiting for the virtual kubelet to become ready"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			p := healthy()
			test.change(p)
			cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Objects: p.objects(), PodsForbidden: test.forbidden}).Cluster
			reports, err := info.ReadPeers(t.Context(), cluster, nil)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, "liqoctl", func(string) string { return "" })
			inspection.RenderPeer(s, reports["milan"])
			out.WriteString("\nverdict: " + said(inspection.PeersVerdict(reports)) + "\n")
			golden(t, "peer/"+name+".txt", out.String())
			first := ""
			if causes := reports["milan"].Causes; len(causes) > 0 {
				first = causes[0].String()
			}
			next := test.next
			if next == "" && first != "" {
				next = "look the reason up in docs/troubleshooting.md"
			}
			if verdict := inspection.PeersVerdict(reports); verdict != nil && !strings.HasSuffix(verdict.Error(), ": "+next) {
				t.Errorf("%v does not end with %q", verdict, next)
			}
			if diff := cmp.Diff(test.first, first); diff != "" {
				t.Error(diff)
			}
			if test.forbidden {
				return
			}
			out.Reset()
			report, err := info.Read(t.Context(), cluster, false)
			if err != nil {
				t.Fatal(err)
			}
			inspection.Render(s, report)
			out.WriteString("\nverdict: " + said(inspection.Verdict(report)) + "\n")
			golden(t, "info/"+name+".txt", out.String())
		})
	}
}

// What a cause said is not said again of the object that it names, and is of all others.
func TestAlertsAreNotSaidAgain(t *testing.T) {
	const why = "the class gives 2 cpu at most"
	report := &info.PeerReport{Info: info.Identity{ClusterID: "milan"},
		Causes: []info.Cause{{Object: "ResourceSlice milan", Message: "Resources is Denied: " + why}, {Object: "InternalNode a", Message: "Ready is False: it is silent"}},
		Network: info.Networking{Module: info.Module{Alerts: []string{"InternalNode a: Ready is False: it is silent", "InternalNode b: Ready is False: it is silent",
			"NetworkConnectionStatus: False"}}},
		Authentication: info.Authentication{ResourceSlices: []info.Slice{
			{Name: "milan", Alerts: []string{"Resources is Denied: " + why}}, {Name: "milan-2", Alerts: []string{"Resources is Denied: " + why}}}}}
	var out bytes.Buffer
	s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, "liqoctl", func(string) string { return "" })
	inspection.RenderPeer(s, report)
	var alerts []string
	for line := range strings.Lines(out.String()) {
		if _, alert, found := strings.Cut(line, "Alert:"); found {
			alerts = append(alerts, strings.TrimSpace(alert))
		}
	}
	want := []string{"InternalNode b: Ready is False: it is silent", "NetworkConnectionStatus: False", "Resources is Denied: " + why}
	if diff := cmp.Diff(want, alerts); diff != "" {
		t.Error(diff)
	}
}

func said(err error) string {
	if err == nil {
		return "all is well"
	}
	return err.Error()
}

// Where more is said is a command that works there: without peers, info peer has nothing to say.
func TestNextAfterInfo(t *testing.T) {
	sick := info.Health{UnhealthyPods: map[string]info.Pod{"a": {}}, Namespace: "liqo"}
	broken := info.Peer{ClusterID: "milan", AuthenticationStatus: info.Unhealthy}
	former := info.Peer{ClusterID: "turin", Cause: &info.Cause{Object: "Cluster turin"}}
	for want, report := range map[string]*info.Report{
		"see why with 'kubectl describe pods -n liqo'": {Health: sick},
		"liqoctl info peer":                            {Health: sick, Peerings: info.Peerings{Peers: []info.Peer{former, broken}}},
		"liqoctl unpeer --force turin":                 {Health: info.Health{Healthy: true}, Peerings: info.Peerings{Peers: []info.Peer{former}}},
	} {
		if _, got := failure.NextOf(inspection.Verdict(report)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
