package info

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

func objects() []client.Object {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	foreign := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}}
	foreign.Status = corev1beta1.ForeignClusterStatus{
		Role: corev1beta1.ProviderRole, APIServerURL: "https://10.0.0.2:6443",
		Modules: corev1beta1.Modules{
			Authentication: corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{{Type: "AuthIdentityControlPlaneStatus", Status: "Established"}}},
			Offloading: corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{
				{Type: "OffloadingNodeStatus", Status: "NotReady", Reason: "NodeNotReady"}, {Type: "OffloadingVirtualNodeStatus", Status: "NotReady", Message: "pod x crashes"},
			}},
		},
	}
	other := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "berlin"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "berlin"}}
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}}
	slice.Status.Resources = cpu
	slice.Status.Conditions = []corev1beta1.Condition{
		{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted}, {Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted},
	}
	slice.Status.Summary = []corev1beta1.Condition{
		{Type: authv1beta1.IdentityCondition, Status: "True", Message: "in use"}, {Type: "Ready", Status: "False", Message: "the peer does not answer"},
	}
	provided := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-milan", Name: "pool", Labels: map[string]string{corev1beta1.ReplicatedLabel: "true"},
	}}
	node := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-milan", Name: "milan", Labels: map[string]string{authv1beta1.ResourceSliceNameLabel: "milan"},
	}}
	node.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig-resourceslice-milan"}
	node.Spec.ResourceQuota.Hard = cpu
	node.Status.Summary = []corev1beta1.Condition{{Type: "Ready", Status: "True"}, {Type: "RemovalsHeld", Status: "True", Message: "12 of kind pod"}}
	pods := []client.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "good"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "bad"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}},
		},
	}
	namespaces := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", Labels: map[string]string{corev1beta1.ReplicationLabel: "true"}}}
	namespaces.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False"}, {Type: "RemovalsHeld", Status: "True", Reason: "TwinsUnknown", Message: "the twin of shop"}}
	return append(pods, foreign, other, slice, provided, node, namespaces)
}

// badPod comes first, because without it nobody brings conditions up to date.
var badPod = &Cause{Object: "Pod liqo/bad", Message: "container main waits: CrashLoopBackOff"}

