package dataplane

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

// twins are two clusters of two nodes with the same ranges, down to the addresses of their nodes. A sees B as 10.61 and 10.71, B sees A as
// 10.62 and 10.72.
func twins() (a, b *cluster) {
	a = newCluster("A", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
	b = newCluster("B", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
	seen := map[string]map[string]string{
		"A": {"10.244.0.0/16": "10.61.0.0/16", "10.70.0.0/16": "10.71.0.0/16"},
		"B": {"10.244.0.0/16": "10.62.0.0/16", "10.70.0.0/16": "10.72.0.0/16"},
	}
	connect(b, a, func(by, _ *cluster, own netip.Prefix) netip.Prefix { return prefix(seen[by.name][own.String()]) })
	return a, b
}

func worldOf(t fataler, clusters ...*cluster) map[Place]State {
	world := map[Place]State{}
	for _, c := range clusters {
		c.addTo(t, world)
	}
	return world
}

// opening is the first packet of a connection of TCP, as large as the pod's network allows.
func opening(from netip.Addr, to string) Packet {
	target := netip.MustParseAddrPort(to)
	return Packet{Protocol: TCP, Source: from, Destination: target.Addr(), SourcePort: 40000, DestinationPort: target.Port(), Size: 60, Segment: wireMTU - headers4}
}

// walk checks that the packet arrives at a place under addresses, and the answer where it came from, as what was asked; and shows the way.
func walk(t *testing.T, name string, world map[Place]State, from Place, p Packet, at Place, source, destination string) {
	t.Helper()
	trip := Walk(world, from, p)
	there, ok := Arrived(trip.There)
	back, again := Arrived(trip.Back)
	switch {
	case !ok || there.Place != at || there.After.Source.String() != source || there.After.Destination.String() != destination:
		t.Errorf("it does not arrive at %s as %s → %s", at, source, destination)
	case !again || back.Place != from || back.After.Source != p.Destination || p.Source.IsValid() && back.After.Destination != p.Source ||
		back.After.SourcePort != p.DestinationPort || back.After.DestinationPort != p.SourcePort:
		t.Errorf("its answer does not come back to %s from %s", from, p.Destination)
	case p.Segment > 0 && (there.After.Segment > tunnelMTU-headers4 || back.After.Segment > tunnelMTU-headers4):
		t.Errorf("segments of %d bytes are offered there, of %d back", there.After.Segment, back.After.Segment)
	}
	if t.Failed() {
		t.Logf("the way is\n%s", trip)
	}
	golden(t, name+".txt", trip.String())
}

func TestWalkPodToPodWithEqualRanges(t *testing.T) {
	a, b := twins()
	walk(t, "w1", worldOf(t, a, b), "A pod 10.244.2.2", opening(addr("10.244.2.2"), "10.61.2.2:80"), "B pod 10.244.2.2", "10.62.2.2", "10.244.2.2")
}

// The page for users shows the way there as it is.
func TestThePageShowsTheFirstWalk(t *testing.T) {
	page, err := os.ReadFile("../../docs/network.md")
	if err != nil {
		t.Fatal(err)
	}
	a, b := twins()
	way := Trip{There: Walk(worldOf(t, a, b), "A pod 10.244.2.2", opening(addr("10.244.2.2"), "10.61.2.2:80")).There}
	if !strings.Contains(string(page), "\n```\n"+way.String()+"```\n") {
		t.Errorf("docs/network.md does not show\n%s", way)
	}
}

func TestWalkPodToPodWithoutOverlap(t *testing.T) {
	a := newCluster("A", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
	b := newCluster("B", "10.245.0.0/16", "10.71.0.0/16", "172.31.2.0", 2)
	connect(b, a, func(_, _ *cluster, own netip.Prefix) netip.Prefix { return own })
	walk(t, "w2", worldOf(t, a, b), "A pod 10.244.2.2", opening(addr("10.244.2.2"), "10.245.2.2:80"), "B pod 10.245.2.2", "10.244.2.2", "10.245.2.2")
	gateway, _ := Gateway(a.gatewayInput(a.peers[0]))
	golden(t, "gateway-without-overlap.txt", gateway.String())
}

func TestWalkOneWay(t *testing.T) {
	a := newCluster("A", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
	b := newCluster("B", "10.245.0.0/16", "10.71.0.0/16", "172.31.2.0", 2)
	connect(b, a, func(by, _ *cluster, own netip.Prefix) netip.Prefix {
		if by == a && own == b.pods[0] {
			return prefix("10.61.0.0/16")
		}
		return own
	})
	walk(t, "w2-one-way", worldOf(t, a, b), "B pod 10.245.2.2", opening(addr("10.245.2.2"), "10.244.2.2:80"), "A pod 10.244.2.2", "10.61.2.2", "10.244.2.2")
}

func TestWalkPodOnTheGatewaysNode(t *testing.T) {
	a, b := twins()
	walk(t, "w3", worldOf(t, a, b), "A pod 10.244.1.2", opening(addr("10.244.1.2"), "10.61.1.2:80"), "B pod 10.244.1.2", "10.62.1.2", "10.244.1.2")
}

func TestWalkService(t *testing.T) {
	a, b := twins()
	a.services = []service{{netip.MustParseAddrPort("10.96.0.20:80"), netip.MustParseAddrPort("10.61.2.2:8080")}}
	walk(t, "w4", worldOf(t, a, b), "A pod 10.244.2.2", opening(addr("10.244.2.2"), "10.96.0.20:80"), "B pod 10.244.2.2", "10.62.2.2", "10.244.2.2")
	walk(t, "w4-node", worldOf(t, a, b), "A2", opening(netip.Addr{}, "10.96.0.20:80"), "B pod 10.244.2.2", "10.72.0.2", "10.244.2.2")
}

func TestWalkNode(t *testing.T) {
	a, b := twins()
	walk(t, "w5", worldOf(t, a, b), "A2", opening(netip.Addr{}, "10.61.2.2:80"), "B pod 10.244.2.2", "10.72.0.2", "10.244.2.2")
}

func TestWalkNodePort(t *testing.T) {
	a, b := twins()
	a.services = []service{{netip.MustParseAddrPort("172.31.1.2:30080"), netip.MustParseAddrPort("10.61.2.2:8080")}}
	world := worldOf(t, a, b)
	world["client"] = a.outsider(addr("198.51.100.9"))
	walk(t, "w6", world, "client", opening(addr("198.51.100.9"), "172.31.1.2:30080"), "B pod 10.244.2.2", "10.72.0.2", "10.244.2.2")
}

func TestWalkAPIServer(t *testing.T) {
	a, b := twins()
	a.ips = []IP{{Address: addr("10.96.0.1"), External: addr("10.70.0.100"), Masquerade: true}, {Address: addr("172.31.1.2"), External: addr("10.70.0.101"), Masquerade: true}}
	a.services = []service{{netip.MustParseAddrPort("10.96.0.1:443"), netip.MustParseAddrPort("172.31.1.1:6443")}}
	from := addr("10.244.2.2")
	// The API server on the gateway's node, behind its ClusterIP; and one on another node, behind no Service.
	walk(t, "w8", worldOf(t, a, b), "B pod 10.244.2.2", opening(from, "10.72.0.100:443"), "A1", "10.61.2.2", "172.31.1.1")
	walk(t, "w8-endpoint", worldOf(t, a, b), "B pod 10.244.2.2", opening(from, "10.72.0.101:6443"), "A2", "172.31.1.1", "172.31.1.2")
}

func TestWalkIPResource(t *testing.T) {
	for name, masquerade := range map[string]bool{"w9": true, "w9-without-masquerade": false} {
		a, b := twins()
		a.ips = []IP{{Address: addr("192.0.2.50"), External: addr("10.70.0.100"), Masquerade: masquerade}}
		world := worldOf(t, a, b)
		printer, source := a.outsider(addr("192.0.2.50")), "172.31.1.1"
		if !masquerade {
			source = "10.61.2.2"
			printer.Routes = append(printer.Routes, Route{Table: MainTable, Destination: prefix("10.61.0.0/16"), Device: "eth0", Via: addr("172.31.1.1")})
		}
		world["printer"] = printer
		walk(t, name, world, "B pod 10.244.2.2", opening(addr("10.244.2.2"), "10.72.0.100:631"), "printer", source, "192.0.2.50")
	}
}

// An IP resource that names ports has these alone, for the peer: a node is not opened with its API server.
func TestWalkIPResourceWithPorts(t *testing.T) {
	a, b := twins()
	a.ips = []IP{{Address: a.nodes[1].VTEP, External: addr("10.70.0.100"), Masquerade: true, Ports: []Port{{TCP, 6443}, {UDP, 53}}}}
	world := worldOf(t, a, b)
	from := Place("B pod 10.244.2.2")
	for name, tc := range map[string]struct {
		protocol string
		port     uint16
		passes   bool
	}{
		"its port":                           {TCP, 6443, true},
		"its other one":                      {UDP, 53, true},
		"the kubelet's":                      {TCP, 10250, false},
		"its number with another protocol":   {UDP, 6443, false},
		"the other with another protocol":    {TCP, 53, false},
		"an echo request, which has no port": {ICMP, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			packet := Packet{Protocol: tc.protocol, Source: addr("10.244.2.2"), Destination: addr("10.72.0.100"), SourcePort: 1000, DestinationPort: tc.port, Size: 60}
			if tc.protocol == ICMP {
				packet.SourcePort, packet.Type = 0, echoRequest
			}
			trip := Walk(world, from, packet)
			last, arrived := Arrived(trip.There)
			if _, answered := Arrived(trip.Back); arrived != tc.passes || answered != tc.passes || tc.passes && last.Place != "A2" {
				t.Errorf("%s", trip)
			}
			if end := trip.There[len(trip.There)-1]; !tc.passes && (end.Place != "gA-B" || !strings.HasSuffix(end.Why, "as "+counterForeign)) {
				t.Errorf("it ends at %s: %s", end.Place, end.Why)
			}
		})
	}
}

func TestWalkLeafToLeafThroughTheHub(t *testing.T) {
	var all []*cluster
	for _, name := range []string{"H", "L", "M"} {
		all = append(all, newCluster(name, "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2))
	}
	hub, l, m := all[0], all[1], all[2]
	hub.transit = true
	number := byte(60)
	seen := func(_, _ *cluster, own netip.Prefix) netip.Prefix {
		number++
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, number}), own.Bits())
	}
	connect(hub, l, seen) // H sees L as 61, 62; L sees H as 63, 64
	connect(hub, m, seen) // H sees M as 65, 66; M sees H as 67, 68
	carry(all, seen)      // L sees M through H as 69, 70; M sees L so as 71, 72
	for i, c := range []*cluster{l, m} {
		if got := c.peer(hub).ranges[2].Seen; got != netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(69 + 2*i)}), 16) {
			t.Fatalf("%s sees the other leaf as %s", c.name, got)
		}
	}
	walk(t, "w10", worldOf(t, all...), "L pod 10.244.2.2", opening(addr("10.244.2.2"), "10.69.2.2:80"), "M pod 10.244.2.2", "10.71.2.2", "10.244.2.2")
	connect(l, m, seen) // L sees M as 73, 74; M sees L as 75, 76
	walk(t, "w10-direct", worldOf(t, all...), "L pod 10.244.2.2", opening(addr("10.244.2.2"), "10.73.2.2:80"), "M pod 10.244.2.2", "10.75.2.2", "10.244.2.2")
}

