package inputs

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

var update = flag.Bool("update", false, "write the golden files")

// world are the objects of a cluster with one peer, whose ranges are its own.
type world struct {
	Configuration networkingv1beta1.Configuration
	PublicKey     networkingv1beta1.PublicKey
	Fabrics       []networkingv1beta1.InternalFabric
	Nodes         []networkingv1beta1.InternalNode
	IPs           []ipamv1alpha1.IP
	// own is the first of the fabrics, as it was.
	own networkingv1beta1.InternalFabric
}

func objects(t *testing.T) *world {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "objects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	if err := yaml.UnmarshalStrict(text, w); err != nil {
		t.Fatal(err)
	}
	w.own = w.Fabrics[0]
	return w
}

func (w *world) node() NodeObjects {
	return NodeObjects{Self: &w.Nodes[len(w.Nodes)-1], Fabrics: w.Fabrics, IPs: w.IPs, MTU: 1500, Port: 6091}
}

func (w *world) gateway() GatewayObjects {
	return GatewayObjects{
		Peer: "milan", Configuration: &w.Configuration, PublicKey: &w.PublicKey, Fabric: &w.own, Fabrics: w.Fabrics, Nodes: w.Nodes, IPs: w.IPs,
		Pod: GatewayPod{
			Address: netip.MustParseAddr("10.244.1.200"), Node: "node-1", Host: netip.MustParseAddr("172.31.1.99"), Key: dataplane.Key{1},
			Endpoint: netip.MustParseAddrPort("192.0.2.7:51840"), MTU: 1500, Port: 6091,
		},
	}
}

