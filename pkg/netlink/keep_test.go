package netlink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// kept keeps a State in a namespace until the test ends; the reports come on the channel.
func kept(t *testing.T, p *place) (reports <-chan Report) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	wanted, done, told := make(chan dataplane.State, 1), make(chan error), make(chan Report, 1000)
	keeper := opened(t, p.namespace)
	go func() { done <- keeper.Keep(ctx, wanted, func(r Report) { told <- r }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Keep ended: %v", err)
		}
	})
	wanted <- p.state
	eventually(t, 5*time.Second, func() string { return p.differs(t) })
	if first := <-told; first.Repair || first.Err != nil || len(first.Changes) == 0 {
		t.Fatalf("the first report is %+v", first)
	}
	return told
}

// deedsOf are what others may do to what is ours, on a node or in a gateway.
func deedsOf(place string) map[string]string {
	d := map[string]string{"node": dataplane.NodeDevice, "gateway": dataplane.GatewayDevice}[place]
	deeds := map[string]string{
		"routes are flushed":        "ip route flush table local proto 79; for table in 101 102; do ip route flush table $table || true; done",
		"one route is changed":      "ip link set lo up; ip route replace 10.61.0.0/16 dev lo table 255 proto 79",
		"a route is added":          "ip link set lo up; ip route add 10.99.0.0/16 dev lo table 101 proto 79",
		"a rule is added":           "ip rule add pref 99 to 10.99.0.0/16 lookup 101 protocol 79",
		"neighbours are flushed":    "ip neigh flush dev " + d + " nud permanent",
		"a neighbour is changed":    "ip neigh replace 10.244.1.200 lladdr 02:00:00:00:00:01 dev " + d + " nud permanent",
		"entries are flushed":       "for mac in $(bridge fdb show dev " + d + " | cut -d' ' -f1); do bridge fdb del $mac dev " + d + " self; done",
		"the table is deleted":      "nft delete table ip liqo",
		"the ruleset is flushed":    "nft flush ruleset",
		"a chain is flushed":        "nft flush chain ip liqo input",
		"a rule is inserted":        "nft insert rule ip liqo input accept",
		"a chain is added":          "nft 'add chain ip liqo mine { type filter hook input priority 0; policy drop; }'",
		"an element is added":       "nft add element ip liqo " + map[string]string{"node": "gateways", "gateway": "nodes"}[place] + " { 192.0.2.77 }",
		"a set is flushed":          "nft flush set ip liqo " + map[string]string{"node": "peers", "gateway": "peer"}[place],
		"a range is added to a set": "nft add element ip liqo " + map[string]string{"node": "peers", "gateway": "peer"}[place] + " { 1.2.3.4-1.2.3.9 }",
		"the device is deleted":     "ip link del " + d,
		"the device is down":        "ip link set down dev " + d,
		"the MTU is another":        "ip link set mtu 1300 dev " + d,
		"the MAC is another":        "ip link set address 02:00:00:00:00:99 dev " + d,
		"the address is gone":       "ip addr flush dev " + d,
		"an address is added":       "ip addr add 192.0.2.1/24 dev " + d,
		"forwarding is off":         "echo 0 > /proc/sys/net/ipv4/conf/" + d + "/forwarding",
		"all at once":               "nft flush ruleset; ip rule flush; ip link del " + d + "; ip route flush table 102 || true",
	}
	switch place {
	case "node":
		deeds["a route is replaced"] = "ip route replace blackhole 10.61.0.0/16 table local"
		deeds["a route comes before ours"] = "ip link set lo up; ip route prepend 10.61.0.0/16 dev lo table local"
	case "gateway":
		deeds["rules are flushed"] = "ip rule flush"
	}
	return deeds
}

// Who takes over a State that is in place is told so, once.
func TestAStateThatIsInPlaceIsTold(t *testing.T) {
	p := places(t)["node"]
	apply(t, p.kernel, p.state)
	wanted, told := make(chan dataplane.State), make(chan Report, 10)
	go func() { _ = opened(t, p.namespace).Keep(t.Context(), wanted, func(r Report) { told <- r }) }()
	for range 2 {
		wanted <- p.state
		if r := <-told; r.Repair || r.Err != nil || len(r.Changes) > 0 {
			t.Errorf("told: %+v", r)
		}
	}
}

// What is put back is a repair, also if that takes two passes, but for what this process has taken away itself.
func TestWhatIsARepair(t *testing.T) {
	changed, failed := Report{Changes: []string{"add rule"}}, Report{Changes: []string{"add rule"}, Err: errors.New("interrupted")}
	for name, tc := range map[string]struct {
		passes []Report
		own    bool
		want   bool // of the last one
	}{
		"the first pass":            {[]Report{changed}, false, false},
		"the first one that works":  {[]Report{failed, changed}, false, false},
		"what others changed":       {[]Report{changed, changed}, false, true},
		"what took two passes":      {[]Report{changed, failed, changed}, false, true},
		"what was taken away by us": {[]Report{changed, changed}, true, false},
		"nothing":                   {[]Report{changed, {}}, false, false},
	} {
		var p keeping
		p.want(dataplane.State{})
		var last Report
		for i, r := range tc.passes {
			p.news(&r, "", tc.own && i > 0)
			last = r
		}
		if last.Repair != tc.want {
			t.Errorf("%s: a repair: %t", name, last.Repair)
		}
		p.want(dataplane.State{Kept: []string{"other"}})
		if r := changed; p.news(&r, "", false) && r.Repair {
			t.Errorf("%s: another State is a repair", name)
		}
	}
}

