package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/test/fakeapi"
)

const (
	group  = "networking.liqo.io/v1beta1/"
	self   = group + "internalnodes/node-2"
	fabric = group + "namespaces/liqo-tenant-milan/internalfabrics/milan"
)

// host is a network namespace with what a node has: a device to the others, and a bridge of its CNI.
func host(t *testing.T) (namespace string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	script := `ip link set lo up; ip link add name eth0 mtu 1400 type veth peer name eth1; ip link set eth0 up; ip link set eth1 up; ip addr add 172.31.1.2/24 dev eth0
		ip link add name cni0 type bridge; ip link set cni0 up; ip addr add 10.244.2.1/24 dev cni0; echo made; exec sleep 1000`
	command := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-ec", script)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if n, err := out.Read(make([]byte, 5)); err != nil || n != 5 {
		t.Fatal(n, err)
	}
	return fmt.Sprintf("/proc/%d/ns/net", command.Process.Pid)
}

func within(t *testing.T, namespace, script string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "nsenter", "--net="+namespace, "sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func eventually(t *testing.T, condition func() (missing string)) {
	t.Helper()
	deadline, again := time.NewTimer(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer deadline.Stop()
	defer again.Stop()
	for {
		missing := condition()
		if missing == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatal(missing)
		case <-again.C:
		}
	}
}

// comesTo waits until the InternalNode says a reason.
func comesTo(t *testing.T, api *fakeapi.REST, reason string) (node networkingv1beta1.InternalNode) {
	t.Helper()
	eventually(t, func() string {
		node = networkingv1beta1.InternalNode{}
		api.Get(t, self, &node)
		if len(node.Status.Conditions) == 1 && node.Status.Conditions[0].Reason == reason {
			return ""
		}
		return fmt.Sprintf("the InternalNode says %+v, want %s", node.Status, reason)
	})
	return node
}

func newNode() *networkingv1beta1.InternalNode {
	address := networkingv1beta1.IP("172.31.1.2")
	return &networkingv1beta1.InternalNode{
		TypeMeta: metav1.TypeMeta{Kind: "InternalNode"}, ObjectMeta: metav1.ObjectMeta{Name: "node-2", UID: "u-node", Generation: 1},
		Spec:   networkingv1beta1.InternalNodeSpec{Interface: networkingv1beta1.InternalNodeSpecInterface{Node: networkingv1beta1.InternalNodeSpecInterfaceNode{IP: "10.70.255.251"}}},
		Status: networkingv1beta1.InternalNodeStatus{NodeIP: networkingv1beta1.InternalNodeStatusNodeIP{Remote: &address}, PodRanges: []networkingv1beta1.CIDR{"10.244.2.0/24"}},
	}
}

func newFabric(mtu networkingv1beta1.MTU) *networkingv1beta1.InternalFabric {
	return &networkingv1beta1.InternalFabric{
		TypeMeta: metav1.TypeMeta{Kind: "InternalFabric"}, ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", UID: "u-fabric"},
		Spec: networkingv1beta1.InternalFabricSpec{
			MTU: mtu, GatewayIP: "10.244.1.200", RemoteCIDRs: []networkingv1beta1.CIDR{"10.61.0.0/16"},
			Interface: networkingv1beta1.InternalFabricSpecInterface{Gateway: networkingv1beta1.InternalFabricSpecInterfaceGateway{IP: "10.70.255.254"}},
		},
	}
}