// refuse has the place where a packet arrived answer with an ICMP error.
func (w *walker) refuse(trip Trip) []Hop {
	last, _ := Arrived(trip.There)
	return w.send(last.Place, Packet{
		Protocol: ICMP, Type: unreachable, Source: last.After.Destination, Destination: last.After.Source, Size: 100, Quoted: &last.After,
	})
}

// about tells whether a packet arrived that is an error about another one, as that was sent.
func about(hops []Hop, at Place, sent Packet) bool {
	last, ok := Arrived(hops)
	return ok && last.Place == at && last.After.Quoted != nil && last.After.Quoted.tuple() == sent.tuple() && last.After.Source == sent.Destination
}

func TestWalkErrorsAboutPackets(t *testing.T) {
	a, b := twins()
	a.services = []service{{netip.MustParseAddrPort("10.96.0.20:80"), netip.MustParseAddrPort("10.61.2.2:8080")}}
	for name, tc := range map[string]struct {
		from   Place
		packet Packet
	}{
		"w12":         {"A pod 10.244.2.2", opening(addr("10.244.2.2"), "10.61.2.2:80")},
		"w12-service": {"A pod 10.244.2.2", opening(addr("10.244.2.2"), "10.96.0.20:80")},
		"w12-node":    {"A2", opening(addr("10.70.0.2"), "10.61.2.2:80")},
	} {
		w := newWalker(worldOf(t, a, b))
		hops := w.refuse(Trip{There: w.send(tc.from, tc.packet)})
		if !about(hops, tc.from, tc.packet) {
			t.Errorf("%s is not told about %s", tc.from, tc.packet)
		}
		golden(t, name+".txt", Trip{There: hops}.String())
	}
}

