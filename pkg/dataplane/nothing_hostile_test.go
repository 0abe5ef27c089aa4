package dataplane_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// Where the attackers of this test are: the peer has the other end of the tunnel of theGateway, a pod of the victim is on node A2, and the
// gateway itself may have been taken over.
const (
	theGateway, thePod, nodeOne, nodeTwo = "gA-B", "A pod 10.244.2.2", "A1", "A2"
	// A pod of the peer, and one of the victim, with the same address.
	peerPod, victimPod = "10.244.2.2", "10.244.2.2"
	gatewayPod         = "10.244.1.200"
)

// hostile is something that must not pass.
type hostile struct {
	// by and device are where it is sent; empty: the tunnel of theGateway.
	by      dataplane.Place
	device  string
	packets func(mark string) [][]byte
	// seen is all that may be seen of it: what has to come before where it ends.
	seen []string
	// counted are the place and the counter that tell of it; empty: nothing does, as the kernel itself takes it for no packet, or has no way.
	counted string
	// without are rules without which it does pass, sysctl a setting that does the same, harmless the same packets without what is hostile in them:
	// then they are seen at passes. Without any of them the kernel itself lets none pass.
	without  map[dataplane.Place][]string
	sysctl   string
	harmless func(mark string) [][]byte
	passes   string
}

// one is a single packet.
func one(packet func(mark string) []byte) func(string) [][]byte {
	return func(mark string) [][]byte { return [][]byte{packet(mark)} }
}

// onA1 is what is seen of packets that a node is to drop.
var onA1 = []string{"A1 unpacks", "gA-B by liqo"}

// Rules, by their words.
const (
	sources     = "ip saddr != @peer "
	reach       = "ip daddr != @reach"
	itself      = "ip daddr 10.244.1.200/32 counter"
	quotes      = "icmp quoted daddr != @peer"
	fromTunnel  = `iifname "liqo-tunnel" counter name foreign drop`
	overlay     = "udp dport 6091"
	fromOverlay = "counter name foreign drop"
	otherPods   = "counter name foreign drop"
	strangers   = "ip saddr != @peers"
	services    = "ct original ip daddr != @pods"
	version6    = "counter name foreign drop"
)

// A hostile peer sends what it likes through the tunnel, a pod what it likes to nodes and gateways, a gateway that was taken over what it likes to
// nodes: nothing of it arrives where it may not be, no route, neighbour or rule changes, and what is promised to be counted is. That each would
// pass is shown by taking away what stops it.
func TestNothingHostilePasses(t *testing.T) {
	l := build(t, dataplane.Labs(t)[0])
	defer l.close()
	// As kube-proxy does: a NodePort is at each address of a node.
	l.run(t, l.spaces[nodeTwo], "nft add rule ip kube-proxy prerouting tcp dport 30080 fib daddr type local dnat to "+victimPod+":8080")
	// Where the kernel does not check sources, our rules have to.
	for _, place := range []dataplane.Place{nodeOne, theGateway} {
		l.run(t, l.spaces[place], "for device in /proc/sys/net/ipv4/conf/*; do echo 0 > $device/rp_filter; done")
	}
	s := newSpy(t, l)
	all := hostiles()
	names := slices.Sorted(maps.Keys(all))

	before := map[dataplane.Place]string{}
	attacker := func(place dataplane.Place) bool {
		return strings.HasPrefix(strings.TrimPrefix(string(place), "g"), "B")
	}
	for _, place := range slices.DeleteFunc(l.places(), attacker) {
		before[place] = l.kernelState(t, place)
	}
	marks := map[string][]string{}
	for range 2 {
		for _, name := range names {
			h := all[name]
			counter := h.count(t, s)
			token := s.mark()
			marks[name] = append(marks[name], token)
			h.send(t, s, h.packets(token))
			s.settle(t)
			if got := h.count(t, s); h.counted != "" && got <= counter {
				t.Errorf("%s: %s does not count it: %d before, %d after", name, h.counted, counter, got)
			}
		}
	}
	for _, name := range names {
		for _, token := range marks[name] {
			own := func(where string) bool { return where == string(all[name].by)+" by eth0" }
			if got := slices.DeleteFunc(s.sightings(token), own); !slices.Equal(got, all[name].seen) {
				t.Errorf("%s: is seen at\n%q, not\n%q", name, got, all[name].seen)
			}
		}
	}
	for place, state := range before {
		if got := l.kernelState(t, place); got != state {
			t.Errorf("%s is changed (-before +after)\n%s", place, cmp.Diff(strings.Split(state, "\n"), strings.Split(got, "\n")))
		}
	}
	if t.Failed() {
		return
	}
	shown := 0
	for _, name := range names {
		if all[name].passes != "" {
			shown++
			t.Run(name, func(t *testing.T) { all[name].pass(t, s) })
		}
	}
	t.Logf("%d attempts, of which %d pass without what stops them; the others the kernel stops alone", len(names), shown)
}