// Each thing that others do to what is ours is heard by itself: the pass that it leads to does not wait for the next minute.
func TestWhatOthersDoIsHeard(t *testing.T) {
	for name, p := range places(t) {
		for deed, command := range deedsOf(name) {
			t.Run(name+"/"+deed, func(t *testing.T) {
				apply(t, p.kernel, p.state)
				// Who begins to listen now does not hear of what was done before.
				events, _, err := p.kernel.watch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				foreign(t, p.namespace, command)
				eventually(t, 5*time.Second, func() string {
					if len(events) == 0 {
						return "nothing is heard"
					}
					return ""
				})
			})
		}
	}
}

// What others do to what is ours is undone, and told.
func TestWhatOthersDoIsUndone(t *testing.T) {
	for name, p := range places(t) {
		reports := kept(t, p)
		deeds := deedsOf(name)
		for _, deed := range slices.Sorted(maps.Keys(deeds)) {
			t.Run(name+"/"+deed, func(t *testing.T) {
				for len(reports) > 0 {
					<-reports
				}
				foreign(t, p.namespace, deeds[deed])
				repaired, failed := false, error(nil)
				eventually(t, 5*time.Second, func() string {
					for len(reports) > 0 {
						told := <-reports
						if len(told.Changes) > 0 && !told.Repair {
							t.Fatalf("%+v", told)
						}
						repaired, failed = repaired || told.Repair, told.Err
					}
					// A pass that reads the kernel while the deed is half done may fail; the one after it does not.
					if failed != nil {
						return failed.Error()
					}
					if !repaired {
						return "it is not told that anything was repaired"
					}
					return p.differs(t)
				})
			})
		}
	}
}

// What an older version left is removed; what is not ours stays as it is, however it is called.
func TestLeftoversGoAndWhatIsForeignStays(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			strange := []string{
				"ip link set lo up",
				"ip link add name liqo-bridge type bridge",
				"ip link add name vx77 type vxlan id 77 dstport 4789 local 192.0.2.1 && ip link set vx77 up",
				"ip neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev vx77 nud permanent",
				"bridge fdb add 02:00:00:00:00:09 dst 192.0.2.9 dev vx77 self permanent",
				"ip rule add pref 98 to 192.0.2.0/24 lookup 5163",
				"ip rule add pref 4000 lookup 4000 protocol 80",
				"ip route add 192.0.2.0/24 dev lo table 5163",
				"ip route add 192.0.2.0/24 dev lo table 101 proto 80",
				"ip route add 192.0.2.0/24 dev lo table 4000 proto 79",
				"ip route add 192.0.2.0/24 dev lo table 255 proto 80",
				"ip route add local 192.0.2.64/26 dev lo table 255 proto 79",
				"nft add table inet liqo; nft add chain inet liqo input; nft add table ip liqo-cni; nft add table ip kube-proxy",
			}
			list := `ip -o -4 addr; ip -o link show dev vx77; ip -o link show dev liqo-bridge; ip neigh show dev vx77; bridge fdb show dev vx77; ip rule | grep -v proto.79 | grep -v ^0:;
				ip -4 route show table all | grep 192.0.2; nft list table inet liqo; nft list table ip liqo-cni; nft list table ip kube-proxy`
			foreign(t, p.namespace, strings.Join(strange, "\n"))
			before := foreign(t, p.namespace, list)
			old := []string{
				"ip link add name cni-liqo7 type vxlan id 5163 dstport 6091 local 172.31.1.2 && ip link set cni-liqo7 up && ip addr add 10.70.0.99/32 dev cni-liqo7",
				"ip route add 10.99.0.0/16 dev lo table 5163 proto 79",
				"ip route add 10.61.0.0/16 dev lo metric 7 table 5163 proto 79",
				"ip route add 10.99.0.0/16 dev lo table 102 proto 79",
				"ip route add 10.61.0.0/16 dev lo metric 7 table 255 proto 79",
				"ip route add 10.99.0.0/16 dev lo table 255 proto 79",
				"ip rule add pref 97 fwmark 0x1 lookup 5163 protocol 79",
				"ip rule add pref 98 lookup 5163 protocol 79",
				"ip rule add pref 98 fwmark 0x1 lookup 5163 protocol 79",
				"nft add table ip liqo; nft add chain ip liqo old; nft add chain ip liqo older; nft add rule ip liqo older ip saddr vmap { 10.0.0.0/8 : goto old }",
				"nft 'add chain ip liqo input { type filter hook prerouting priority 5; policy drop; }'",
				"nft 'add set ip liqo oldset { type ipv4_addr; }; add counter ip liqo oldcounter; add rule ip liqo input ip saddr @oldset counter name oldcounter goto older'",
				"nft 'add map ip liqo peers { type ipv4_addr : ipv4_addr; }'",
				"nft 'add table ip6 liqo; add chain ip6 liqo old'",
			}
			foreign(t, p.namespace, strings.Join(old, "\n"))
			apply(t, p.kernel, p.state)
			if d := p.differs(t); d != "" {
				t.Errorf("leftovers (-want +got):\n%s", d)
			}
			ours := map[string]string{"node": " 10.70.0.2/32 ", "gateway": " 10.70.0.200/32 "}[name]
			apply(t, p.kernel, dataplane.State{})
			after := foreign(t, p.namespace, list)
			if after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			if all := foreign(t, p.namespace, everything); strings.Contains(all, ours) || strings.Contains(all, "cni-liqo") || strings.Contains(all, "10.99.0.0") {
				t.Errorf("left behind:\n%s", all)
			}
		})
	}
}