// B's ranges are seen under each other's prefixes: what one of them becomes must not be translated again.
func TestWalkWithRangesThatCross(t *testing.T) {
	a := newCluster("A", "10.200.0.0/16", "10.201.0.0/16", "172.31.1.0", 2)
	b := newCluster("B", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
	crossed := map[string]string{"10.244.0.0/16": "10.70.0.0/16", "10.70.0.0/16": "10.244.0.0/16", "10.200.0.0/16": "10.201.0.0/16", "10.201.0.0/16": "10.200.0.0/16"}
	connect(b, a, func(_, _ *cluster, own netip.Prefix) netip.Prefix { return prefix(crossed[own.String()]) })
	w := newWalker(worldOf(t, a, b))
	for from, p := range map[Place]Packet{
		"A pod 10.200.2.2": opening(addr("10.200.2.2"), "10.70.2.2:80"),
		"B pod 10.244.2.2": opening(addr("10.244.2.2"), "10.201.2.2:80"),
	} {
		if hops := w.refuse(Trip{There: w.walk(from, p).There}); !about(hops, from, p) {
			t.Errorf("%s is not told about %s:\n%s", from, p, Trip{There: hops})
		}
	}
}

func TestPacketsThatAreTooLong(t *testing.T) {
	a, b := twins()
	world := worldOf(t, a, b)
	packet := opening(addr("10.244.2.2"), "10.61.2.2:80")
	packet.Segment, packet.Size = 0, tunnelMTU
	if _, ok := Arrived(Walk(world, "A pod 10.244.2.2", packet).Back); !ok {
		t.Errorf("a packet of %d bytes has no answer", packet.Size)
	}
	packet.Size++
	trip := Walk(world, "A pod 10.244.2.2", packet)
	if last := trip.There[len(trip.There)-1]; last.Outcome != TooLong || last.Place != "A2" {
		t.Errorf("who says that it is too long is not the sender's own node: %s", last)
	}
	if last, ok := Arrived(trip.Back); !ok || last.Place != "A pod 10.244.2.2" || last.After.Quoted.tuple() != packet.tuple() {
		t.Errorf("the sender is not told:\n%s", trip)
	}
}
