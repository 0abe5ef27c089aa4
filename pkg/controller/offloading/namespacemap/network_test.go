package namespacemap

import (
	"net/netip"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reaches tells whether pods of a policy may send to an address outside of the cluster, at any port.
func reaches(policy *networkingv1.NetworkPolicySpec, address string) bool {
	if policy == nil || !slices.Contains(policy.PolicyTypes, networkingv1.PolicyTypeEgress) {
		return true
	}
	to := netip.MustParseAddr(address)
	for _, rule := range policy.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock == nil || len(rule.Ports) > 0 || !netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(to) {
				continue
			}
			if !slices.ContainsFunc(peer.IPBlock.Except, func(except string) bool { return netip.MustParsePrefix(except).Contains(to) }) {
				return true
			}
		}
	}
	return false
}

// N2: whom pods of a consumer may talk with.
func TestNetworkOfTwins(t *testing.T) {
	world := []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}}
	clouds := []string{"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fe80::a9fe:a9fe"}
	for name, tc := range map[string]struct {
		network        Network
		ingress        bool
		open, shut     []string
		ownPods, every bool
	}{
		"compatible":                      {Network{BlockMetadata: true}, false, []string{"198.51.100.7", "10.0.0.1", "2001:db8::1"}, clouds, true, true},
		"hardened":                        {Network{Isolate: true, BlockMetadata: true}, true, nil, append([]string{"198.51.100.7", "10.0.0.1", "2001:db8::1"}, clouds...), true, false},
		"hardened, with all the world":    {Network{Isolate: true, BlockMetadata: true, Peers: world}, true, []string{"198.51.100.7"}, clouds, true, false},
		"isolated, with clouds' own":      {Network{Isolate: true, Peers: world}, true, clouds[:1], []string{"2001:db8::1"}, true, false},
		"nothing at all, by one's choice": {Network{}, false, append([]string{"198.51.100.7"}, clouds...), nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy := tc.network.policy("rome")
			for _, address := range tc.open {
				if !reaches(policy, address) {
					t.Errorf("%s cannot be reached", address)
				}
			}
			for _, address := range tc.shut {
				if reaches(policy, address) {
					t.Errorf("%s can be reached", address)
				}
			}
			if policy == nil {
				return
			}
			if slices.Contains(policy.PolicyTypes, networkingv1.PolicyTypeIngress) != tc.ingress {
				t.Errorf("it is about %v", policy.PolicyTypes)
			}
			own := policy.Egress[0].To[0].NamespaceSelector
			if every := len(own.MatchLabels) == 0; every != tc.every || !tc.every && own.MatchLabels["liqo.io/remote-cluster-id"] != "rome" {
				t.Errorf("the pods that are reached are in namespaces of %v", own)
			}
		})
	}
}

// The policy is there before the consumer has rights, comes back, and goes with its reason. One of somebody else is left alone.
func TestThePolicyOfATwin(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.r.Network = Network{Isolate: true, BlockMetadata: true}
	w.pass()
	live, at := &networkingv1.NetworkPolicy{}, client.ObjectKey{Namespace: "shop-rome", Name: policyName}
	if err := w.Get(t.Context(), at, live); err != nil {
		t.Fatal(err)
	}
	live.Spec.Egress = nil
	if err := w.Client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if err := w.Get(t.Context(), at, live); err != nil || len(live.Spec.Egress) == 0 {
		t.Errorf("the policy was not restored: %v, error %v", live.Spec, err)
	}
	w.r.Network = Network{}
	w.pass()
	if err := w.Get(t.Context(), at, live); err == nil {
		t.Error("the policy is there still")
	}
	foreign := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
	if err := w.Client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if err := w.Get(t.Context(), at, live); err != nil {
		t.Errorf("a policy of somebody else is gone: %v", err)
	}
	w.r.Network = Network{Isolate: true}
	w.pass()
	if got := w.answers()["shop"]; got != "shop-rome CreationLoopBackOff NamespaceConflict" {
		t.Errorf("with a policy of somebody else in the way the answer is %q", got)
	}
}