func (h hostile) send(t *testing.T, s *spy, packets [][]byte) {
	t.Helper()
	by, device := h.by, h.device
	if by == "" {
		by, device = theGateway, dataplane.TunnelDevice
	}
	if err := s.put(by, device, packets); err != nil {
		t.Fatal(err)
	}
}

func (h hostile) count(t *testing.T, s *spy) uint64 {
	t.Helper()
	place, counter, ok := strings.Cut(h.counted, " ")
	if !ok {
		return 0
	}
	return s.lab.count(t, dataplane.Place(place), counter)
}

// settle sends what does pass after what does not, by the same way, and waits for it: then what was sent before has passed too, or not.
func (s *spy) settle(t *testing.T) {
	t.Helper()
	for _, pod := range []string{"10.244.1.2", "10.244.2.2"} {
		token := s.mark()
		s.until(t, token, "A pod "+pod+" itself", func() {
			_ = s.put(theGateway, dataplane.TunnelDevice, [][]byte{udpPacket(peerPod, pod, token)})
		})
	}
}

// pass shows that it passes without what stops it.
func (h hostile) pass(t *testing.T, s *spy) {
	token, packets := s.mark(), h.packets
	switch {
	case h.harmless != nil:
		packets = h.harmless
	case h.sysctl != "":
		s.lab.run(t, s.lab.spaces[theGateway], "sysctl -qw "+h.sysctl+"=1")
		defer s.lab.run(t, s.lab.spaces[theGateway], "sysctl -qw "+h.sysctl+"=0")
	default:
		defer s.lab.without(t, h.without)()
	}
	s.until(t, token, h.passes, func() { h.send(t, s, packets(token)) })
}

func hostiles() map[string]hostile {
	all := map[string]hostile{}
	for _, some := range []map[string]hostile{foreignSources(), foreignDestinations(), strangeToNodes(), strangePackets(), strangeErrors(), forgedOverlay(), takenOver(), version6Packets()} {
		maps.Copy(all, some)
	}
	return all
}

func foreignSources() map[string]hostile {
	all := map[string]hostile{}
	for whose, source := range map[string]string{
		"of another peer": "10.99.0.9", "of the Internet": "8.8.8.8", "by which the peer is seen": "10.61.2.2", "of a node": "172.31.1.1",
		"of a Service": "10.96.0.1", "of metadata services": "169.254.169.254", "of its end of the tunnel": "169.254.18.1",
		"of a loopback": "127.0.0.1", "of multicast": "224.0.0.1", "of broadcast": "255.255.255.255", "of nobody": "0.0.0.0", "of our end of the tunnel": "169.254.18.2",
	} {
		h := hostile{
			packets: one(func(mark string) []byte { return udpPacket(source, victimPod, mark) }), counted: "gA-B spoofed",
			without: map[dataplane.Place][]string{theGateway: {sources}}, passes: "gA-B by liqo",
		}
		switch source {
		case "127.0.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "169.254.18.2":
			h.passes = "" // The kernel itself takes nothing from there.
		}
		all["a source "+whose] = h
	}
	return all
}

