package fabric

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

func prefixesOf(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

type cidrs = []networkingv1beta1.CIDR

func TestObserve(t *testing.T) {
	type want struct {
		Address networkingv1beta1.IP
		Ranges  cidrs
		Reason  string
	}
	addresses := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "a1"}, {Type: corev1.NodeInternalIP, Address: "172.31.1.1"}, {Type: corev1.NodeInternalIP, Address: "fd00::1"}}
	backwards := slices.Clone(addresses)
	slices.Reverse(backwards)
	for name, tc := range map[string]struct {
		before networkingv1beta1.InternalNodeStatus
		node   corev1.Node
		strays []netip.Prefix
		want   want
	}{
		"a node": {
			node: corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.1.0/24", "fd00:1::/64"}}, Status: corev1.NodeStatus{Addresses: addresses}},
			want: want{"172.31.1.1", cidrs{"10.244.1.0/24"}, "NodeRangesRead"},
		},
		"that names IPv6 first": {
			node: corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: []string{"fd00:1::/64", "10.244.1.0/24"}}, Status: corev1.NodeStatus{Addresses: backwards}},
			want: want{"172.31.1.1", cidrs{"10.244.1.0/24"}, "NodeRangesRead"},
		},
		"of IPv6 alone": {
			node: corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "fd00:1::/64"}, Status: corev1.NodeStatus{Addresses: addresses[2:]}},
			want: want{"fd00::1", nil, "PodsRead"},
		},
		"of one family": {
			node: corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24"}, Status: corev1.NodeStatus{Addresses: addresses}},
			want: want{"172.31.1.1", cidrs{"10.244.1.0/24"}, "NodeRangesRead"},
		},
		"without ranges": {
			node: corev1.Node{Status: corev1.NodeStatus{Addresses: addresses}}, want: want{"172.31.1.1", nil, "PodsRead"},
		},
		"with pods outside its ranges": {
			node:   corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24"}, Status: corev1.NodeStatus{Addresses: addresses}},
			strays: prefixesOf("10.244.2.1/32", "10.244.3.0/31"),
			want:   want{"172.31.1.1", cidrs{"10.244.1.0/24", "10.244.3.0/31", "10.244.2.1/32"}, "PodsRead"},
		},
		"an address that is not known any more stays, a pod that is gone does not": {
			before: networkingv1beta1.InternalNodeStatus{NodeIP: networkingv1beta1.InternalNodeStatusNodeIP{Remote: new(networkingv1beta1.IP)}, PodRanges: cidrs{"10.244.7.7/32"}},
			want:   want{"", nil, "PodsRead"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := tc.before
			observe(&status, &tc.node, tc.strays, 1)
			got := want{Ranges: status.PodRanges, Reason: meta.FindStatusCondition(status.Conditions, "PodRangesKnown").Reason}
			if status.NodeIP.Remote != nil {
				got.Address = *status.NodeIP.Remote
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	configured := &networkingv1beta1.Configuration{Status: networkingv1beta1.ConfigurationStatus{Remote: &networkingv1beta1.ClusterConfig{
		CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: cidrs{"10.61.0.0/16"}, External: cidrs{"10.71.0.0/16"}}}}}
	connected := &networkingv1beta1.Connection{Status: networkingv1beta1.ConnectionStatus{MTU: 1390}}
	takenBack := &networkingv1beta1.Connection{Status: networkingv1beta1.ConnectionStatus{Value: networkingv1beta1.ConnectionError, MTU: 1390,
		Conditions: []metav1.Condition{{Type: corev1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: networkingv1beta1.ReasonGatewayPodPending}}}}
	silent := takenBack.DeepCopy()
	silent.Status.Conditions[0].Status, silent.Status.Conditions[0].Reason = metav1.ConditionFalse, networkingv1beta1.ReasonNoHandshake
	keyless, incomplete := silent.DeepCopy(), silent.DeepCopy()
	keyless.Status.Conditions[0].Reason, incomplete.Status.Conditions[0].Reason = networkingv1beta1.ReasonKeyMissing, networkingv1beta1.ReasonIncomplete
	robbed := keyless.DeepCopy()
	robbed.Status.Value = networkingv1beta1.Connected
	lost := networkingv1beta1.InternalFabricSpec{GatewayIP: "0.0.0.0", RemoteCIDRs: cidrs{"10.61.0.0/16", "10.71.0.0/16"}, MTU: 1390}
	whole := networkingv1beta1.InternalFabricSpec{GatewayIP: "10.244.1.200", RemoteCIDRs: cidrs{"10.61.0.0/16", "10.71.0.0/16"}, MTU: 1390}
	waits := *whole.DeepCopy()
	waits.Waiting = true
	seen := func(address networkingv1beta1.IP, configuration *networkingv1beta1.Configuration, connection *networkingv1beta1.Connection) gateway {
		return gateway{address: address, configuration: configuration, connection: connection}
	}
	for name, tc := range map[string]struct {
		found  gateway
		before networkingv1beta1.InternalFabricSpec
		want   networkingv1beta1.InternalFabricSpec
		usable bool
	}{
		"all is known":                      {found: seen("10.244.1.200", configured, connected), want: whole, usable: true},
		"the MTU may follow":                {found: seen("10.244.1.200", configured, nil), want: networkingv1beta1.InternalFabricSpec{GatewayIP: "10.244.1.200", RemoteCIDRs: whole.RemoteCIDRs}, usable: true},
		"the ranges may not":                {found: seen("10.244.1.200", &networkingv1beta1.Configuration{}, connected), want: networkingv1beta1.InternalFabricSpec{GatewayIP: "10.244.1.200", MTU: 1390}},
		"nor may the address":               {found: seen("", configured, connected), want: networkingv1beta1.InternalFabricSpec{RemoteCIDRs: whole.RemoteCIDRs, MTU: 1390}},
		"what is not known any more stays":  {found: seen("", nil, &networkingv1beta1.Connection{}), before: whole, want: whole, usable: true},
		"the gateway's pod has moved":       {found: seen("10.244.2.3", configured, connected), before: whole, want: networkingv1beta1.InternalFabricSpec{GatewayIP: "10.244.2.3", RemoteCIDRs: whole.RemoteCIDRs, MTU: 1390}, usable: true},
		"nothing was known, and nothing is": {found: gateway{}},
		// The CNI may have given the address to anybody's next pod.
		"its pod is lost, and its status names none":    {found: seen("", configured, takenBack), before: whole, want: lost, usable: true},
		"its pod is lost, and its status names it yet":  {found: seen("10.244.1.200", configured, takenBack), before: whole, want: lost, usable: true},
		"it is lost before nodes knew it":               {found: seen("10.244.1.200", configured, takenBack), want: lost, usable: true},
		"another pod has spoken":                        {found: seen("10.244.1.200", configured, connected), before: lost, want: whole, usable: true},
		"another pod has spoken, but has no answer yet": {found: seen("10.244.1.200", configured, silent), before: lost, want: whole, usable: true},
		// It answers no node, and nothing is wrong with the way to it.
		"it waits for the key of its peer":          {found: seen("10.244.1.200", configured, keyless), want: waits, usable: true},
		"its peer's key went, its tunnel is up":     {found: seen("10.244.1.200", configured, robbed), want: whole, usable: true},
		"it waits for something else":               {found: seen("10.244.1.200", configured, incomplete), before: whole, want: waits, usable: true},
		"it has the key, and no answer yet":         {found: seen("10.244.1.200", configured, silent), before: waits, want: whole, usable: true},
		"nobody says whether it has what it needed": {found: seen("10.244.1.200", configured, nil), before: waits, want: waits, usable: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before
			if usable := tc.found.describe(&got); usable != tc.usable {
				t.Errorf("usable is %v", usable)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The address of a gateway's pod is what the kubelet of its node says. It takes neither the address of another gateway nor that of a pod elsewhere.
func TestWhoseTheAddressOfAGatewayIs(t *testing.T) {
	fabric := func(name string, made int64, address networkingv1beta1.IP) networkingv1beta1.InternalFabric {
		return networkingv1beta1.InternalFabric{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + name, Name: name, CreationTimestamp: metav1.Unix(made, 0)},
			Spec: networkingv1beta1.InternalFabricSpec{GatewayIP: address}}
	}
	node := func(name string, ranges ...networkingv1beta1.CIDR) networkingv1beta1.InternalNode {
		return networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: networkingv1beta1.InternalNodeStatus{PodRanges: ranges}}
	}
	nodes := []networkingv1beta1.InternalNode{node("a1", "10.244.1.0/24", "10.244.2.7/32"), node("a2", "10.244.2.0/24"), node("a3"), node("a4", "10.244.1.0/24")}
	for name, tc := range map[string]struct {
		self    networkingv1beta1.InternalFabric
		others  []networkingv1beta1.InternalFabric
		address networkingv1beta1.IP
		host    string
		taken   bool
	}{
		"its node has it":                  {self: fabric("turin", 9, ""), address: "10.244.1.200", host: "a1"},
		"it moved to another node":         {self: fabric("turin", 9, "10.244.1.200"), address: "10.244.2.9", host: "a2"},
		"one pod of another node's range":  {self: fabric("turin", 9, ""), address: "10.244.2.7", host: "a1"},
		"nobody is known to have it":       {self: fabric("turin", 9, ""), address: "10.9.0.1", host: "a3"},
		"two nodes have its range":         {self: fabric("turin", 9, ""), address: "10.244.1.200", host: "a4"},
		"its node is not known":            {self: fabric("turin", 9, ""), address: "10.244.1.200"},
		"that of another gateway":          {self: fabric("turin", 9, ""), others: []networkingv1beta1.InternalFabric{fabric("milan", 5, "10.244.1.200")}, address: "10.244.1.200", host: "a1", taken: true},
		"that of a younger gateway":        {self: fabric("turin", 1, "10.244.1.201"), others: []networkingv1beta1.InternalFabric{fabric("milan", 5, "10.244.1.200")}, address: "10.244.1.200", host: "a1", taken: true},
		"both have it, it is the younger":  {self: fabric("turin", 9, "10.244.1.200"), others: []networkingv1beta1.InternalFabric{fabric("milan", 5, "10.244.1.200")}, address: "10.244.1.200", host: "a1", taken: true},
		"both have it, it is the elder":    {self: fabric("turin", 1, "10.244.1.200"), others: []networkingv1beta1.InternalFabric{fabric("milan", 5, "10.244.1.200")}, address: "10.244.1.200", host: "a1"},
		"that of a pod elsewhere":          {self: fabric("turin", 9, "10.244.1.200"), address: "10.244.2.9", host: "a1", taken: true},
		"one pod elsewhere, in its range":  {self: fabric("turin", 9, ""), address: "10.244.2.7", host: "a2", taken: true},
		"it has what is elsewhere by now":  {self: fabric("turin", 9, "10.244.2.9"), address: "10.244.2.9", host: "a1"},
		"other gateways without a pod too": {self: fabric("turin", 9, "0.0.0.0"), others: []networkingv1beta1.InternalFabric{fabric("milan", 5, "0.0.0.0")}, address: "10.244.1.200", host: "a1"},
	} {
		t.Run(name, func(t *testing.T) {
			found := gateway{address: tc.address, host: tc.host}
			found.taken = found.whyTaken(&tc.self, append(tc.others, tc.self), nodes)
			if (found.taken != "") != tc.taken {
				t.Errorf("taken: %q", found.taken)
			}
			if found.describe(&tc.self.Spec); (tc.self.Spec.GatewayIP == tc.address) == tc.taken {
				t.Errorf("nodes know it by %s", tc.self.Spec.GatewayIP)
			}
		})
	}
}
