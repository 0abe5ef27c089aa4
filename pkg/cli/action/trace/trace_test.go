package trace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/trace"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/target"
)

// cluster has one node, one pod, and a gateway to a peer with the same ranges, which it sees as those that are given.
func cluster(t *testing.T, id, peer, pods, external string, server bool) *fixture.Cluster {
	t.Helper()
	named := metav1.ObjectMeta{Namespace: "liqo-tenant-" + peer, Name: peer, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}}
	config := func(pod, external string) networkingv1beta1.ClusterConfig {
		return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
			Pod: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(pod)}, External: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(external)}}}
	}
	own := config("10.244.0.0/16", "10.70.0.0/16")
	inside := &networkingv1beta1.InternalGatewayEndpoint{IP: ptr.To(networkingv1beta1.IP("10.244.1.200")), Node: ptr.To("node-1")}
	node := &networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	node.Spec.Interface.Node.IP = "10.70.255.254"
	node.Status.NodeIP.Remote, node.Status.PodRanges = ptr.To(networkingv1beta1.IP("172.31.1.1")), []networkingv1beta1.CIDR{"10.244.1.0/24"}
	// The Configuration has a name of its own, and a later one changes nothing.
	older, later := named, named
	older.Name, later.CreationTimestamp = peer+"-net", metav1.NewTime(time.Unix(1e9, 0))
	objects := []client.Object{
		node,
		&networkingv1beta1.Configuration{ObjectMeta: later, Status: networkingv1beta1.ConfigurationStatus{Remote: ptr.To(config("10.99.0.0/16", "10.98.0.0/16"))}},
		&networkingv1beta1.Configuration{ObjectMeta: older, Spec: networkingv1beta1.ConfigurationSpec{Local: &own, Remote: own},
			Status: networkingv1beta1.ConfigurationStatus{Remote: ptr.To(config(pods, external)), Isolation: "open"}},
		&networkingv1beta1.InternalFabric{ObjectMeta: named, Spec: networkingv1beta1.InternalFabricSpec{
			MTU: 1440, GatewayIP: "10.244.1.200", RemoteCIDRs: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(pods), networkingv1beta1.CIDR(external)},
			Interface: networkingv1beta1.InternalFabricSpecInterface{Gateway: networkingv1beta1.InternalFabricSpecInterfaceGateway{IP: "10.70.255.253"}}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "here"}, Status: corev1.PodStatus{PodIP: "10.244.1.2"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "there"}, Status: corev1.PodStatus{PodIP: "10.61.1.2"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "young"}},
	}
	if server {
		objects = append(objects, &networkingv1beta1.GatewayServer{ObjectMeta: named, Status: networkingv1beta1.GatewayServerStatus{InternalEndpoint: inside}})
	} else {
		objects = append(objects, &networkingv1beta1.GatewayClient{ObjectMeta: named, Status: networkingv1beta1.GatewayClientStatus{InternalEndpoint: inside}})
	}
	return fixture.New(t, fixture.Options{Name: id, ClusterID: id, Objects: objects})
}

func TestTrace(t *testing.T) {
	rome := cluster(t, "rome", "milan", "10.61.0.0/16", "10.71.0.0/16", false).Cluster
	milan := cluster(t, "milan", "rome", "10.62.0.0/16", "10.72.0.0/16", true).Cluster
	for name, tc := range map[string]struct {
		remote                        *target.Cluster
		source, destination, protocol string
		// want are words of the answer: of the report, or of the error.
		want string
	}{
		"a pod to an offloaded pod": {milan, "shop/here", "shop/there:80", "tcp", "true true milan pod 10.244.1.2"},
		"a node to an address":      {milan, "node-1", "10.61.1.2", "icmp", "true true milan pod 10.244.1.2"},
		"without the other cluster": {nil, "shop/here", "10.61.1.2:80", "udp", "false false rome gateway to milan --remote-kubeconfig"},
		"a packet too large":        {milan, "node-1", "10.61.1.2", "icmp", "false false too long network test"},
		"a pod that there is not":   {nil, "shop/none", "10.61.1.2:80", "tcp", "there is no pod shop/none in rome"},
		"a pod without an address":  {nil, "shop/young", "10.61.1.2:80", "tcp", "pod shop/young has no address yet"},
		"no port":                   {nil, "shop/here", "10.61.1.2", "tcp", "needs a port"},
		"no destination":            {nil, "shop/here", "web:80", "tcp", `"web" is neither an address nor a pod`},
		"no protocol":               {nil, "shop/here", "10.61.1.2:80", "sctp", `unknown protocol "sctp"`},
		"no source":                 {nil, "node-7", "10.61.1.2:80", "tcp", `"node-7" is neither an address nor a node of cluster rome`},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := trace.Trace(t.Context(), trace.Options{
				Local: rome, Remote: tc.remote, Source: tc.source, Destination: tc.destination, Protocol: tc.protocol, Size: map[bool]int{true: 1500, false: 84}[strings.HasSuffix(tc.want, "network test")]})
			got := fmt.Sprint(err)
			if err != nil {
				if _, next := failure.NextOf(err); next == "" {
					t.Errorf("no way out of: %v", err)
				}
			} else if !report.Answered && report.Hint == "" {
				t.Error("no way out of a packet that is lost")
			}
			if err == nil {
				got = fmt.Sprintln(report.Arrives, report.Answered, report.There[len(report.There)-1], report.Hint)
			}
			for _, word := range strings.Split(tc.want, " ") {
				if !strings.Contains(got, word) {
					t.Fatalf("got %s, want %s", got, tc.want)
				}
			}
		})
	}
}
