package netlink

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqo.io/liqo/pkg/dataplane"
)

// onNode is what a node has besides what is ours: its network, the device of a pod, and another way out.
const onNode = `ip link set lo up
	ip link add eth0 type bridge; ip link set eth0 up; ip addr add 172.31.1.2/24 dev eth0; ip route add default via 172.31.1.1
	ip link add eth1 type bridge; ip link set eth1 up; ip addr add 172.31.9.2/24 dev eth1
	ip link add pod0 type bridge; ip link set pod0 up; ip route add 10.244.2.2 dev pod0
	for name in all eth0 eth1 pod0; do echo 1 > /proc/sys/net/ipv4/conf/$name/forwarding; echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter; done`

// toPeers are the ways of the node itself and of its pod to a peer.
const toPeers = "ip route get 10.61.2.2; ip route get 10.71.2.2; ip route get 10.61.2.2 from 10.244.2.2 iif pod0"

// leadsToPeers says what does not lead to a peer.
func leadsToPeers(t *testing.T, p *place) (missing string) {
	t.Helper()
	ways := foreign(t, p.namespace, "( "+toPeers+" ) 2>&1 || true")
	if strings.Count(ways, "via 10.244.1.200 dev cni-liqo") != 3 || strings.Count(ways, "src 10.70.0.2") != 2 {
		return ways
	}
	return ""
}

// Whatever rules others have on a node, before or after ours, and whoever came first: packets to peers go to them, a node's own addresses stay its
// own, what somebody takes away is put back, and when we go their rules are as they were.
func TestPeersComeBeforeRulesOfOthers(t *testing.T) {
	for name, rules := range map[string]string{
		"none": "true",
		// A mark for the proxy, tables for what comes from a pod, and the kernel's own table behind the first.
		"Cilium": `ip route add default via 172.31.9.1 table 11
			ip rule add pref 9 fwmark 0x200/0xf00 lookup 2004; ip rule add pref 100 lookup local; ip rule del pref 0
			ip rule add pref 111 from 10.244.2.0/24 lookup 11`,
		"AWS": `ip route add default via 172.31.9.1 table 2
			ip rule add pref 512 to 10.244.2.2 lookup main; ip rule add pref 1024 fwmark 0x80/0x80 lookup main; ip rule add pref 1536 from 10.244.2.2 lookup 2`,
		"all to another table": "ip route add default via 172.31.9.1 table 900; ip rule add pref 9 lookup 900",
		"a VPN":                "ip route add default via 172.31.9.1 table 51820; ip rule add not fwmark 0xca6c lookup 51820; ip rule add lookup main suppress_prefixlength 0",
		// Of an older version of ours.
		"rules that are gone": "ip rule add pref 98 lookup 5163 protocol 79; ip rule del pref 98",
	} {
		for _, order := range []string{"they come first", "we come first"} {
			t.Run(name+"/"+order, func(t *testing.T) {
				t.Parallel()
				p := &place{namespace: namespace(t), state: nodeState(t, nil)}
				p.kernel = opened(t, p.namespace)
				foreign(t, p.namespace, onNode)
				if order == "they come first" {
					foreign(t, p.namespace, rules)
				}
				apply(t, p.kernel, p.state)
				if order == "we come first" {
					foreign(t, p.namespace, rules)
				}
				before := foreign(t, p.namespace, "ip rule")
				for _, deed := range []string{
					"true", "ip route flush table local proto 79", "ip route replace unreachable 10.61.0.0/16 table local", "ip link del cni-liqo",
				} {
					foreign(t, p.namespace, deed)
					if d := p.differs(t); (d == "") != (deed == "true") {
						t.Fatalf("after %s, the difference is told as %q", deed, d)
					}
					apply(t, p.kernel, p.state)
					if missing := leadsToPeers(t, p); missing != "" {
						t.Fatalf("after %s the ways are\n%s", deed, missing)
					}
					if changes := apply(t, p.kernel, p.state); changes != nil {
						t.Fatalf("after %s, what is there is changed: %q", deed, changes)
					}
				}
				if own := foreign(t, p.namespace, "ip route get 10.70.0.2"); !strings.HasPrefix(own, "local ") {
					t.Errorf("the way to an own address is %s", own)
				}
				apply(t, p.kernel, dataplane.State{})
				if after := foreign(t, p.namespace, "ip rule"); after != before {
					t.Errorf("rules before\n%s\nand after\n%s", before, after)
				}
				if left := foreign(t, p.namespace, "ip route show table all proto 79; ip rule | grep proto.79 || true"); left != "" {
					t.Errorf("left behind: %s", left)
				}
			})
		}
	}
}