func TestRead(t *testing.T) {
	cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Objects: objects()}).Cluster
	got, err := Read(context.Background(), cluster, true)
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Local:   Local{ClusterID: "rome", Version: "v1.0.0", Labels: map[string]string{"region": "europe"}, APIServerAddr: "https://10.0.0.1:6443"},
		Health:  Health{Namespace: "liqo", UnhealthyPods: map[string]Pod{"bad": {Status: "container main waits: CrashLoopBackOff", TotalContainers: 1, Restarts: 3}}},
		Network: &Network{PodCIDRs: []string{"10.10.0.0/16"}, ServiceCIDR: "10.11.0.0/16"},
		Peerings: Peerings{Peers: []Peer{
			{"berlin", corev1beta1.UnknownRole, Disabled, Disabled, Disabled, badPod}, {"milan", corev1beta1.ProviderRole, Disabled, Healthy, Unhealthy, badPod},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadPeers(t *testing.T) {
	cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Objects: objects()}).Cluster
	got, err := ReadPeers(context.Background(), cluster, []string{"milan"})
	if err != nil {
		t.Fatal(err)
	}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	want := map[string]*PeerReport{"milan": {
		Causes: []Cause{
			*badPod, {"ResourceSlice milan", "Ready is False: the peer does not answer"}, {"VirtualNode milan", "RemovalsHeld is True: 12 of kind pod"},
			{"NamespaceMap milan", "RemovalsHeld is True: TwinsUnknown: the twin of shop"},
		},
		Conditions: []Condition{
			{Object: "ForeignCluster milan", Type: "AuthIdentityControlPlaneStatus", Status: "Established", Good: true},
			{Object: "ForeignCluster milan", Type: "OffloadingNodeStatus", Status: "NotReady", Reason: "NodeNotReady"},
			{Object: "ForeignCluster milan", Type: "OffloadingVirtualNodeStatus", Status: "NotReady", Message: "pod x crashes"},
			{Object: "VirtualNode milan", Type: "Ready", Status: "True", Good: true},
			{Object: "VirtualNode milan", Type: "RemovalsHeld", Status: "True", Message: "12 of kind pod"},
			{Object: "NamespaceMap milan", Type: "RemovalsHeld", Status: "True", Reason: "TwinsUnknown", Message: "the twin of shop"},
		},
		Info: Identity{"milan", corev1beta1.ProviderRole}, Network: Networking{Module: Module{Status: Disabled}},
		Authentication: Authentication{Module: Module{Status: Healthy}, APIServerAddr: "https://10.0.0.2:6443", ResourceSlices: []Slice{
			{Name: "milan", Action: Consuming, Accepted: true, Alerts: []string{"Ready is False: the peer does not answer"}, Resources: cpu},
			{Name: "pool", Action: Providing},
		}},
		Offloading: Offloading{
			Module:       Module{Unhealthy, []string{"OffloadingNodeStatus: NotReady NodeNotReady", "OffloadingVirtualNodeStatus: pod x crashes"}},
			VirtualNodes: []Node{{Name: "milan", Status: Healthy, Secret: "kubeconfig-resourceslice-milan", ResourceSlice: "milan", Resources: cpu, Alerts: []string{"RemovalsHeld: 12 of kind pod"}}},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err = ReadPeers(context.Background(), cluster, []string{"oslo"})
	if err == nil || err.Error() != "oslo is no peer of cluster rome: peer with it first: liqoctl peer; the present peers are: berlin, milan" || failure.CodeOf(err) != failure.Precondition {
		t.Error(err)
	}
}

func TestQuery(t *testing.T) {
	report := &Report{Local: Local{ClusterID: "rome"}, Peerings: Peerings{Peers: []Peer{{ClusterID: "milan"}}}}
	cases := map[string]struct {
		path string
		want any
		err  string
	}{
		"a word":                {"local.clusterID", "rome", ""},
		"whatever the case":     {"LOCAL.clusterid", "rome", ""},
		"a false value":         {"health.healthy", false, ""},
		"an item of a list":     {"peerings.peers.0.clusterid", "milan", ""},
		"a key that is unknown": {"local.foo", nil, "--get local.foo: there is no \"foo\": choose one of: clusterID, version"},
		"beyond a list":         {"peerings.peers.7", nil, "--get peerings.peers.7: there is no \"7\": choose one of: 0"},
		"beyond a word":         {"local.clusterid.x", nil, "--get local.clusterid.x: there is no \"x\": choose one of: nothing: it is a single value"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got, err := Query(report, test.path)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" || text != test.err {
				t.Errorf("%s, error %q", diff, text)
			}
		})
	}
}

// The word of an administrator that a peer will not come back is shown as long as it is in force: with the next outage it gives up data.
func TestAMarkIsShown(t *testing.T) {
	foreign := &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}, ObjectMeta: metav1.ObjectMeta{Name: "milan",
		Annotations: map[string]string{corev1beta1.PermanentlyUnreachableAnnotation: "true"}}}
	foreign.Status.Modules.Authentication = corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{
		{Type: corev1beta1.AuthIdentityControlPlaneStatus, Status: corev1beta1.StatusEstablished}}}
	want := []string{"PermanentlyUnreachable: it is marked so: what it holds of this cluster is given up, volumes included; finish with " +
		"'liqoctl unpeer --force milan', or take the word back with 'liqoctl peer'"}
	report := Peering(foreign, nil, nil)
	if diff := cmp.Diff(want, report.Authentication.Alerts); diff != "" || report.Authentication.Status != Unhealthy {
		t.Error(diff, report.Authentication.Status)
	}
	delete(foreign.Annotations, corev1beta1.PermanentlyUnreachableAnnotation)
	if report := Peering(foreign, nil, nil); report.Authentication.Status != Healthy {
		t.Errorf("without the mark: %+v", report.Authentication)
	}
}

