package foreigncluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// told is a condition Ready; without a reason all is well.
func told(reason string) []metav1.Condition {
	if reason == "" {
		return []metav1.Condition{{Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	return []metav1.Condition{{Type: corev1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: "it says why"}}
}

func configuration(list []metav1.Condition) networkingv1beta1.Configuration {
	c := networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	c.Status.Conditions = list
	return c
}

func server(name string, list []metav1.Condition) networkingv1beta1.GatewayServer {
	s := networkingv1beta1.GatewayServer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Status.Conditions = list
	return s
}

func connection(value networkingv1beta1.ConnectionStatusValue, list []metav1.Condition) networkingv1beta1.Connection {
	c := networkingv1beta1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	c.Status.Value, c.Status.Conditions = value, list
	return c
}

func TestTheNetworkShows(t *testing.T) {
	configured := []networkingv1beta1.Configuration{configuration(told(""))}
	end := networkingv1beta1.GatewayClient{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	const (
		ranges, presence   = corev1beta1.NetworkConfigurationStatus, corev1beta1.NetworkGatewayPresence
		servers, clients   = corev1beta1.NetworkGatewayServerStatus, corev1beta1.NetworkGatewayClientStatus
		tunnel             = corev1beta1.NetworkConnectionStatus
		rangesAre, thereIs = "Established NetworkConfigured", "Established GatewayReady"
	)
	for name, tc := range map[string]struct {
		network Network
		want    map[string]string
		ready   bool
	}{
		"there is none": {Network{}, map[string]string{}, true},
		"ranges are waited for": {Network{Configurations: []networkingv1beta1.Configuration{configuration(nil)}},
			map[string]string{ranges: "Pending NetworkNotConfigured", presence: "Pending GatewayMissing"}, false},
		"ranges are refused": {Network{Configurations: []networkingv1beta1.Configuration{configuration(told("RangeRefused"))}},
			map[string]string{ranges: "Pending RangeRefused", presence: "Pending GatewayMissing"}, false},
		"a gateway without ranges": {Network{Servers: []networkingv1beta1.GatewayServer{server("milan", told(""))}},
			map[string]string{ranges: "Pending NetworkNotConfigured", presence: thereIs, servers: "Ready GatewayReady", tunnel: "NotReady TunnelNotConnected"}, false},
		"a gateway has no endpoint": {Network{Configurations: configured, Servers: []networkingv1beta1.GatewayServer{server("milan", told("EndpointPending"))}},
			map[string]string{ranges: rangesAre, presence: thereIs, servers: "NotReady EndpointPending", tunnel: "NotReady TunnelNotConnected"}, false},
		"one gateway of two runs": {Network{Configurations: configured, Servers: []networkingv1beta1.GatewayServer{server("a", nil), server("b", told(""))},
			Connections: []networkingv1beta1.Connection{connection(networkingv1beta1.Connecting, told("NoHandshake"))}},
			map[string]string{ranges: rangesAre, presence: thereIs, servers: "SomeNotReady GatewayNotReady", tunnel: "Pending NoHandshake"}, false},
		"the tunnel is up": {Network{Configurations: configured, Servers: []networkingv1beta1.GatewayServer{server("milan", told(""))},
			Connections: []networkingv1beta1.Connection{connection(networkingv1beta1.Connected, told(""))}},
			map[string]string{ranges: rangesAre, presence: thereIs, servers: "Ready GatewayReady", tunnel: "Established TunnelConnected"}, true},
		"the tunnel is up, and would not come up again": {Network{Configurations: configured, Servers: []networkingv1beta1.GatewayServer{server("milan", told(""))},
			Connections: []networkingv1beta1.Connection{connection(networkingv1beta1.Connected, told("KeyMissing"))}},
			map[string]string{ranges: rangesAre, presence: thereIs, servers: "Ready GatewayReady", tunnel: "Error KeyMissing"}, false},
		"a node does not come into the tunnel": {Network{Configurations: configured, Servers: []networkingv1beta1.GatewayServer{server("milan", told(""))},
			Connections: []networkingv1beta1.Connection{connection(networkingv1beta1.Connected, told(""))}, Silent: []string{"node-2"}},
			map[string]string{ranges: rangesAre, presence: thereIs, servers: "Ready GatewayReady", tunnel: "SomeNotReady OverlaySilent"}, false},
		"nor would it if the tunnel were up": {Network{Configurations: configured, Servers: []networkingv1beta1.GatewayServer{server("milan", told(""))},
			Connections: []networkingv1beta1.Connection{connection(networkingv1beta1.Connecting, told("NoHandshake"))}, Silent: []string{"node-2"}},
			map[string]string{ranges: rangesAre, presence: thereIs, servers: "Ready GatewayReady", tunnel: "Pending NoHandshake"}, false},
		"the tunnel is lost": {Network{Configurations: configured, Clients: []networkingv1beta1.GatewayClient{end},
			Connections: []networkingv1beta1.Connection{connection(networkingv1beta1.ConnectionError, nil)}},
			map[string]string{ranges: rangesAre, presence: thereIs, clients: "NotReady GatewayNotReady", tunnel: "Error TunnelNotConnected"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Tenants: nil, Network: tc.network}
			facts.Tenants = append(facts.Tenants, tenant(true))
			status, got := Observe(corev1beta1.ForeignClusterStatus{}, 1, facts, time.Unix(100, 0)), map[string]string{}
			for _, c := range status.Modules.Networking.Conditions {
				got[c.Type] = c.Status + " " + c.Reason
				if c.Message == "" {
					t.Errorf("%s says nothing", c.Type)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if enabled := len(tc.want) > 0; status.Modules.Networking.Enabled != enabled || tc.network.Any() != enabled {
				t.Errorf("the module is enabled: %t", status.Modules.Networking.Enabled)
			}
			if ready := conditions.Is(status.Summary, corev1beta1.ConditionReady, "True"); ready != tc.ready {
				t.Errorf("the peering is ready: %t", ready)
			}
		})
	}
}

func TestALostTunnelIsNews(t *testing.T) {
	says := func(value networkingv1beta1.ConnectionStatusValue, before corev1beta1.ForeignClusterStatus) corev1beta1.ForeignClusterStatus {
		return Observe(before, 1, Facts{Network: Network{Servers: []networkingv1beta1.GatewayServer{server("milan", told(""))},
			Connections: []networkingv1beta1.Connection{connection(value, nil)}}}, time.Unix(100, 0))
	}
	up := says(networkingv1beta1.Connected, corev1beta1.ForeignClusterStatus{})
	lost := says(networkingv1beta1.ConnectionError, up)
	back := says(networkingv1beta1.Connected, lost)
	if all := news(&up, &lost); len(all) != 1 || all[0].status != corev1beta1.StatusError {
		t.Errorf("the loss tells %v", all)
	}
	if all := news(&lost, &back); len(all) != 1 || all[0].reason != corev1beta1.ReasonTunnelConnected {
		t.Errorf("the return tells %v", all)
	}
	partly := lost.DeepCopy()
	conditions.Find(partly.Modules.Networking.Conditions, corev1beta1.NetworkConnectionStatus).Status = corev1beta1.StatusSomeNotReady
	if all := news(&lost, partly); len(all) != 1 || all[0].status != corev1beta1.StatusSomeNotReady {
		t.Errorf("the return to all nodes but some tells %v", all)
	}
	if all := news(&up, &up); len(all) != 0 {
		t.Errorf("nothing changed, and this is told: %v", all)
	}
}

// stored are objects in memory.
func stored(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme, networkingv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1beta1.ForeignCluster{}).Build()
}

// A peer is told of each node that its gateway does not answer, and of those alone; it is looked at when a node says otherwise than before. A
// node that is off says what it said last: it is not ready, and that says nothing of the overlay.
func TestNodesThatDoNotComeIntoTheTunnelAreTold(t *testing.T) {
	node := func(name string, silent ...string) *networkingv1beta1.InternalNode {
		return &networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: networkingv1beta1.InternalNodeStatus{Silent: silent}}
	}
	machine := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	up := connection(networkingv1beta1.Connected, told(""))
	up.Namespace = "liqo-tenant-milan"
	gateway := server("milan", told(""))
	gateway.Namespace = up.Namespace
	for sentence, test := range map[string]struct {
		nodes []client.Object
		want  string
	}{
		"all nodes come in":     {[]client.Object{node("a"), node("b")}, "Established TunnelConnected: the other end of the tunnel answers"},
		"one waits for another": {[]client.Object{node("a"), node("b", "turin")}, "Established TunnelConnected: the other end of the tunnel answers"},
		"one does not":          {[]client.Object{node("a"), node("b", "milan", "turin"), machine("b", corev1.ConditionTrue)}, "SomeNotReady OverlaySilent: InternalNode b says OverlaySilent: the node is not answered through the overlay by the gateway to the peer"},
		"one that does not is off": {[]client.Object{node("a"), machine("a", corev1.ConditionTrue), node("b", "milan"), machine("b", corev1.ConditionUnknown)},
			"Established TunnelConnected: the other end of the tunnel answers"},
		"one that does not is not ready": {[]client.Object{node("b", "milan"), machine("b", corev1.ConditionFalse)}, "Established TunnelConnected: the other end of the tunnel answers"},
		"one that does not is gone":      {[]client.Object{node("b", "milan")}, "Established TunnelConnected: the other end of the tunnel answers"},
		"one of two that do not is off": {[]client.Object{node("a", "milan"), machine("a", corev1.ConditionTrue), node("b", "milan"), machine("b", corev1.ConditionUnknown)},
			"SomeNotReady OverlaySilent: InternalNode a says OverlaySilent: the node is not answered through the overlay by the gateway to the peer"},
		"none of three comes in": {[]client.Object{node("c", "milan"), node("a", "milan"), node("b", "milan"),
			machine("a", corev1.ConditionTrue), machine("b", corev1.ConditionTrue), machine("c", corev1.ConditionTrue)}, "SomeNotReady OverlaySilent: 3 InternalNodes (a and 2 more) say OverlaySilent: their nodes are not answered through the overlay by the gateway to the peer"},
	} {
		r := &reconciler{Client: stored(t, append(test.nodes, &up, &gateway)...), Options: Options{ClusterID: "rome", Networking: true, Prober: prober{}}}
		facts, err := r.gather(t.Context(), "milan")
		if err != nil {
			t.Fatal(err)
		}
		if o := facts.Network.connection(); o.status+" "+o.reason+": "+o.message != test.want {
			t.Errorf("%s: %+v, want %s", sentence, o, test.want)
		}
	}
	if diff := cmp.Diff([]ctrl.Request{{NamespacedName: client.ObjectKey{Name: "milan"}}, {NamespacedName: client.ObjectKey{Name: "turin"}}}, ofNode(t.Context(), node("a", "milan", "turin"))); diff != "" {
		t.Error(diff)
	}
	r := &reconciler{Client: stored(t, node("a", "milan"))}
	if diff := cmp.Diff([]ctrl.Request{{NamespacedName: client.ObjectKey{Name: "milan"}}}, r.ofMachine(t.Context(), machine("a", corev1.ConditionTrue))); diff != "" {
		t.Error(diff)
	}
	if asked := r.ofMachine(t.Context(), machine("virtual", corev1.ConditionTrue)); len(asked) > 0 {
		t.Errorf("of a node without an InternalNode %v are looked at", asked)
	}
	off, on := machine("a", corev1.ConditionUnknown), machine("a", corev1.ConditionTrue)
	if !readinessChanged.Update(event.UpdateEvent{ObjectOld: off, ObjectNew: on}) || readinessChanged.Update(event.UpdateEvent{ObjectOld: on, ObjectNew: on}) {
		t.Error("peers are not looked at when, and only when, a node becomes ready or not")
	}
	if !silenceChanged.Update(event.UpdateEvent{ObjectOld: node("a", "milan"), ObjectNew: node("a")}) || silenceChanged.Update(event.UpdateEvent{ObjectOld: node("a", "milan"), ObjectNew: node("a", "milan")}) {
		t.Error("peers are not looked at when, and only when, a node says otherwise than before")
	}
}

func TestAPeerOfTheNetworkAloneIsKnown(t *testing.T) {
	ranges := configuration(nil)
	ranges.Namespace = "liqo-tenant-milan"
	c := stored(t, &ranges)
	for _, networking := range []bool{false, true} {
		r := &reconciler{Client: c, Options: Options{ClusterID: "rome", Networking: networking, Prober: prober{}, Clock: testclock.NewFakePassiveClock(time.Unix(100, 0))}, marks: map[types.UID]time.Time{}}
		for range 2 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "milan"}}); err != nil {
				t.Fatal(err)
			}
		}
		fc := &corev1beta1.ForeignCluster{}
		err := c.Get(t.Context(), client.ObjectKey{Name: "milan"}, fc)
		if known := err == nil; known != networking || fc.Status.Modules.Networking.Enabled != networking {
			t.Errorf("with the network module %t it is known: %t (%v)", networking, known, err)
		}
	}
}