// A device of our name that is not ours is left alone, and the user is told.
func TestADeviceOfOurNameThatIsNotOurs(t *testing.T) {
	p := places(t)["node"]
	foreign(t, p.namespace, "ip link add name cni-liqo type bridge")
	_, err := p.kernel.Apply(p.state)
	if err == nil || !strings.Contains(err.Error(), "add device cni-liqo: a device that is not ours has this name") {
		t.Errorf("the error is %v", err)
	}
	if text := foreign(t, p.namespace, "ip -d link show dev cni-liqo"); !strings.Contains(text, "bridge") {
		t.Error(text)
	}
}

// Where the kernel has no WireGuard, it is said that somebody else has to make the device.
func TestATunnelThatNobodyMade(t *testing.T) {
	p := places(t)["gateway"]
	foreign(t, p.namespace, "ip link del "+dataplane.TunnelDevice+"; ip link add probe type wireguard 2>/dev/null && ip link del probe && ip link add "+dataplane.TunnelDevice+" type bridge || true")
	if _, err := p.kernel.Apply(p.state); !errors.Is(err, ErrNoWireGuard) && !strings.Contains(fmt.Sprint(err), "not ours") {
		t.Errorf("the error is %v", err)
	}
}

// What is no business of ours wakes nobody: a node has new devices, addresses, neighbours, routes and rules of kube-proxy all the time.
func TestWhatIsForeignWakesNobody(t *testing.T) {
	p := places(t)["node"]
	apply(t, p.kernel, p.state)
	sockets := listeners(t, p.kernel)
	foreign(t, p.namespace, `ip link add name pod0 type veth peer name pod1; ip link set pod0 up; ip link set pod1 up; ip addr add 192.0.2.1/24 dev pod0
		ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev pod0; ip route add 198.51.100.0/24 via 192.0.2.2; echo 1 > /proc/sys/net/ipv4/conf/pod0/forwarding
		nft add table ip kube-proxy; nft add chain ip kube-proxy services; nft add rule ip kube-proxy services accept; ip link del pod0`)
	// What is heard before this is the noise.
	foreign(t, p.namespace, "ip link set mtu 1400 dev cni-liqo; nft add chain ip liqo mine")
	for socket, concerns := range map[*nl.NetlinkSocket]func(uint16, []byte) bool{sockets[0]: p.kernel.concernsRoutes, sockets[1]: concernsFirewall} {
		noise := 0
		for concerned := false; !concerned; noise++ {
			messages, _, err := socket.Receive()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				concerned = concerned || concerns(m.Header.Type, m.Data)
				if concerned && attribute(m.Data, unix.SizeofIfInfomsg, unix.IFLA_IFNAME) != "cni-liqo\x00" && attribute(m.Data, 4, nftTable) != "liqo\x00" {
					t.Errorf("message %d wakes us: % x", m.Header.Type, m.Data)
				}
			}
		}
		if noise < 3 {
			t.Errorf("there are only %d messages", noise)
		}
	}
}

// A table that somebody takes away while it is read is not there, and no error.
func TestTablesThatVanishAreNoError(t *testing.T) {
	p := places(t)["node"]
	done := make(chan string)
	go func() {
		const away = `for i in $(seq 100); do
			for family in ip ip6; do nft "add table $family liqo; add chain $family liqo input; add set $family liqo peers { type mark; }"; done; nft flush ruleset; done`
		out, err := exec.CommandContext(t.Context(), "nsenter", "--net="+p.namespace, "sh", "-ec", away).CombinedOutput()
		if err != nil {
			done <- fmt.Sprintf("%v: %s", err, out)
		}
		close(done)
	}()
	for {
		select {
		case failed := <-done:
			if failed != "" {
				t.Error(failed)
			}
			return
		default:
		}
		if _, err := p.kernel.Read(p.state); err != nil {
			t.Error(err)
			<-done
			return
		}
	}
}