func foreignDestinations() map[string]hostile {
	all := map[string]hostile{}
	add := func(name string, packet func(mark string) []byte, passes string, without ...string) {
		all[name] = hostile{packets: one(packet), counted: "gA-B foreign", passes: passes, without: map[dataplane.Place][]string{theGateway: without}}
	}
	for whose, to := range map[string]string{
		"of a node": "172.31.1.1", "of a Service": "10.96.0.20", "of the Internet": "8.8.8.8",
		"of metadata services": "169.254.169.254", "by which the peer is seen": "10.61.2.2",
	} {
		add("a destination "+whose, func(mark string) []byte { return udpPacket(peerPod, to, mark) }, "gA-B by eth0", reach, "blackhole")
	}
	for whose, to := range map[string]string{"of a loopback": "127.0.0.1", "of broadcast": "255.255.255.255", "of multicast": "224.0.0.1"} {
		add("a destination "+whose, func(mark string) []byte { return udpPacket(peerPod, to, mark) }, "", reach)
	}
	for what, to := range map[string]string{"the API server": "10.96.0.1", "something else": "192.0.2.50"} {
		add("the real address of an IP resource of "+what, func(mark string) []byte { return udpPacket(peerPod, to, mark) }, "gA-B by liqo", reach)
	}
	add("the gateway's own pod", func(mark string) []byte { return udpPacket(peerPod, gatewayPod, mark) }, "gA-B by liqo", itself)
	add("the tunnel's end, from a pod", func(mark string) []byte { return udpPacket(peerPod, "169.254.18.2", mark) }, "gA-B itself", reach, fromTunnel)
	add("the tunnel's end", func(mark string) []byte { return udpPacket("169.254.18.1", "169.254.18.2", mark) }, "gA-B itself", fromTunnel)
	add("WireGuard in the tunnel", func(mark string) []byte {
		return header{protocol: unix.IPPROTO_UDP, from: "169.254.18.1", to: "169.254.18.2"}.packet(datagram(51820, 51820, mark))
	}, "gA-B itself", fromTunnel)
	add("the tunnel's end, by TCP", func(mark string) []byte { return tcpPacket("169.254.18.1", "169.254.18.2", 443, 2, mark) }, "gA-B itself", fromTunnel)
	add("the tunnel's end, as an answer", func(mark string) []byte { return tcpPacket("169.254.18.1", "169.254.18.2", 443, 0x12, mark) }, "gA-B itself", fromTunnel)
	add("a redirect to the tunnel's end", func(mark string) []byte {
		return icmpPacket("169.254.18.1", "169.254.18.2", 5, 1, [4]byte{169, 254, 18, 1}, udpPacket("169.254.18.2", "8.8.8.8", mark))
	}, "gA-B itself", fromTunnel)
	add("the overlay of the gateway's pod", func(mark string) []byte {
		return vxlanPacket(peerPod, gatewayPod, dataplane.VNI, vtepMAC(gatewayPod), udpPacket(peerPod, victimPod, mark))
	}, "gA-B by liqo", itself, overlay)
	// An IP resource is node A2. The gateway's own node would pass it on.
	toNode := func(mark string) []byte {
		return vxlanPacket(peerPod, "10.70.0.101", dataplane.VNI, vtepMAC("172.31.1.2"), udpPacket("10.61.9.9", victimPod, mark))
	}
	add("the overlay of a node that is an IP resource", toNode, "gA-B by liqo", overlay)
	all["the overlay of a node that is an IP resource, in fragments"] = hostile{
		packets: func(mark string) [][]byte {
			whole := toNode(mark)[20:]
			h := header{protocol: unix.IPPROTO_UDP, from: peerPod, to: "10.70.0.101", id: uint16(mark[len(mark)-1]) + 99, fragment: moreFragments}
			first := h.packet(whole[:16])
			h.fragment = 2
			return [][]byte{first, h.packet(whole[16:])}
		},
		counted: "gA-B foreign", passes: thePod + " itself", without: map[dataplane.Place][]string{theGateway: {overlay}, nodeOne: {overlay}},
	}
	all["the overlay of the tunnel's end"] = hostile{
		packets: one(func(mark string) []byte {
			return vxlanPacket("169.254.18.1", "169.254.18.2", dataplane.VNI, vtepMAC(gatewayPod), udpPacket("10.244.1.2", "10.61.2.2", mark))
		}),
		counted: "gA-B spoofed", passes: "gA-B unpacks", without: map[dataplane.Place][]string{theGateway: {overlay, fromTunnel}},
	}
	all["an address of no node's"] = hostile{
		packets: one(func(mark string) []byte { return udpPacket(peerPod, "10.244.99.1", mark) }),
		passes:  "gA-B by eth0", without: map[dataplane.Place][]string{theGateway: {"blackhole"}},
	}
	return all
}