func messages(problems []dataplane.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, string(p.Kind)+": "+p.Message)
	}
	return strings.Join(all, "\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// What becomes of the API's objects in the kernel.
func TestStatesOfObjects(t *testing.T) {
	w := objects(t)
	nodeInput, problems, err := Node(w.node())
	node, more := dataplane.Node(nodeInput)
	if err != nil || messages(problems)+messages(more) != "" {
		t.Errorf("the node's problems: %v, %v, %v", err, problems, more)
	}
	golden(t, "node.txt", node.String())
	gatewayInput, problems, err := Gateway(w.gateway())
	gateway, more := dataplane.Gateway(gatewayInput)
	if err != nil || messages(problems)+messages(more) != "" {
		t.Errorf("the gateway's problems: %v, %v, %v", err, problems, more)
	}
	golden(t, "gateway.txt", gateway.String())
}

// Which pods a peer reaches where it is isolated stands in its Configuration; what cannot be read there is left out. So does whether it is: a gateway
// that was told nothing yet keeps shut.
func TestSharedPods(t *testing.T) {
	w := objects(t)
	for told, want := range map[string]bool{"open": false, "offloaded": true, "": true} {
		w.Configuration.Status.Isolation = told
		if input, _, err := Gateway(w.gateway()); err != nil || input.Isolation.On != want {
			t.Errorf("told %q: isolated %v, want %v (%v)", told, input.Isolation.On, want, err)
		}
	}
	w.Configuration.Status.Isolation, w.Configuration.Status.SharedPods = "offloaded", []networkingv1beta1.PodIP{"10.244.2.2", "everywhere"}
	objects := w.gateway()
	input, problems, err := Gateway(objects)
	if err != nil || messages(problems) != `Invalid: Configuration milan: shared pod "everywhere" is no address` {
		t.Errorf("problems %v, %v", messages(problems), err)
	}
	want := dataplane.Isolation{On: true, Pods: []netip.Addr{netip.MustParseAddr("10.244.2.2")}}
	if diff := cmp.Diff(want, input.Isolation, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// A gateway that has lost its pod has no address: nodes know its peer's ranges and no gateway to them, and others pass nothing on to it.
func TestAGatewayThatIsLostHasNoAddress(t *testing.T) {
	w := objects(t)
	w.Fabrics[1].Spec.GatewayIP = "0.0.0.0"
	node, problems, err := Node(w.node())
	if err != nil || len(problems) > 0 || len(node.Fabrics) != 2 || node.Fabrics[1].Gateway.IsValid() || len(node.Fabrics[1].Remote) == 0 {
		t.Errorf("nodes know %+v; %v, %v", node.Fabrics, problems, err)
	}
	w.Configuration.Spec.Transit = true
	w.Configuration.Spec.Local.CIDR.External = append(w.Configuration.Spec.Local.CIDR.External, w.Fabrics[1].Spec.RemoteCIDRs...)
	gateway, _, err := Gateway(w.gateway())
	if err != nil || len(gateway.Transit) > 0 {
		t.Errorf("packets are passed on to %+v, %v", gateway.Transit, err)
	}
}

// What is wrong is left out and told; the rest is as it would be without it.
func TestWhatIsLeftOut(t *testing.T) {
	bad := networkingv1beta1.IP("10.0.0.1.2")
	for name, tc := range map[string]struct {
		change func(*world)
		// without makes the objects that have the same effect.
		without func(*world)
		node    string
		gateway string
	}{
		"a fabric without MTU waits on nodes": {
			change:  func(w *world) { w.Fabrics[0].Spec.MTU = 0 },
			without: func(w *world) { w.Fabrics = w.Fabrics[1:] },
		},
		"a fabric whose gateway has no address": {
			change:  func(w *world) { w.Fabrics[1].Spec.GatewayIP = bad },
			without: func(w *world) { w.Fabrics = w.Fabrics[:1] },
			node:    `Invalid: InternalFabric liqo-tenant-turin/turin: reading address "10.0.0.1.2": ParseAddr("10.0.0.1.2"): IPv4 address too long`,
		},
		"a fabric to the node's own pods": {
			change: func(w *world) {
				w.Fabrics[1].Spec.RemoteCIDRs = []networkingv1beta1.CIDR{"10.63.0.0/16", "10.244.2.0/25"}
			},
			without: func(w *world) { w.Fabrics[1].Spec.RemoteCIDRs = []networkingv1beta1.CIDR{"10.63.0.0/16"} },
			node:    "Invalid: InternalFabric liqo-tenant-turin/turin: range 10.244.2.0/25 overlaps 10.244.2.0/24 of this cluster",
		},
		"a fabric to the node itself": {
			change: func(w *world) {
				w.Fabrics[1].Spec.RemoteCIDRs = []networkingv1beta1.CIDR{"10.63.0.0/16", "172.31.0.0/16"}
			},
			without: func(w *world) { w.Fabrics[1].Spec.RemoteCIDRs = []networkingv1beta1.CIDR{"10.63.0.0/16"} },
			node:    "Invalid: InternalFabric liqo-tenant-turin/turin: range 172.31.0.0/16 holds the address of a node of this cluster",
		},
		"an IP resource that has no address yet": {
			change:  func(w *world) { w.IPs[0].Status.IP = "" },
			without: func(w *world) { w.IPs = w.IPs[1:] },
		},
		"an IP resource for the cloud's metadata service": {
			change:  func(w *world) { w.IPs[0].Spec.IP = "169.254.169.254" },
			without: func(w *world) { w.IPs = w.IPs[1:] },
			node:    "Invalid: IP liqo/api-server: 169.254.169.254 is no address that peers may reach as 10.70.0.1",
			gateway: "Invalid: IP liqo/api-server: 169.254.169.254 is no address that peers may reach as 10.70.0.1",
		},
		"an IP resource that cannot be read": {
			change:  func(w *world) { w.IPs[0].Spec.IP = bad },
			without: func(w *world) { w.IPs = w.IPs[1:] },
			node:    `Invalid: IP liqo/api-server: reading address "10.0.0.1.2": ParseAddr("10.0.0.1.2"): IPv4 address too long`,
			gateway: `Invalid: IP liqo/api-server: reading address "10.0.0.1.2": ParseAddr("10.0.0.1.2"): IPv4 address too long`,
		},
		"a node without address": {
			change:  func(w *world) { w.Nodes[0].Status.NodeIP.Remote = nil },
			without: func(w *world) { w.Nodes = w.Nodes[1:] },
		},
		"a node with addresses and ranges that cannot be read": {
			change: func(w *world) {
				w.Nodes[0].Status.Addresses = append(w.Nodes[0].Status.Addresses, bad)
				w.Nodes[0].Status.PodRanges = append(w.Nodes[0].Status.PodRanges, "10.1.0.0")
			},
			without: func(*world) {},
			gateway: `Invalid: InternalNode node-1: reading address "10.0.0.1.2": ParseAddr("10.0.0.1.2"): IPv4 address too long` + "\n" +
				`Invalid: InternalNode node-1: reading range "10.1.0.0": netip.ParsePrefix("10.1.0.0"): no '/'`,
		},
		"a fabric whose gateway has an address of many": {
			change:  func(w *world) { w.Fabrics[1].Spec.GatewayIP = "255.255.255.255" },
			without: func(w *world) { w.Fabrics = w.Fabrics[:1] },
			node:    "Invalid: InternalFabric liqo-tenant-turin/turin: 255.255.255.255 is no address of a node or a gateway",
		},
		"a node with an address of many": {
			change:  func(w *world) { w.Nodes[0].Status.NodeIP.Remote = ptr.To(networkingv1beta1.IP("224.0.0.1")) },
			without: func(w *world) { w.Nodes = w.Nodes[1:] },
			gateway: "Invalid: InternalNode node-1: 224.0.0.1 is no address of a node or a gateway",
		},
		"a node with an address of nobody": {
			change:  func(w *world) { w.Nodes[0].Status.NodeIP.Remote = ptr.To(networkingv1beta1.IP("0.0.0.0")) },
			without: func(w *world) { w.Nodes = w.Nodes[1:] },
			gateway: "Invalid: InternalNode node-1: 0.0.0.0 is no address of a node or a gateway",
		},
		"a node with an address of every host towards peers": {
			change:  func(w *world) { w.Nodes[0].Spec.Interface.Node.IP = "127.0.0.1" },
			without: func(w *world) { w.Nodes = w.Nodes[1:] },
			gateway: "Invalid: InternalNode node-1: 127.0.0.1 is no address of a node or a gateway",
		},
		"a node that sends from an address of many": {
			change:  func(w *world) { w.Nodes[0].Status.Addresses = append(w.Nodes[0].Status.Addresses, "224.0.0.1") },
			without: func(*world) {},
			gateway: "Invalid: InternalNode node-1: 224.0.0.1 is no address of a node or a gateway",
		},
		"a node with pods everywhere": {
			change:  func(w *world) { w.Nodes[0].Status.PodRanges = append(w.Nodes[0].Status.PodRanges, "0.0.0.0/0") },
			without: func(*world) {},
			gateway: "Invalid: InternalNode node-1: range 0.0.0.0/0 is everything",
		},
		"a peer that announces everything": {
			change: func(w *world) {
				w.Configuration.Spec.Remote.CIDR.Pod[0], w.Configuration.Status.Remote.CIDR.Pod[0] = "0.0.0.0/0", "0.0.0.0/0"
			},
			without: func(w *world) {
				w.Configuration.Spec.Remote.CIDR.Pod, w.Configuration.Status.Remote.CIDR.Pod = nil, nil
			},
			gateway: "Invalid: Configuration milan, of the peer: range 0.0.0.0/0 is wider than /8\nInvalid: Configuration milan, as seen here: range 0.0.0.0/0 is wider than /8",
		},
		"a peer that announces this host": {
			change: func(w *world) { w.Configuration.Spec.Remote.CIDR.External[0] = "127.0.0.0/16" },
			without: func(w *world) {
				w.Configuration.Spec.Remote.CIDR.External, w.Configuration.Status.Remote.CIDR.External = nil, nil
			},
			gateway: "Invalid: Configuration milan, of the peer: range 127.0.0.0/16 overlaps 127.0.0.0/8, which is no cluster's",
		},
		"a peer with more ranges than were given": {
			change: func(w *world) {
				w.Configuration.Spec.Remote.CIDR.Pod = append(w.Configuration.Spec.Remote.CIDR.Pod, "10.9.0.0/16")
			},
			without: func(w *world) {
				w.Configuration.Spec.Remote.CIDR.Pod, w.Configuration.Status.Remote.CIDR.Pod = nil, nil
			},
			gateway: "Invalid: Configuration milan: 2 ranges of a kind are announced and 1 have been given",
		},
	} {
		t.Run(name, func(t *testing.T) {
			with, without := objects(t), objects(t)
			tc.change(with)
			tc.without(without)
			got, problems, err := Node(with.node())
			want, _, _ := Node(without.node())
			if text := messages(problems); err != nil || text != tc.node {
				t.Errorf("the node's problems: %v, %q, want %q", err, text, tc.node)
			}
			compare(t, "node", want, got)
			gotGateway, problems, err := Gateway(with.gateway())
			wantGateway, _, _ := Gateway(without.gateway())
			if text := messages(problems); err != nil || text != tc.gateway {
				t.Errorf("the gateway's problems: %v, %q, want %q", err, text, tc.gateway)
			}
			wantGateway.Host = gotGateway.Host
			compare(t, "gateway", wantGateway, gotGateway)
		})
	}
}

func compare(t *testing.T, what string, want, got any) {
	t.Helper()
	comparer := cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })}
	if diff := cmp.Diff(want, got, comparer); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// As long as something is not known nothing is said of the whole, so that nobody acts on it.
func TestWhatHasToBeKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		change        func(*world, *NodeObjects, *GatewayObjects)
		node, gateway string
	}{
		"all is known":                     {change: func(*world, *NodeObjects, *GatewayObjects) {}},
		"the node's own InternalNode":      {change: func(_ *world, n *NodeObjects, _ *GatewayObjects) { n.Self = nil }, node: "InternalNode"},
		"the node's address":               {change: func(_ *world, n *NodeObjects, _ *GatewayObjects) { n.Self.Status.NodeIP.Remote = nil }, node: "InternalNode"},
		"the node's address towards peers": {change: func(_ *world, n *NodeObjects, _ *GatewayObjects) { n.Self.Spec.Interface.Node.IP = "" }, node: "InternalNode"},
		"a usable address of the node": {
			change: func(_ *world, n *NodeObjects, _ *GatewayObjects) {
				n.Self.Status.NodeIP.Remote = ptr.To(networkingv1beta1.IP("224.0.0.1"))
			},
			node: "InternalNode",
		},
		"the network's MTU":              {change: func(_ *world, n *NodeObjects, _ *GatewayObjects) { n.MTU = 0 }, node: "the MTU"},
		"nothing, if there are no peers": {change: func(_ *world, n *NodeObjects, _ *GatewayObjects) { *n = NodeObjects{} }},
		"nothing, if no peer can be used": {change: func(_ *world, n *NodeObjects, _ *GatewayObjects) {
			n.Self = nil
			n.Fabrics[0].Spec.MTU = 0
			n.Fabrics[1].Spec.MTU = 0
		}},
		"the Configuration":                     {change: func(_ *world, _ *NodeObjects, g *GatewayObjects) { g.Configuration = nil }, gateway: "a Configuration with label liqo.io/remote-cluster-id=milan"},
		"own ranges":                            {change: func(w *world, _ *NodeObjects, _ *GatewayObjects) { w.Configuration.Spec.Local = nil }, gateway: "Configuration"},
		"the ranges under which a peer is seen": {change: func(w *world, _ *NodeObjects, _ *GatewayObjects) { w.Configuration.Status.Remote = nil }, gateway: "Configuration"},
		"the fabric":                            {change: func(_ *world, _ *NodeObjects, g *GatewayObjects) { g.Fabric = nil }, gateway: "InternalFabric"},
		"the peer's key":                        {change: func(_ *world, _ *NodeObjects, g *GatewayObjects) { g.PublicKey = nil }, gateway: "PublicKey"},
		"a whole key":                           {change: func(w *world, _ *NodeObjects, _ *GatewayObjects) { w.PublicKey.Spec.PublicKey = []byte("short") }, gateway: "PublicKey"},
	} {
		t.Run(name, func(t *testing.T) {
			w := objects(t)
			node, gateway := w.node(), w.gateway()
			tc.change(w, &node, &gateway)
			_, _, err := Node(node)
			said(t, "node", err, tc.node)
			_, _, err = Gateway(gateway)
			said(t, "gateway", err, tc.gateway)
		})
	}
}