// The pods of an owner that was deleted are gone with it, and all that are left are ready: what should be there is counted.
func TestAnOwnerThatWasDeletedIsNoHealth(t *testing.T) {
	good := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "good"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	milan := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}}
	for sentence, test := range map[string]struct {
		networking bool
		change     func(t *testing.T, c *fixture.Cluster)
		want       []string
	}{
		"all is there":      {true, func(*testing.T, *fixture.Cluster) {}, nil},
		"the module is off": {false, func(*testing.T, *fixture.Cluster) {}, nil},
		"the DaemonSet is gone": {true, func(t *testing.T, c *fixture.Cluster) { drop(t, c, &appsv1.DaemonSet{}, "liqo-fabric") },
			[]string{"DaemonSet liqo-fabric: it is not there; 'liqoctl install' brings it back"}},
		"the Deployment is gone": {false, func(t *testing.T, c *fixture.Cluster) { drop(t, c, &appsv1.Deployment{}, "liqo-controller-manager") },
			[]string{"Deployment liqo-controller-manager: it is not there; 'liqoctl install' brings it back"}},
		"the Deployment of certificates is gone": {false, func(t *testing.T, c *fixture.Cluster) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-certificates"}}
			if err := c.Client.Create(t.Context(), account); err != nil {
				t.Fatal(err)
			}
		}, []string{"Deployment liqo-certificates: it is not there; 'liqoctl install' brings it back"}},
		"a node has no pod of it": {true, func(t *testing.T, c *fixture.Cluster) {
			set := &appsv1.DaemonSet{}
			if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "liqo", Name: "liqo-fabric"}, set); err != nil {
				t.Fatal(err)
			}
			set.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}
			if err := c.Client.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}, []string{"DaemonSet liqo-fabric: 1 of 2 pods are available"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Networking: test.networking, Objects: []client.Object{good.DeepCopy(), milan.DeepCopy()}})
			test.change(t, cluster)
			got, err := Read(t.Context(), cluster.Cluster, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Health.Lacking); diff != "" || got.Health.Healthy != (len(test.want) == 0) {
				t.Errorf("healthy %t, %s", got.Health.Healthy, diff)
			}
			peers, err := ReadPeers(t.Context(), cluster.Cluster, nil)
			if err != nil || len(test.want) == 1 && (len(peers["milan"].Causes) == 0 || peers["milan"].Causes[0].String() != test.want[0]) {
				t.Errorf("causes %v (%v)", peers["milan"].Causes, err)
			}
		})
	}
}

func drop(t *testing.T, c *fixture.Cluster, object client.Object, name string) {
	t.Helper()
	object.SetNamespace("liqo")
	object.SetName(name)
	if err := c.Client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// After a revocation info says so, and does not advise to connect with the peer again.
func TestACutOffPeerIsTheFirstCause(t *testing.T) {
	const why = "milan was revoked in rome by alice at noon and is not talked to; this is taken back with 'liqoctl peer'"
	foreign := &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}, ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	foreign.Status.Summary = []corev1beta1.Condition{{Type: corev1beta1.CutOffCondition, Status: "True", Reason: corev1beta1.ReasonCutOff, Message: why}}
	foreign.Status.Modules.Networking = corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{
		{Type: corev1beta1.NetworkGatewayPresence, Status: corev1beta1.StatusPending, Reason: corev1beta1.ReasonCutOff, Message: why}}}
	p := &parts{foreign: foreign, liqo: []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}}}
	want := []Cause{{"ForeignCluster milan", "CutOff is True: CutOff: " + why}}
	if diff := cmp.Diff(want, p.report().Causes); diff != "" {
		t.Error(diff)
	}
}

// A node that the network does not reach is told of with each peer whose network is connected, and with no other. Of
// one that is off that is told, and not what its agent said last.
func TestANodeThatTheNetworkDoesNotReachIsShown(t *testing.T) {
	const silent = "This node is not answered through the overlay by the gateway to milan (pod 10.244.1.9)."
	node := func(name string, ready metav1.Condition) client.Object {
		ready.Type = corev1beta1.ConditionReady
		return &networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: networkingv1beta1.InternalNodeStatus{Conditions: []metav1.Condition{ready}}}
	}
	machine := func(name string, ready corev1.ConditionStatus) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}}}}
	}
	peer := func(name string, connected bool) client.Object {
		fc := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: corev1beta1.ClusterID(name)}}
		fc.Status.Modules.Networking.Enabled = connected
		return fc
	}
	cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Networking: true, Objects: []client.Object{
		peer("milan", true), peer("turin", false),
		node("node-1", metav1.Condition{Status: metav1.ConditionTrue, Reason: networkingv1beta1.ReasonProgrammed}),
		node("node-2", metav1.Condition{Status: metav1.ConditionFalse, Reason: networkingv1beta1.ReasonOverlaySilent, Message: silent}),
		node("node-3", metav1.Condition{Status: metav1.ConditionFalse, Reason: networkingv1beta1.ReasonOverlaySilent, Message: silent}),
		machine("node-2", corev1.ConditionTrue), machine("node-3", corev1.ConditionUnknown),
	}}).Cluster
	report, err := Read(t.Context(), cluster, false)
	if err != nil {
		t.Fatal(err)
	}
	if milan, turin := report.Peerings.Peers[0].NetworkingStatus, report.Peerings.Peers[1].NetworkingStatus; milan != Unhealthy || turin != Disabled {
		t.Errorf("the network to milan is %s, to turin %s", milan, turin)
	}
	peers, err := ReadPeers(t.Context(), cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	cause := Cause{"InternalNode node-2", "Ready is False: OverlaySilent: " + silent}
	const off = "the node is not ready: NodeStatusUnknown: Kubelet stopped posting node status."
	if milan, turin := peers["milan"], peers["turin"]; !slices.Contains(milan.Causes, cause) || slices.Contains(turin.Causes, cause) ||
		!slices.Equal(milan.Network.Alerts, []string{"InternalNode node-2: " + silent, "InternalNode node-3: " + off}) || len(turin.Network.Alerts) > 0 {
		t.Errorf("of milan %+v, %+v, of turin %+v, %+v", milan.Causes, milan.Network, turin.Causes, turin.Network)
	}
}

