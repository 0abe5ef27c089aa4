package reflection

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// withTwins adds what is known beside a policy: shop and db are offloaded, the provider's pods in 10.244.0.0/16 are seen as 10.61.0.0/16, and how it
// sees 10.100.0.0/16 is not known.
func withTwins(in *Input) {
	in.Twins = map[string]map[string]string{
		"shop-rome": {"kubernetes.io/metadata.name": "shop", "team": "a"},
		"db-rome":   {"kubernetes.io/metadata.name": "db", "team": "b"},
	}
	in.Provider.Ranges = ranges{seen: netip.MustParsePrefix("10.61.0.0/16"), own: netip.MustParsePrefix("10.100.0.0/16")}
}

// ranges sees those of a provider in 10.244.0.0/16.
type ranges struct{ seen, own netip.Prefix }

func (k ranges) Range(r netip.Prefix) (netip.Prefix, bool) {
	if k.seen.Contains(r.Addr()) && k.seen.Bits() <= r.Bits() {
		bytes := r.Addr().As4()
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, bytes[2], bytes[3]}), r.Bits()), true
	}
	return r, !k.own.Overlaps(r) || r.Bits() == 0
}

// networkPolicyWith is a policy for pods app=web with the given rules, which are YAML.
func networkPolicyWith(t *testing.T, rules string) *networkingv1.NetworkPolicy {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u-1"}}
	text := "{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress, Egress], " + rules + "}"
	if err := yaml.UnmarshalStrict([]byte(text), &policy.Spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return policy
}

// TestNetworkPolicyNeverAllowsMore holds that what has no counterpart at the provider takes its peer away, and with the last peer its rule.
func TestNetworkPolicyNeverAllowsMore(t *testing.T) {
	const note = "what has no counterpart there is not allowed: "
	for name, tc := range map[string]struct{ local, remote, note string }{
		"nothing is allowed":      {"", "", ""},
		"everybody is allowed":    {"ingress: [{}]", "ingress: [{}]", ""},
		"pods of the namespace":   {"ingress: [{from: [{podSelector: {}}]}]", "ingress: [{from: [{podSelector: {}}]}]", ""},
		"a label that Liqo gives": {"ingress: [{from: [{podSelector: {matchLabels: {a: b, liqo.io/shadowPod: 'true'}}}]}]", "ingress: [{from: [{podSelector: {matchLabels: {a: b}}}]}]", ""},
		"pods at home alone":      {"ingress: [{from: [{podSelector: {matchExpressions: [{key: liqo.io/shadowPod, operator: DoesNotExist}]}}]}]", "", note + "ingress[0].from[0]"},
		"all namespaces are all twins, and never all of the provider": {"ingress: [{from: [{namespaceSelector: {}}]}]",
			"ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [db-rome, shop-rome]}]}}]}]", ""},
		"a namespace by its name": {"egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: db}}, podSelector: {matchLabels: {a: b}}}]}]",
			"egress: [{to: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [db-rome]}]}, podSelector: {matchLabels: {a: b}}}]}]", ""},
		"namespaces by another label": {"ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [b]}]}}]}]",
			"ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [shop-rome]}]}}]}]", ""},
		"one of two peers is not offloaded": {"ingress: [{from: [{podSelector: {}}, {namespaceSelector: {matchLabels: {team: c}}}], ports: [{port: 80}]}]",
			"ingress: [{from: [{podSelector: {}}], ports: [{port: 80}]}]", note + "ingress[0].from[1]"},
		"no peer of a rule is offloaded": {"ingress: [{from: [{namespaceSelector: {matchLabels: {team: c}}, podSelector: {}}]}, {from: [{podSelector: {}}]}]",
			"ingress: [{from: [{podSelector: {}}]}]", note + "ingress[0].from[0]"},
		"no peer of the only rule is offloaded": {"egress: [{to: [{namespaceSelector: {matchLabels: {team: c}}}]}]", "", note + "egress[0].to[0]"},
		"a selector that is none":               {"ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: Near}]}}]}]", "", note + "ingress[0].from[0]"},
		"a peer of a sort that is not known":    {"ingress: [{from: [{}]}]", "", note + "ingress[0].from[0]"},
		"everywhere":                            {"egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]", "egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]", ""},
		"a range elsewhere":                     {"egress: [{to: [{ipBlock: {cidr: 203.0.113.0/24, except: [203.0.113.7/32]}}]}]", "egress: [{to: [{ipBlock: {cidr: 203.0.113.0/24, except: [203.0.113.7/32]}}]}]", ""},
		"the provider's pods":                   {"egress: [{to: [{ipBlock: {cidr: 10.61.0.0/16, except: [10.61.2.0/24]}}]}]", "egress: [{to: [{ipBlock: {cidr: 10.244.0.0/16, except: [10.244.2.0/24]}}]}]", ""},
		"a range that is not known there":       {"egress: [{to: [{ipBlock: {cidr: 10.100.2.0/24}}]}]", "", note + "egress[0].to[0]"},
		"all but what is not known there":       {"egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.100.2.0/24]}}]}]", "", note + "egress[0].to[0]"},
		"all but what is elsewhere there": {"egress: [{to: [{ipBlock: {cidr: 10.60.0.0/15, except: [10.61.0.0/16]}}]}]",
			"egress: [{to: [{ipBlock: {cidr: 10.60.0.0/15}}]}]", ""},
		"what is no range": {"egress: [{to: [{ipBlock: {cidr: 10.0.0}}]}]", "", note + "egress[0].to[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(networkPolicyWith(t, tc.local))
			withTwins(&in)
			got := translateNetworkPolicy(in).Apply.(*networkingv1.NetworkPolicy)
			if diff := cmp.Diff(networkPolicyWith(t, tc.remote).Spec, got.Spec, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if left := networkPolicyLacks(nil, got); left != tc.note {
				t.Errorf("the user is told %q, want %q", left, tc.note)
			}
		})
	}
}

// TestNetworkPolicyWithoutEgress holds what is given up where the provider takes no egress, and that nothing else is.
func TestNetworkPolicyWithoutEgress(t *testing.T) {
	refusal := egressNotAllowed + "consumers' policies are about ingress alone here"
	for name, tc := range map[string]struct {
		types          []networkingv1.PolicyType
		refusal, given string
	}{
		"of both":        {[]networkingv1.PolicyType{"Ingress", "Egress"}, refusal, egressStays},
		"of egress":      {[]networkingv1.PolicyType{"Egress"}, refusal, ""},
		"another reason": {[]networkingv1.PolicyType{"Ingress", "Egress"}, "exceeded quota", ""},
	} {
		t.Run(name, func(t *testing.T) {
			local := networkPolicyWith(t, "ingress: [{from: [{namespaceSelector: {matchLabels: {team: c}}}]}], egress: [{}]")
			local.Spec.PolicyTypes = tc.types
			in := input(local)
			withTwins(&in)
			relaxed, given := relaxNetworkPolicy(translateNetworkPolicy(in).Apply, tc.refusal)
			if tc.given == "" {
				if relaxed != nil {
					t.Fatalf("it crosses without %s", given)
				}
				return
			}
			spec := relaxed.(*networkingv1.NetworkPolicy).Spec
			if len(spec.Egress) > 0 || len(spec.PolicyTypes) != 1 || spec.PolicyTypes[0] != networkingv1.PolicyTypeIngress {
				t.Errorf("it crosses as %+v", spec)
			}
			if !strings.Contains(given, "ingress[0].from[0]") || !strings.HasSuffix(given, tc.given) {
				t.Errorf("given up is %q", given)
			}
			if again := networkPolicyLacks(nil, WithoutPart(relaxed, given)); again != "" {
				t.Errorf("it is told once more: %s", again)
			}
		})
	}
}