// strangeToNodes go to a node by its address towards peers, and belong to nothing that the node began.
func strangeToNodes() map[string]hostile {
	all := map[string]hostile{}
	const node = "10.70.0.1"
	for name, packet := range map[string]func(mark string) []byte{
		"UDP to a node's kubelet": func(mark string) []byte {
			return header{protocol: unix.IPPROTO_UDP, from: peerPod, to: node}.packet(datagram(1000, 10250, mark))
		},
		"a name server's answer that no node asked for": func(mark string) []byte {
			return header{protocol: unix.IPPROTO_UDP, from: peerPod, to: node}.packet(datagram(53, 40000, mark))
		},
		"TCP to a node's kubelet":                 func(mark string) []byte { return tcpPacket(peerPod, node, 10250, 0x02, mark) },
		"an answer of TCP":                        func(mark string) []byte { return tcpPacket(peerPod, node, 10250, 0x12, mark) },
		"the middle of a connection that is none": func(mark string) []byte { return tcpPacket(peerPod, node, 10250, 0x18, mark) },
		"the end of a connection that is none":    func(mark string) []byte { return tcpPacket(peerPod, node, 10250, 0x04, mark) },
		"TCP without flags":                       func(mark string) []byte { return tcpPacket(peerPod, node, 10250, 0, mark) },
		"TCP with flags that exclude each other":  func(mark string) []byte { return tcpPacket(peerPod, node, 10250, 0x3f, mark) },
		"an echo's answer that no node asked for": func(mark string) []byte { return icmpPacket(peerPod, node, 0, 0, [4]byte{1, 2, 3, 4}, []byte(mark)) },
		"a question for a node's time":            func(mark string) []byte { return icmpPacket(peerPod, node, 13, 0, [4]byte{}, []byte(mark)) },
		"an error about nothing": func(mark string) []byte {
			return icmpPacket(peerPod, node, 3, 3, [4]byte{}, udpPacket(node, peerPod, mark))
		},
		"a smaller MTU about nothing": func(mark string) []byte {
			return icmpPacket(peerPod, node, 3, 4, [4]byte{0, 0, 0, 68}, tcpPacket(node, peerPod, 80, 0x10, mark))
		},
		"a redirect about nothing": func(mark string) []byte {
			return icmpPacket(peerPod, node, 5, 1, [4]byte{10, 61, 2, 2}, udpPacket(node, "8.8.8.8", mark))
		},
		"a router's advertisement of IPv4": func(mark string) []byte {
			return icmpPacket(peerPod, node, 9, 0, [4]byte{1, 2, 0, 100}, append([]byte{10, 61, 2, 2, 0, 0, 0, 1}, mark...))
		},
		"a packet in a packet": func(mark string) []byte {
			return header{protocol: unix.IPPROTO_IPIP, from: peerPod, to: node}.packet(udpPacket("172.31.1.1", "172.31.1.1", mark))
		},
	} {
		all[name] = hostile{
			packets: func(mark string) [][]byte { return [][]byte{packet(mark), packet(mark), packet(mark)} }, seen: onA1, counted: "A1 foreign",
			without: map[dataplane.Place][]string{nodeOne: {fromOverlay}}, passes: "A1 itself",
		}
	}
	all["a NodePort of a pod"] = hostile{
		packets: one(func(mark string) []byte { return tcpPacket(peerPod, "10.70.0.2", 30080, 2, mark) }), seen: []string{"A2 unpacks", "gA-B by liqo"}, counted: "A2 foreign",
		without: map[dataplane.Place][]string{nodeTwo: {services}}, passes: thePod + " itself",
	}
	return all
}

// broken changes a sound packet to a pod.
func broken(change func(raw []byte)) func(string) [][]byte {
	return one(func(mark string) []byte {
		raw := udpPacket(peerPod, victimPod, mark)
		change(raw)
		return raw
	})
}

// sealed has the checksum of the header right.
func sealed(change func(raw []byte)) func([]byte) {
	return func(raw []byte) {
		change(raw)
		raw[10], raw[11] = 0, 0
		binary.BigEndian.PutUint16(raw[10:], ^checksum(raw[:20]))
	}
}