// A provider that takes no new pods is told of in one line, and the node's in its list.
func TestACordonIsShown(t *testing.T) {
	const why = "the provider takes no new pods of ResourceSlice milan: TenantCordoned: nothing new"
	foreign := &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}, ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	foreign.Status.Modules.Authentication = corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{
		{Type: corev1beta1.AuthResourceSliceStatus, Status: corev1beta1.StatusSomeNotReady, Reason: corev1beta1.ReasonResourceSliceCordoned, Message: why}}}
	vn := offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	vn.Status.Summary = []corev1beta1.Condition{{Type: offloadingv1beta1.CordonedCondition, Status: "True", Reason: offloadingv1beta1.ReasonCordoned, Message: why}}
	slice := authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	slice.Status.Summary = []corev1beta1.Condition{{Type: authv1beta1.CordonedCondition, Status: "True", Reason: authv1beta1.ReasonTenantCordoned, Message: "nothing new"}}
	p := &parts{foreign: foreign, virtual: []offloadingv1beta1.VirtualNode{vn}, slices: []authv1beta1.ResourceSlice{slice},
		liqo: []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}}}
	report := p.report()
	want := []Cause{{"ForeignCluster milan", "AuthResourceSliceStatus is SomeNotReady: ResourceSliceCordoned: " + why}}
	if diff := cmp.Diff(want, report.Causes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Cordoned: " + why}, report.Offloading.VirtualNodes[0].Alerts); diff != "" {
		t.Error(diff)
	}
}

// A cordon that an administrator of this cluster wants is shown, and is no cause; what else is wrong with a slice of a consumer is one.
func TestACordonOfOnesOwnIsNoCause(t *testing.T) {
	foreign := &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "rome"}, ObjectMeta: metav1.ObjectMeta{Name: "rome"}}
	slice := authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.ReplicatedLabel: "true"}}}
	slice.Status.Conditions = []corev1beta1.Condition{
		{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Denied, Reason: authv1beta1.ReasonTenantCordoned, Message: "it gets nothing new"}}
	slice.Status.Summary = []corev1beta1.Condition{{Type: authv1beta1.CordonedCondition, Status: "True", Reason: authv1beta1.ReasonSliceCordoned, Message: "no new pods"}}
	p := &parts{foreign: foreign, slices: []authv1beta1.ResourceSlice{slice}, liqo: []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}}}
	report := p.report()
	if len(report.Causes) > 0 || len(report.Authentication.ResourceSlices[0].Alerts) != 2 {
		t.Errorf("causes %v, alerts %v", report.Causes, report.Authentication.ResourceSlices[0].Alerts)
	}
	p.slices[0].Status.Conditions[0].Reason = "Other"
	if causes := p.report().Causes; len(causes) != 1 || causes[0].Object != "ResourceSlice milan" {
		t.Errorf("causes of another refusal: %v", causes)
	}
}