func said(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (!errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), want)) {
		t.Errorf("the error of the %s is %v, want one about %q", what, err, want)
	}
}

func TestTheHostOfAGatewayIsItsNodesAddress(t *testing.T) {
	w := objects(t)
	for node, want := range map[string]string{"node-1": "172.31.1.1", "node-2": "172.31.1.2", "unknown": "172.31.1.99"} {
		asked := w.gateway()
		asked.Pod.Node = node
		if input, _, err := Gateway(asked); err != nil || input.Host.String() != want {
			t.Errorf("on %s: %s, %v, want %s", node, input.Host, err, want)
		}
	}
}

func TestTunnelMTU(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  GatewayPod
		want int
	}{
		"over IPv4":                         {GatewayPod{Endpoint: netip.MustParseAddrPort("192.0.2.1:1"), MTU: 1500}, 1440},
		"over IPv6":                         {GatewayPod{Endpoint: netip.MustParseAddrPort("[2001:db8::1]:1"), MTU: 1500}, 1408},
		"of a server":                       {GatewayPod{Address: netip.MustParseAddr("10.244.1.2"), MTU: 1450}, 1376},
		"as wished":                         {GatewayPod{Address: netip.MustParseAddr("10.244.1.2"), MTU: 1500, Wish: 1400}, 1328},
		"a wish that is larger than can be": {GatewayPod{Address: netip.MustParseAddr("10.244.1.2"), MTU: 1500, Wish: 9000}, 1440},
	} {
		if got := tc.pod.TunnelMTU(); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestMapping(t *testing.T) {
	w := objects(t)
	mapping, err := Mapping(&w.Configuration)
	if err != nil || mapping.String() != "10.244.0.0/16=10.61.0.0/16,10.70.0.0/16=10.71.0.0/16" {
		t.Errorf("%s, %v", mapping, err)
	}
	for name, tc := range map[string]struct {
		change func(*networkingv1beta1.Configuration)
		want   string
	}{
		"nothing was given": {func(c *networkingv1beta1.Configuration) { c.Status.Remote = nil }, "how this cluster sees milan (Configuration) is not known yet"},
		"another range is announced now": {func(c *networkingv1beta1.Configuration) {
			c.Generation, c.Status.Conditions = 2, []metav1.Condition{{Type: networkingv1beta1.NetworkCIDRsConfigured, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
		}, "is not known yet"},
		"nothing was given before the change": {func(c *networkingv1beta1.Configuration) {
			c.Status.Announced, c.Status.Remote = c.Spec.Remote.DeepCopy(), nil
		}, "is not known yet"},
		"what is announced is refused": {func(c *networkingv1beta1.Configuration) {
			c.Status.Conditions = []metav1.Condition{{Type: networkingv1beta1.NetworkCIDRsConfigured, Status: metav1.ConditionFalse}}
		}, "is not known yet"},
		"a range was not given":            {func(c *networkingv1beta1.Configuration) { c.Status.Remote.CIDR.External = nil }, "2 ranges are announced and 1 have been given"},
		"a range that cannot be read":      {func(c *networkingv1beta1.Configuration) { c.Spec.Remote.CIDR.Pod[0] = "x" }, `reading range "x"`},
		"a given one that cannot be read":  {func(c *networkingv1beta1.Configuration) { c.Status.Remote.CIDR.Pod[0] = "x" }, `reading range "x"`},
		"a given one that is not as large": {func(c *networkingv1beta1.Configuration) { c.Status.Remote.CIDR.Pod[0] = "10.61.0.0/17" }, "they differ in family or length"},
	} {
		changed := w.Configuration.DeepCopy()
		tc.change(changed)
		if _, err := Mapping(changed); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A peer that announces ranges for which there is no room keeps the ways that it had.
func TestRangesWithoutRoom(t *testing.T) {
	w := objects(t)
	before, _, err := Gateway(w.gateway())
	if err != nil {
		t.Fatal(err)
	}
	w.Configuration.Status.Announced = w.Configuration.Spec.Remote.DeepCopy()
	w.Configuration.Spec.Remote.CIDR.External = append(w.Configuration.Spec.Remote.CIDR.External, "172.16.0.0/12")
	w.Configuration.Generation, w.Configuration.Status.Conditions = 2, []metav1.Condition{{
		Type: networkingv1beta1.NetworkCIDRsConfigured, Status: metav1.ConditionFalse, ObservedGeneration: 2, Reason: networkingv1beta1.ReasonPoolExhausted}}
	mapping, err := Mapping(&w.Configuration)
	if err != nil || mapping.String() != "10.244.0.0/16=10.61.0.0/16,10.70.0.0/16=10.71.0.0/16" {
		t.Errorf("%s, %v", mapping, err)
	}
	after, problems, err := Gateway(w.gateway())
	if err != nil || len(problems) > 0 || !reflect.DeepEqual(before.Peer, after.Peer) {
		t.Errorf("%v became %v; %v, %v", before.Peer, after.Peer, problems, err)
	}
}

// A hub's gateway has the ways to the other gateways, for just the ranges that its own peer is told of.
func TestTheGatewayOfAHub(t *testing.T) {
	hub := func() *world {
		w := objects(t)
		w.Configuration.Spec.Transit = true
		w.Configuration.Spec.Local.CIDR.External = append(w.Configuration.Spec.Local.CIDR.External, "10.63.0.0/16")
		w.Fabrics[1].Spec.RemoteCIDRs = append(w.Fabrics[1].Spec.RemoteCIDRs, "10.73.0.0/16")
		return w
	}
	input, problems, err := Gateway(hub().gateway())
	state, more := dataplane.Gateway(input)
	if err != nil || messages(problems)+messages(more) != "" {
		t.Errorf("the gateway's problems: %v, %v, %v", err, problems, more)
	}
	golden(t, "hub.txt", state.String())
	for name, change := range map[string]func(*world){
		"without transit": func(w *world) { w.Configuration.Spec.Transit = false },
		"the peer is not told of it": func(w *world) {
			w.Configuration.Spec.Local.CIDR.External = w.Configuration.Spec.Local.CIDR.External[:1]
		},
		"the other gateway is gone":   func(w *world) { w.Fabrics = w.Fabrics[:1] },
		"it is seen under another":    func(w *world) { w.Fabrics[1].Spec.RemoteCIDRs = []networkingv1beta1.CIDR{"10.64.0.0/16"} },
		"its tunnel is not known yet": func(w *world) { w.Fabrics[1].Spec.MTU = 0 },
	} {
		w := hub()
		change(w)
		if input, _, err := Gateway(w.gateway()); err != nil || input.Transit != nil {
			t.Errorf("%s: %v, %v", name, input.Transit, err)
		}
	}
}