// start runs the agent of node-2 on a host until the test ends.
func start(t *testing.T, namespace string, api http.Handler, ask ...func(netip.Addr) error) {
	t.Helper()
	answers := func(context.Context, netip.Addr) error { return nil }
	for _, a := range ask {
		answers = func(_ context.Context, address netip.Addr) error { return a(address) }
	}
	served := httptest.NewServer(api)
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	cluster, err := agent.Connect(&rest.Config{Host: served.URL})
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := netlink.Open(namespace)
	if err != nil {
		t.Fatal(err)
	}
	a := New(Options{Cluster: cluster, Kernel: kernel, Health: &agent.Health{}, Name: "node-2", Namespace: "liqo", Port: 6091, Ask: answers})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := kernel.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A node learns of a peer, is disturbed, loses sight of itself, and forgets the peer.
func TestANode(t *testing.T) {
	namespace, api := host(t), fakeapi.NewREST()
	api.Put(t, self, newNode())
	api.Put(t, fabric, newFabric(0))
	start(t, namespace, api)

	node := comesTo(t, api, networkingv1beta1.ReasonProgrammed)
	if got := fmt.Sprint(node.Status.Addresses); got != "[10.244.2.1 172.31.1.2]" || string(*node.Status.NodeIP.Remote) != "172.31.1.2" {
		t.Errorf("the status is %+v", node.Status)
	}
	const routes = "ip route show table local proto 79"
	if got := within(t, namespace, routes+" 2>&1 || true"); strings.Contains(got, "10.61.") {
		t.Errorf("routes to a fabric without MTU: %s", got)
	}
	api.Put(t, fabric, newFabric(1380))
	route := "10.61.0.0/16 via 10.244.1.200 dev cni-liqo src 10.70.255.251 onlink mtu 1380 10.70.255.254 via 10.244.1.200 dev cni-liqo src 10.70.255.251 onlink"
	routed := func() string {
		if got := strings.Join(strings.Fields(within(t, namespace, routes+" 2>/dev/null || true")), " "); got != route {
			return fmt.Sprintf("the routes are %q, want %q", got, route)
		}
		return ""
	}
	eventually(t, routed)
	if got := within(t, namespace, "ip link show dev cni-liqo"); !strings.Contains(got, "mtu 1350") {
		t.Errorf("the device is %s", got)
	}

	// What is taken away amid a pass of the agent is put back by the same one, without a word.
	eventually(t, func() string {
		var node networkingv1beta1.InternalNode
		api.Get(t, self, &node)
		if len(node.Status.Conditions) == 1 && node.Status.Conditions[0].Reason == networkingv1beta1.ReasonOverwritten {
			return ""
		}
		within(t, namespace, "ip route flush table local proto 79 2>&1 || true")
		return fmt.Sprintf("the InternalNode says %+v", node.Status)
	})
	eventually(t, routed)

	// Without its InternalNode the agent knows nothing of itself: what is there stays, whatever changes.
	// Nodes and fabrics are two watches, and either may come first: the agent has said that it knows nothing before the fabric changes.
	incomplete := func(generation int64) *networkingv1beta1.InternalNode {
		n := newNode()
		n.Generation, n.Status.NodeIP.Remote = generation, nil
		return n
	}
	api.Delete(self)
	api.Put(t, self, incomplete(2))
	comesTo(t, api, networkingv1beta1.ReasonIncomplete)
	api.Put(t, fabric, newFabric(1300))
	api.Put(t, self, incomplete(3))
	eventually(t, func() string {
		var node networkingv1beta1.InternalNode
		if api.Get(t, self, &node); len(node.Status.Conditions) == 1 && node.Status.Conditions[0].ObservedGeneration == 3 {
			return ""
		}
		return fmt.Sprintf("the InternalNode says %+v, want it of generation 3", node.Status)
	})
	if got := within(t, namespace, routes); !strings.Contains(got, "mtu 1380") {
		t.Errorf("the routes are %s", got)
	}
	api.Put(t, self, newNode())
	comesTo(t, api, networkingv1beta1.ReasonOverwritten)

	writes := api.Applied(self + "/status")
	api.Delete(fabric)
	eventually(t, func() string {
		if got := within(t, namespace, "ip link; nft list tables; ip rule; ip route show table all"); strings.Contains(got, "liqo") || strings.Contains(got, "proto 79") {
			return "left behind: " + got
		}
		return ""
	})
	if more := api.Applied(self+"/status") - writes; more > 1 {
		t.Errorf("a peer that went was told %d times", more)
	}
}

// A node tells which gateways do not answer it through the overlay, and that they do again. One that did not answer once or twice is none.
func TestANodeThatIsNotAnswered(t *testing.T) {
	namespace, api := host(t), fakeapi.NewREST()
	api.Put(t, self, newNode())
	api.Put(t, fabric, newFabric(1380))
	var silent atomic.Bool
	var asked atomic.Int32
	silent.Store(true)
	start(t, namespace, api, func(address netip.Addr) error {
		if asked.Add(1); address != netip.MustParseAddr("10.70.255.254") {
			t.Errorf("%s was asked", address)
		}
		if silent.Load() {
			return context.DeadlineExceeded
		}
		return nil
	})
	node := comesTo(t, api, networkingv1beta1.ReasonOverlaySilent)
	if c := node.Status.Conditions[0]; c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "the gateway to milan (pod 10.244.1.200): UDP 6091") {
		t.Errorf("the node says %s: %s", c.Status, c.Message)
	}
	if n := asked.Load(); n < silentAfter {
		t.Errorf("it was told after %d questions", n)
	}
	if got := strings.Join(node.Status.Silent, " "); got != "milan" {
		t.Errorf("silent are %q", got)
	}
	silent.Store(false)
	if node := comesTo(t, api, networkingv1beta1.ReasonProgrammed); len(node.Status.Silent) > 0 {
		t.Errorf("silent are %v", node.Status.Silent)
	}

	// Another pod is asked anew, and what the one before missed is none of its own.
	silent.Store(true)
	other := newFabric(1380)
	other.Spec.GatewayIP = "10.244.1.201"
	api.Put(t, fabric, other)
	if node := comesTo(t, api, networkingv1beta1.ReasonOverlaySilent); !strings.Contains(node.Status.Conditions[0].Message, "10.244.1.201") {
		t.Error(node.Status.Conditions[0].Message)
	}
	api.Delete(fabric)
	comesTo(t, api, networkingv1beta1.ReasonProgrammed)
}

// However long the API server lets what is told of the node wait: what others take away, again and again, is put back at once.
func TestANodeThatCannotTell(t *testing.T) {
	namespace, api := host(t), fakeapi.NewREST()
	api.Put(t, self, newNode())
	api.Put(t, fabric, newFabric(1380))
	asked := make(chan struct{}, 100)
	start(t, namespace, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch {
			api.ServeHTTP(w, r)
			return
		}
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body) // Only then it is noticed that who asks has gone.
		<-r.Context().Done()
	}))
	routes := func() string { return within(t, namespace, "ip route show table local proto 79") }
	eventually(t, func() string {
		if len(asked) == 0 {
			return "nothing is told"
		}
		return ""
	})
	for range 24 {
		begun := time.Now()
		within(t, namespace, "ip route flush table local proto 79")
		eventually(t, func() string {
			if routes() == "" {
				return "the routes are not there"
			}
			return ""
		})
		if took := time.Since(begun); took > 5*time.Second {
			t.Fatalf("it took %s to put back what was taken away", took)
		}
	}
}