// strangePackets go to a pod that the peer may reach, but are no packets.
func strangePackets() map[string]hostile {
	sound := one(func(mark string) []byte { return udpPacket(peerPod, victimPod, mark) })
	all := map[string]hostile{}
	for name, change := range map[string]func(raw []byte){
		"a wrong checksum":                         func(raw []byte) { raw[10]++ },
		"another version":                          sealed(func(raw []byte) { raw[0] = 0x55 }),
		"a header that is too short":               sealed(func(raw []byte) { raw[0] = 0x44 }),
		"a header that is longer than the packet":  sealed(func(raw []byte) { raw[0] = 0x4f }),
		"a packet that is shorter than it says":    sealed(func(raw []byte) { raw[2] = 0xff }),
		"a packet that is shorter than its header": sealed(func(raw []byte) { raw[2], raw[3] = 0, 19 }),
	} {
		all[name] = hostile{packets: broken(change), harmless: sound, passes: thePod + " itself"}
	}
	pieces := func(second uint16, size int) func(string) [][]byte {
		return func(mark string) [][]byte {
			h := header{protocol: unix.IPPROTO_UDP, from: peerPod, to: victimPod, id: uint16(1 + len(mark) + int(mark[len(mark)-1])), fragment: moreFragments}
			whole := datagram(1000, 80, mark+strings.Repeat("x", 64-8-len(mark))+mark+strings.Repeat("x", size))
			first := h.packet(whole[:64])
			h.fragment = second
			return [][]byte{first, h.packet(whole[64:])}
		}
	}
	all["fragments that overlap"] = hostile{packets: pieces(5, 24), harmless: pieces(8, 24), passes: thePod + " itself"}
	all["fragments that are too much together"] = hostile{packets: pieces(0x1fff, 400), harmless: pieces(8, 400), passes: thePod + " itself"}
	all["a fragment without the others"] = hostile{
		packets: func(mark string) [][]byte { return pieces(8, 24)(mark)[:1] }, harmless: pieces(8, 24), passes: thePod + " itself",
	}
	all["fragments with a first one of eight bytes, to a node"] = hostile{
		packets: func(mark string) [][]byte {
			h := header{protocol: unix.IPPROTO_TCP, from: peerPod, to: "10.70.0.1", id: uint16(mark[len(mark)-1]), fragment: moreFragments}
			whole := tcpPacket(peerPod, "10.70.0.1", 10250, 2, mark)[20:]
			first := h.packet(whole[:8])
			h.fragment = 1
			return [][]byte{first, h.packet(whole[8:])}
		},
		// It is cut in pieces again, in none of which there is a whole mark.
		counted: "A1 foreign", without: map[dataplane.Place][]string{nodeOne: {fromOverlay}}, passes: "A1 itself",
	}
	long := func(flags uint16, to string) func(string) [][]byte {
		return one(func(mark string) []byte {
			return header{protocol: unix.IPPROTO_UDP, from: peerPod, to: to, fragment: flags}.packet(datagram(1000, 80, strings.Repeat("x", 3000)+mark))
		})
	}
	all["a packet that is too long, and must not be cut"] = hostile{packets: long(dontFragment, victimPod), harmless: long(0, victimPod), passes: thePod + " itself"}
	all["a packet that is too long, to a node"] = hostile{
		packets: long(0, "172.31.1.1"), counted: "gA-B foreign", without: map[dataplane.Place][]string{theGateway: {reach, "blackhole"}}, passes: "gA-B by eth0",
	}
	for name, kind := range map[string]byte{"a loose source route": 131, "a strict source route": 137} {
		all[name] = hostile{
			packets: one(func(mark string) []byte {
				h := header{protocol: unix.IPPROTO_UDP, from: peerPod, to: victimPod, options: []byte{kind, 7, 4, 172, 31, 1, 1, 0}}
				return h.packet(datagram(1000, 80, mark))
			}),
			sysctl: "net.ipv4.conf.all.accept_source_route", passes: map[byte]string{131: "gA-B by liqo"}[kind],
		}
	}
	return all
}

