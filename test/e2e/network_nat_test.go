package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/lab/network"
)

// TestNetworkNAT puts the cluster of the gateway's client behind a NAT of each kind: a gateway that starts there finds its peer, packets pass both
// ways, and they do again after the router forgot the port under which the peer knew it.
func TestNetworkNAT(t *testing.T) {
	the.alone(t)
	const namespace = "nat"
	probes(t, namespace, the.rome, the.milan)
	for _, kind := range []network.NAT{network.PortRestricted, network.Symmetric} {
		t.Run(string(kind), func(t *testing.T) {
			the.recordFailure(t)
			t.Cleanup(func() { the.mend(t) })
			if err := the.breaks(t).BreakLink(t.Context(), network.Fault{A: consumer, B: provider, NAT: kind}); err != nil {
				t.Fatalf("setting up the NAT: %v", err)
			}
			forget(t)
			pod := gatewayPod(t, the.rome)
			the.rome.deletes(t, &pod, client.GracePeriodSeconds(0))
			everyPair(t, namespace, the.rome, the.milan)
			translated(t)
			forget(t)
			everyPair(t, namespace, the.rome, the.milan)
			translated(t)
		})
	}
}

func forget(t *testing.T) {
	t.Helper()
	if err := the.breaks(t).Plan().Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// translated checks that milan knows rome under the router's address: that the router awaits answers to it.
func translated(t *testing.T) {
	t.Helper()
	plan := the.lab.Plan()
	out, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", plan.Switch(), "conntrack", "-L", "-p", "udp").Output()
	if err != nil {
		t.Fatalf("reading the connections of the router: %v", err)
	}
	if router := plan.ControlPlane(provider).Gateway.String(); !strings.Contains(string(out), " dst="+router+" ") {
		t.Errorf("the router translates nothing to %s:\n%s", router, out)
	}
}
