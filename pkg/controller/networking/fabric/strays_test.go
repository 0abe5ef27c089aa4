package fabric

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/podaddress"
)

func machineOf(name string, ranges ...string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: ranges}}
}

func podOn(node, name, address string, started int64) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: address}}},
	}
	if started > 0 {
		pod.Status.StartTime = &metav1.Time{Time: time.Unix(started, 0)}
	}
	return pod
}

func nodesOf(objects ...client.Object) *nodes {
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...)
	for field, values := range podaddress.Indexes() {
		b = b.WithIndex(&corev1.Pod{}, field, values)
	}
	store := b.Build()
	return &nodes{client: store, pods: store, cluster: prefixesOf("10.244.0.0/16")}
}

func TestStrays(t *testing.T) {
	virtual := machineOf("milan")
	virtual.Labels = map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}
	host, over := podOn("a", "host", "10.244.9.1", 1), podOn("a", "over", "10.244.9.2", 1)
	host.Spec.HostNetwork, over.Status.Phase = true, corev1.PodFailed
	r := nodesOf(machineOf("a", "10.244.1.0/24"), machineOf("b", "10.244.2.0/31"), virtual, host, over,
		podOn("a", "inside", "10.244.1.7", 1), podOn("a", "foreign", "192.168.1.1", 1),
		podOn("a", "one", "10.244.3.2", 1), podOn("a", "two", "10.244.3.3", 1),
		podOn("a", "whole", "10.244.2.0", 1), podOn("a", "range", "10.244.2.1", 1),
		podOn("a", "old", "10.244.4.1", 1), podOn("b", "new", "10.244.4.1", 2),
		podOn("a", "real", "10.244.5.1", 1), podOn("milan", "remote", "10.244.5.1", 2),
		podOn("b", "gone", "10.244.1.9", 1), podOn("a", "reused", "10.244.1.9", 2),
		podOn("a", "honest", "10.244.1.8", 1), podOn("b", "liar", "10.244.1.8", 9),
		podOn("a", "timeless", "10.244.6.1", 0), podOn("b", "timed", "10.244.6.1", 1))
	for node, want := range map[*corev1.Node][]netip.Prefix{
		machineOf("a", "10.244.1.0/24"): prefixesOf("10.244.2.0/32", "10.244.2.1/32", "10.244.3.2/31", "10.244.5.1/32"),
		machineOf("b", "10.244.2.0/31"): prefixesOf("10.244.4.1/32", "10.244.6.1/32"),
	} {
		got, err := r.strays(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("node %s (-want +got)\n%s", node.Name, diff)
		}
	}
	for name, want := range map[string][]string{"inside": nil, "foreign": nil, "one": {"a"}, "old": {"a", "b"}, "reused": {"b"}, "remote": {"a"}} {
		pod := &corev1.Pod{}
		if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, pod); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.concerned(t.Context(), pod)); diff != "" {
			t.Errorf("nodes that pod %s concerns (-want +got)\n%s", name, diff)
		}
	}
}

// TestEveryPodIsFoundAtItsNode tries random pods on nodes whose ranges the CNI does not mind.
func TestEveryPodIsFoundAtItsNode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The same worlds each time.
	ranges := map[string][]netip.Prefix{"a": prefixesOf("10.244.0.0/28"), "b": prefixesOf("10.244.0.16/28"), "c": nil}
	taken := map[netip.Prefix]bool{ranges["a"][0]: true, ranges["b"][0]: true}
	names := []string{"a", "b", "c"}
	for world := range 200 {
		at, outside := map[netip.Addr]string{}, map[string][]netip.Addr{}
		usual := names[random.IntN(3)]
		for i := range 64 {
			node := usual
			if random.IntN(8) == 0 {
				node = names[random.IntN(3)]
			}
			address := netip.AddrFrom4([4]byte{10, 244, 0, byte(i)})
			at[address] = node
			if len(ranges[node]) == 0 || !ranges[node][0].Contains(address) {
				outside[node] = append(outside[node], address)
			}
		}
		named := map[netip.Prefix]string{}
		for _, node := range names {
			for _, prefix := range append(merge(outside[node], taken), ranges[node]...) {
				if other := named[prefix]; other != "" {
					t.Fatalf("world %d: %s is named by %s and %s", world, prefix, other, node)
				}
				named[prefix] = node
			}
		}
		for address, node := range at {
			best, found := netip.Prefix{}, ""
			for prefix, of := range named {
				if prefix.Contains(address) && (found == "" || prefix.Bits() > best.Bits()) {
					best, found = prefix, of
				}
			}
			if found != node {
				t.Fatalf("world %d: %s is sent to node %s, not %s", world, address, fmt.Sprint(found, " by ", best), node)
			}
		}
	}
}