// A way to a peer may end at the node, and lead on again: in the kernel it is always the one that is wanted, and alone.
func TestWaysToPeersEndAndLeadOn(t *testing.T) {
	p := &place{namespace: namespace(t)}
	p.kernel = opened(t, p.namespace)
	foreign(t, p.namespace, onNode)
	for _, gateway := range []netip.Addr{fabrics[0].Gateway, {}, fabrics[0].Gateway} {
		p.state = nodeState(t, func(i *dataplane.NodeInput) {
			i.Fabrics = slices.Clone(fabrics)
			i.Fabrics[0].Gateway = gateway
		})
		apply(t, p.kernel, p.state)
		if changes := apply(t, p.kernel, p.state); changes != nil {
			t.Errorf("what is there is changed: %q", changes)
		}
		if d := p.differs(t); d != "" {
			t.Error(d)
		}
		ways := foreign(t, p.namespace, "ip route show table local 10.61.0.0/16")
		if strings.Count(ways, "proto") != 1 || strings.Contains(ways, "blackhole") == gateway.IsValid() {
			t.Errorf("with gateway %v the way to the peer is %s", gateway, ways)
		}
	}
	apply(t, p.kernel, dataplane.State{})
	if left := foreign(t, p.namespace, "ip route show table all proto 79"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// No range of a peer takes an address of the host from it, be it that single address, and the kernel's own routes stay as they are: whether the
// address is there first or comes later.
func TestAHostsOwnAddressesComeBeforePeers(t *testing.T) {
	p := &place{namespace: namespace(t), state: nodeState(t, func(i *dataplane.NodeInput) {
		i.Fabrics = []dataplane.InternalFabric{{
			Gateway: fabrics[0].Gateway, External: parsed("172.31.1.2"), MTU: 1440, Remote: prefixList("172.31.9.2/32", "192.0.2.8/32", "10.61.0.0/16", "127.8.0.0/16"),
		}}
	})}
	p.kernel = opened(t, p.namespace)
	foreign(t, p.namespace, onNode)
	const kernels = "ip route show table local | grep proto.kernel | grep -v 10.70.0"
	before := foreign(t, p.namespace, kernels)
	check := func(addresses ...string) {
		t.Helper()
		apply(t, p.kernel, p.state)
		for _, address := range addresses {
			if way := foreign(t, p.namespace, "ip route get "+address); !strings.HasPrefix(way, "local ") {
				t.Errorf("the way to an own address is %s", way)
			}
		}
		if changes := apply(t, p.kernel, p.state); changes != nil {
			t.Errorf("what is there is changed: %q", changes)
		}
		if d := p.differs(t); d != "" {
			t.Error(d)
		}
	}
	check("172.31.1.2", "172.31.9.2", "127.0.0.1")
	if way := foreign(t, p.namespace, "ip route get 192.0.2.8"); !strings.Contains(way, "dev cni-liqo") {
		t.Errorf("the way to a peer is %s", way)
	}
	foreign(t, p.namespace, "ip addr add 192.0.2.8/32 dev eth1")
	check("172.31.1.2", "172.31.9.2", "192.0.2.8")
	p.state.Routes[0].MTU = 1300
	check("172.31.1.2", "172.31.9.2", "192.0.2.8")
	foreign(t, p.namespace, "ip addr del 192.0.2.8/32 dev eth1")
	check("172.31.1.2", "172.31.9.2")
	if after := foreign(t, p.namespace, kernels); after != before {
		t.Errorf("the kernel's routes before\n%s\nand after\n%s", before, after)
	}
	apply(t, p.kernel, dataplane.State{})
	if after := foreign(t, p.namespace, kernels); after != before {
		t.Errorf("the kernel's routes before\n%s\nand after we are gone\n%s", before, after)
	}
}

// older has what the version before had on a node: the same ways in a table of their own, and the rule that led there.
func older(t *testing.T, p *place) {
	t.Helper()
	old := p.state
	old.Routes, old.Rules = nil, []dataplane.Rule{{Priority: 98, Table: dataplane.FormerTable}}
	for _, r := range p.state.Routes {
		r.Table = dataplane.FormerTable
		old.Routes = append(old.Routes, r)
	}
	apply(t, p.kernel, old)
	if rules := foreign(t, p.namespace, "ip rule"); !strings.Contains(rules, "98:\tfrom all lookup 5163 proto 79") {
		t.Fatalf("the rules of the version before are\n%s", rules)
	}
}

// A node's upgrade takes away the rule and the table of the version before, and there is a way at any time; so does its end, without one.
func TestTheRuleOfTheVersionBeforeGoes(t *testing.T) {
	p := &place{namespace: namespace(t), state: nodeState(t, nil)}
	p.kernel = opened(t, p.namespace)
	foreign(t, p.namespace, onNode)
	older(t, p)
	steps := p.kernel.steps(func(next string) {
		if missing := leadsToPeers(t, p); missing != "" {
			t.Errorf("before %q the ways are\n%s", next, missing)
		}
	})
	apply(t, p.kernel, p.state)
	if *steps != 2*len(p.state.Routes)+1 {
		t.Errorf("there were %d changes", *steps)
	}
	const left = "ip rule | grep 98: || true; ip route show table 5163 2>/dev/null || true"
	if left := foreign(t, p.namespace, left); left != "" {
		t.Errorf("of the version before there is\n%s", left)
	}
	if missing := leadsToPeers(t, p); missing != "" {
		t.Errorf("the ways are\n%s", missing)
	}
	p.kernel.stop = nil
	apply(t, p.kernel, dataplane.State{})
	older(t, p)
	apply(t, p.kernel, dataplane.State{})
	if left := foreign(t, p.namespace, left); left != "" {
		t.Errorf("uninstalled, there is\n%s", left)
	}
}