// C9: of a consumer that is silent it is said what it has here, data above all.
func TestASilentConsumerIsShownWithWhatItHas(t *testing.T) {
	twin, copied := twinOf("oslo"), twinOf("bern")
	// Somebody copied its labels.
	copied.Name, copied.Annotations = "copied", nil
	foreign := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "oslo"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "oslo"}}
	foreign.Status.Modules.Authentication = corev1beta1.Module{Enabled: true, Conditions: []corev1beta1.Condition{
		{Type: corev1beta1.AuthTenantStatus, Status: corev1beta1.StatusError, Reason: authv1beta1.ReasonConsumerSilent, Message: "nothing is heard of it since noon"}}}
	healthy := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "good"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: []client.Object{twin, twinOf("bern"), copied, foreign, healthy,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: twin.Name, Name: "web"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: twin.Name, Name: "data"}}}}).Cluster
	reports, err := ReadPeers(t.Context(), cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Cause{{"ForeignCluster oslo", "AuthTenantStatus is Error: ConsumerSilent: nothing is heard of it since noon. " +
		"It has here: 1 namespace (shop-oslo) with 1 pod (shop-oslo/web) and the data of 1 volume (shop-oslo/data)"}}
	if diff := cmp.Diff(want, reports["oslo"].Causes); diff != "" || reports["oslo"].Authentication.Status != Unhealthy {
		t.Errorf("%s: %s", reports["oslo"].Authentication.Status, diff)
	}
	all, err := Read(t.Context(), cluster, false)
	if err != nil {
		t.Fatal(err)
	}
	// Of the other nobody knows any more.
	left := &Cause{"Cluster bern", "it is no peer any more, and nobody asks for what it has here: 1 namespace (shop-bern); remove it with 'liqoctl unpeer --force bern'"}
	if diff := cmp.Diff([]*Cause{left, &want[0]}, []*Cause{all.Peerings.Peers[0].Cause, all.Peerings.Peers[1].Cause}); diff != "" {
		t.Error(diff)
	}
}

// twinOf is the namespace shop of a consumer.
func twinOf(consumer string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-" + consumer,
		Labels:      map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: consumer},
		Annotations: map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-" + consumer + "/rome", offloadingv1beta1.OriginalNameAnnotation: "shop"}}}
}

func TestTheNetworkOfAPeering(t *testing.T) {
	module := Module{Status: Healthy}
	cases := map[string]struct {
		peer *network.Peer
		want Networking
	}{
		"nothing is known of it": {nil, Networking{Module: module}},
		"only ranges, and no place for them yet": {
			&network.Peer{State: network.Disconnected, Ranges: []network.Range{{Kind: network.Pod, CIDR: "10.1.0.0/16"}}},
			Networking{Module: module, State: "Disconnected", CIDRs: &CIDRs{Remote: Ranges{Pod: []string{"10.1.0.0/16"}}},
				Ranges: []network.Range{{Kind: network.Pod, CIDR: "10.1.0.0/16"}}},
		},
		"the gateway server is here": {
			&network.Peer{State: "Connected", Role: "Server", Endpoint: network.Endpoint{Addresses: []string{"192.0.2.1"}, Port: 51840}, Latency: "1ms", MTU: 1440},
			Networking{Module: module, State: "Connected", Latency: "1ms", MTU: 1440, Gateway: &Gateway{Address: []string{"192.0.2.1"}, Port: 51840, Role: "Client"}},
		},
		"the gateway server is there": {
			&network.Peer{State: "Pending", Role: "Client", Ranges: []network.Range{{Kind: network.External, CIDR: "10.70.0.0/16", SeenAs: "10.71.0.0/16"}}},
			Networking{Module: module, State: "Pending", Gateway: &Gateway{Role: "Server"},
				CIDRs:  &CIDRs{Remote: Ranges{External: []string{"10.70.0.0/16"}}, Remapped: Ranges{External: []string{"10.71.0.0/16"}}},
				Ranges: []network.Range{{Kind: network.External, CIDR: "10.70.0.0/16", SeenAs: "10.71.0.0/16"}}},
		},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, networking(module, test.peer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheRangesOfACluster(t *testing.T) {
	for sentence, test := range map[string]struct {
		on   bool
		want *Network
	}{
		"without the network module": {false, &Network{PodCIDRs: []string{"10.10.0.0/16"}, ServiceCIDR: "10.11.0.0/16"}},
		"as they are in use": {true, &Network{Enabled: true, PodCIDRs: []string{"10.244.0.0/16", "10.245.0.0/16"}, ServiceCIDR: "10.96.0.0/12",
			ExternalCIDR: "10.70.0.0/16"}},
	} {
		cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Networking: test.on, Objects: fixture.OwnNetworks("10.244.0.0/16", "10.245.0.0/16")})
		report, err := Read(t.Context(), cluster.Cluster, true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, report.Network); diff != "" {
			t.Errorf("%s:\n%s", sentence, diff)
		}
	}
}