// strangeErrors are errors of ICMP about packets that never went to the peer: they would end or slow down what a pod has with others.
func strangeErrors() map[string]hostile {
	all := map[string]hostile{}
	for name, quoted := range map[string]func(mark string) []byte{
		"the Internet":           func(mark string) []byte { return tcpPacket(victimPod, "8.8.8.8", 443, 0x10, mark) },
		"a node":                 func(mark string) []byte { return tcpPacket(victimPod, "172.31.1.1", 6443, 0x10, mark) },
		"another peer":           func(mark string) []byte { return udpPacket(victimPod, "10.99.0.9", mark) },
		"the peer, as we see it": func(mark string) []byte { return udpPacket(victimPod, "10.61.2.2", mark) },
	} {
		for what, kind := range map[string][2]byte{"an error": {3, 3}, "a smaller MTU": {3, 4}, "a time that is over": {11, 0}, "a wrong parameter": {12, 0}} {
			all[what+" about what went to "+name] = hostile{
				packets: one(func(mark string) []byte {
					return icmpPacket(peerPod, victimPod, kind[0], kind[1], [4]byte{0, 0, 2, 64}, quoted(mark))
				}),
				counted: "gA-B spoofed", without: map[dataplane.Place][]string{theGateway: {quotes}, nodeTwo: {quotes}}, passes: thePod + " itself",
			}
		}
	}
	return all
}

func vtepMAC(address string) dataplane.MAC {
	raw := netip.MustParseAddr(address).As4()
	return dataplane.MAC{0x02, 0x6c, raw[0], raw[1], raw[2], raw[3]}
}

// vxlanPacket carries a packet as the overlay would.
func vxlanPacket(from, to string, vni uint32, mac dataplane.MAC, inner []byte) []byte {
	raw := append(binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, vni<<8), frame(mac, unix.ETH_P_IP, inner)...)
	return header{protocol: unix.IPPROTO_UDP, from: from, to: to}.packet(datagram(1000, dataplane.DefaultOverlayPort, string(raw)))
}

// forgedOverlay is what a pod sends as if it were a gateway or a node.
func forgedOverlay() map[string]hostile {
	all := map[string]hostile{}
	for whose, to := range map[string]string{"its own node": "172.31.1.2", "another node": "172.31.1.1", "a gateway": gatewayPod} {
		unpacks := map[string]string{"172.31.1.2": "A2 unpacks", "172.31.1.1": "A1 unpacks", gatewayPod: "gA-B unpacks"}[to]
		inner := func(mark string) []byte { return udpPacket("8.8.8.8", victimPod, mark) }
		without := map[dataplane.Place][]string{nodeTwo: {overlay}, theGateway: {overlay}}
		for how, mac := range map[string]dataplane.MAC{"": vtepMAC(to), ", to all": {255, 255, 255, 255, 255, 255}, ", to many": {1, 0, 94, 0, 0, 1}, ", to another one": vtepMAC("9.9.9.9")} {
			all["VXLAN of a pod to "+whose+how] = hostile{
				by: thePod, packets: one(func(mark string) []byte { return vxlanPacket(victimPod, to, dataplane.VNI, mac, inner(mark)) }),
				counted: "A2 spoofed", without: without, passes: unpacks,
			}
		}
		for _, vni := range []uint32{0, 1, dataplane.VNI + 1, 1<<24 - 1} {
			all[fmt.Sprintf("VXLAN of a pod to %s, of network %d", whose, vni)] = hostile{
				by: thePod, packets: one(func(mark string) []byte { return vxlanPacket(victimPod, to, vni, vtepMAC(to), inner(mark)) }), counted: "A2 spoofed",
			}
		}
		all["VXLAN of a pod to "+whose+", in fragments"] = hostile{
			by: thePod, counted: "A2 spoofed", without: without, passes: unpacks,
			packets: func(mark string) [][]byte {
				whole := vxlanPacket(victimPod, to, dataplane.VNI, vtepMAC(to), inner(mark))[20:]
				h := header{protocol: unix.IPPROTO_UDP, from: victimPod, to: to, id: uint16(mark[len(mark)-1]) + 77, fragment: moreFragments}
				first := h.packet(whole[:16])
				h.fragment = 2
				return [][]byte{first, h.packet(whole[16:])}
			},
		}
	}
	return all
}

