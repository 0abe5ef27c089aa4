package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

const (
	walksNamespace = "walks"
	// closedPort is one that nobody listens on.
	closedPort = 9
	// narrow is how large packets to one pod may be, in bytes, on the last piece of their way.
	narrow = 1300
)

// TestNetworkWalks follows packets on the ways that TestNetwork does not take, from all nodes of both clusters: W4, W6, W7, W9 and W12 of the design.
func TestNetworkWalks(t *testing.T) {
	the.alone(t)
	probes(t, walksNamespace, the.rome, the.milan)
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"who asks where nobody listens is told so", closedPorts},
		{"Services and node ports have pods of the other cluster", servicesOfBoth},
		{"what is no pod is reached by an IP resource", outsiders},
		// The senders remember it.
		{"who sends too much for the far end is told so", narrowEnds},
	} {
		t.Run(step.name, func(t *testing.T) { the.recordFailure(t); step.test(t) })
	}
}

// eachWay does something for rome and milan, and for milan and rome.
func eachWay(do func(c, peer *side)) {
	for _, c := range []*side{the.rome, the.milan} {
		do(c, other(c))
	}
}

// closedPorts asks each pod, from pods and from nodes, at a port that nobody listens on. By UDP, an ICMP error has to say so, and be about the
// packet that was sent: the kernel tells nobody else.
func closedPorts(t *testing.T) {
	eachWay(func(c, peer *side) {
		for _, name := range peer.ownNodes() {
			to := seenAt(t, c, peer, peer.probe(t, walksNamespace, name).Status.PodIP)
			for _, node := range c.ownNodes() {
				for _, from := range []string{node, "host-" + node} {
					c.probe(t, walksNamespace, from)
					c.asks(t, around, walksNamespace, from, net.JoinHostPort(to, fmt.Sprint(closedPort)), 0, map[string]string{"tcp": "closed", "udp": "closed"})
				}
			}
		}
	})
}

// narrowEnds has a pod of each node be reached by small packets only. Its node answers larger ones with an ICMP error, which has to find its way back
// through the tunnel to who sent them, and be about what was sent.
func narrowEnds(t *testing.T) {
	t.Cleanup(func() { // Pods of later tests may get the same addresses.
		eachWay(func(c, _ *side) {
			for _, node := range c.ownNodes() {
				the.within(t, c, node, "ip", "route", "flush", "cache").succeeds(t)
			}
		})
	})
	eachWay(func(c, peer *side) {
		for _, name := range peer.ownNodes() {
			address := peer.probe(t, walksNamespace, name).Status.PodIP
			peer.narrows(t, name, address)
			for _, node := range c.ownNodes() {
				seen := seenAt(t, peer, c, c.probe(t, walksNamespace, node).Status.PodIP)
				for from, seen := range map[string]string{node: seen, "host-" + node: c.seenNode(t, node)} {
					answer := name + " " + seen
					c.asks(t, around, walksNamespace, from, addressOf(seenAt(t, c, peer, address)), narrow,
						map[string]string{"tcp": answer, "udp": answer, "full": answer, "larger": "refused"})
				}
			}
		}
	})
}

// narrows has a node send only small packets to one of its pods: by the pod's own route, or by one within that of the bridge that it is plugged into,
// which goes when the test ends.
func (c *side) narrows(t *testing.T, node, pod string) {
	t.Helper()
	route := strings.TrimSpace(the.within(t, c, node, "ip", "route", "show", pod).succeeds(t).stdout)
	if route == "" {
		bridge := []string{pod, "dev", "cni0"}
		the.within(t, c, node, append([]string{"ip", "route", "add"}, append(bridge, "mtu", strconv.Itoa(narrow))...)...).succeeds(t)
		t.Cleanup(func() { the.within(t, c, node, append([]string{"ip", "route", "del"}, bridge...)...).succeeds(t) })
		return
	}
	the.within(t, c, node, append(append([]string{"ip", "route", "change"}, strings.Fields(route)...), "mtu", strconv.Itoa(narrow))...).succeeds(t)
}

// outsiders has pods of each cluster ask a machine in the other one's network that is no node: with masquerade it sees the node of the gateway ask, and
// without it the pods, to which it has a route by that node.
func outsiders(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	eachWay(func(c, peer *side) {
		machine := outsider(t, c)
		ip := &ipamv1alpha1.IP{ObjectMeta: named(walksNamespace, "machine"), Spec: ipamv1alpha1.IPSpec{
			IP: networkingv1beta1.IP(machine.String()), Masquerade: ptr.To(true),
		}}
		c.creates(t, ip)
		eventually(t, soon, "an address of the IP", func(ctx context.Context) (bool, string) {
			err := c.Get(ctx, client.ObjectKeyFromObject(ip), ip)
			return err == nil && ip.Status.IP != "", fmt.Sprintf("%+v %v", ip.Status, err)
		})
		through := the.lab.Plan().Node(c.name, gatewayPod(t, c).Spec.NodeName).Address
		ask := func(from, seen string) {
			answer := host + " " + seen
			peer.asks(t, around, walksNamespace, from, addressOf(seenAt(t, peer, c, string(ip.Status.IP))), peer.mtu(t, c),
				map[string]string{"tcp": answer, "udp": answer, "full": answer, "larger": "refused"})
		}
		for _, node := range peer.ownNodes() {
			ask(node, through.String())
			ask("host-"+node, through.String())
		}
		c.changes(t, ip, func() { ip.Spec.Masquerade = ptr.To(false) })
		for _, node := range peer.ownNodes() {
			seen := seenAt(t, c, peer, peer.probe(t, walksNamespace, node).Status.PodIP)
			for from, seen := range map[string]string{node: seen, "host-" + node: peer.seenNode(t, node)} {
				the.within(t, c, "", "ip", "route", "replace", seen, "via", through.String()).succeeds(t)
				t.Cleanup(func() { the.within(t, c, "", "ip", "route", "del", seen).succeeds(t) })
				ask(from, seen)
			}
		}
	})
}

// outsider has a prober answer at an address of its own in a cluster's network, beside the control plane, until the test ends.
func outsider(t *testing.T, c *side) netip.Addr {
	t.Helper()
	subnet := the.lab.Plan().ControlPlane(c.name).Subnet
	bytes := subnet.Masked().Addr().As4()
	bytes[3] |= 1<<(32-subnet.Bits()) - 2
	address := netip.AddrFrom4(bytes)
	device := strings.Fields(the.within(t, c, "", "ip", "-o", "route", "show", subnet.Masked().String()).succeeds(t).stdout)[2]
	the.within(t, c, "", "ip", "address", "add", address.String()+"/32", "dev", device).succeeds(t)
	t.Cleanup(func() {
		the.within(t, c, "", "ip", "address", "del", address.String()+"/32", "dev", device).succeeds(t)
	})
	talk(t, the.outside(t, c, "serve", address.String()))
	return address
}

// outside is a prober in a cluster's network that is neither a pod nor a node.
func (s *suite) outside(t *testing.T, c *side, args ...string) *exec.Cmd {
	t.Helper()
	argv, err := s.breaks(t).Within(c.name, "", append([]string{filepath.Join(s.folder, proberName)}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(argv[0], argv[1:]...)
}