// takenOver is what a gateway sends to a node that does what it likes.
func takenOver() map[string]hostile {
	all := map[string]hostile{}
	for name, h := range map[string]struct{ from, to, without, passes string }{
		"to a pod of another node": {"10.61.2.2", victimPod, otherPods, "A1 by eth0"},
		// The node passes it on, finds nobody there, and says so.
		"to a Service":                {"10.61.2.2", "10.96.0.20", otherPods, "A1 by cni-liqo"},
		"to the Internet":             {"10.61.2.2", "8.8.8.8", otherPods, "A1 by cni-liqo"},
		"to the node":                 {"10.61.2.2", "172.31.1.1", fromOverlay, "A1 itself"},
		"to a pod, from another node": {"172.31.1.2", "10.244.1.2", strangers, "A1 by veth0"},
		"to a pod, from a Service":    {"10.96.0.1", "10.244.1.2", strangers, "A1 by veth0"},
		"to a pod, from the Internet": {"8.8.8.8", "10.244.1.2", strangers, "A1 by veth0"},
	} {
		counted := map[bool]string{true: "A1 spoofed", false: "A1 foreign"}[h.without == strangers]
		all["a gateway that was taken over "+name] = hostile{
			by: theGateway, device: dataplane.GatewayDevice, seen: onA1, counted: counted, without: map[dataplane.Place][]string{nodeOne: {h.without}}, passes: h.passes,
			packets: one(func(mark string) []byte {
				return frame(vtepMAC("172.31.1.1"), unix.ETH_P_IP, udpPacket(h.from, h.to, mark))
			}),
		}
	}
	for name, h := range map[string]struct {
		first  dataplane.Place
		unpack string
	}{"the node": {nodeTwo, "172.31.1.2"}, "another node": {nodeOne, "172.31.1.1"}} {
		all["a gateway that was taken over, to the overlay of "+name+" that is an IP resource"] = hostile{
			by: theGateway, device: dataplane.GatewayDevice, seen: []string{string(h.first) + " unpacks", "gA-B by liqo"}, counted: string(h.first) + " foreign",
			without: map[dataplane.Place][]string{h.first: {overlay}}, passes: thePod + " itself",
			packets: one(func(mark string) []byte {
				inner := vxlanPacket("10.61.2.2", "172.31.1.2", dataplane.VNI, vtepMAC("172.31.1.2"), udpPacket("10.61.9.9", victimPod, mark))
				return frame(vtepMAC(h.unpack), unix.ETH_P_IP, inner)
			}),
		}
	}
	return all
}

// version6Packets are of IPv6, which nothing of ours carries.
func version6Packets() map[string]hostile {
	all := map[string]hostile{}
	packet := func(mark string, kind byte, body []byte) []byte {
		from, to := netip.MustParseAddr("fe80::bad"), netip.MustParseAddr("ff02::1")
		body = append(append([]byte{kind, 0, 0, 0}, body...), mark...)
		raw := append([]byte{0x60, 0, 0, 0, 0, byte(len(body)), unix.IPPROTO_ICMPV6, 255}, from.AsSlice()...) //nolint:gosec // Short.
		raw = append(raw, to.AsSlice()...)
		pseudo := append(slices.Clone(raw[8:]), 0, 0, 0, byte(len(body)), 0, 0, 0, unix.IPPROTO_ICMPV6) //nolint:gosec // Short.
		binary.BigEndian.PutUint16(body[2:], ^checksum(even(append(pseudo, body...))))
		return append(raw, body...)
	}
	// A router for 1800 s, with a prefix; the mark stands in an option of its own (14 bytes, and 2 before it).
	prefix := append([]byte{3, 4, 64, 0xc0, 0, 0, 0x70, 8, 0, 0, 0x70, 8, 0, 0, 0, 0}, netip.MustParseAddr("2001:db8::").AsSlice()...)
	router := slices.Concat([]byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, prefix, []byte{253, 2})
	for name, body := range map[string]struct {
		kind byte
		body []byte
	}{"a router's advertisement": {134, router}, "an echo to all": {128, []byte{0, 1, 0, 1}}} {
		all[name+" of IPv6, by the tunnel"] = hostile{
			packets: one(func(mark string) []byte { return packet(mark, body.kind, body.body) }),
			counted: "gA-B foreign", without: map[dataplane.Place][]string{theGateway: {version6}}, passes: "gA-B itself",
		}
		all[name+" of IPv6, by a gateway that was taken over"] = hostile{
			by: theGateway, device: dataplane.GatewayDevice, seen: onA1, counted: "A1 foreign",
			without: map[dataplane.Place][]string{nodeOne: {version6}}, passes: "A1 itself",
			packets: one(func(mark string) []byte {
				return frame(vtepMAC("172.31.1.1"), unix.ETH_P_IPV6, packet(mark, body.kind, body.body))
			}),
		}
	}
	return all
}
