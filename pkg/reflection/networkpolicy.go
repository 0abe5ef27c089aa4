package reflection

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// networkPolicyKind has no workers by default: a provider has to let its consumers have policies first.
func networkPolicyKind() Kind {
	return Kind{
		Name:          "networkpolicy",
		GVR:           networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
		GVK:           networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		DefaultPolicy: offloadingv1beta1.DenyList,
		SelectsTwins:  true,
		NewObject:     func() Object { return &networkingv1.NetworkPolicy{} },
		NewList:       func() ObjectList { return &networkingv1.NetworkPolicyList{} },
		Translate:     translateNetworkPolicy,
		Changes:       networkPolicyChanges,
		Relax:         relaxNetworkPolicy,
		Lacks:         networkPolicyLacks,
	}
}

// translateNetworkPolicy leaves out what has no counterpart at the provider. Rules allow, so a policy is stricter without.
func translateNetworkPolicy(in Input) Result {
	local := in.Local.(*networkingv1.NetworkPolicy)
	if skip := whyNeverReflected(in); skip != nil {
		return Result{Skip: skip}
	}
	if skip := WhyNotReflected(in, offloadingv1beta1.DenyList); skip != nil {
		return Result{Skip: skip}
	}
	if selectsHomeAlone(&local.Spec.PodSelector) {
		return Result{Skip: &Skip{Reason: offloadingv1beta1.ReasonNotReflectable, Message: "it selects pods by a label of Liqo that those at a provider have"}}
	}
	wanted := &networkingv1.NetworkPolicy{ObjectMeta: remoteMeta(in, local.Name)}
	wanted.Spec.PodSelector, wanted.Spec.PolicyTypes = *withoutOurLabels(&local.Spec.PodSelector), local.Spec.PolicyTypes
	var left []string
	for i, rule := range local.Spec.Ingress {
		if from, lost := remotePeers(in, rule.From, fmt.Sprintf("ingress[%d].from", i), &left); !lost {
			wanted.Spec.Ingress = append(wanted.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{Ports: rule.Ports, From: from})
		}
	}
	for i, rule := range local.Spec.Egress {
		if to, lost := remotePeers(in, rule.To, fmt.Sprintf("egress[%d].to", i), &left); !lost {
			wanted.Spec.Egress = append(wanted.Spec.Egress, networkingv1.NetworkPolicyEgressRule{Ports: rule.Ports, To: to})
		}
	}
	noted := Object(wanted)
	if len(left) > 0 {
		noted = WithoutPart(wanted, "what has no counterpart there is not allowed: "+NoteFor(left))
	}
	if skip := tooLarge(noted, 0); skip != nil {
		return Result{Skip: skip}
	}
	return Result{Apply: noted}
}

// remotePeers are the peers of a rule that have a counterpart at the provider; the others are left. A rule that is lost had peers, and has none any
// more: without any it would allow everybody.
func remotePeers(in Input, peers []networkingv1.NetworkPolicyPeer, path string, left *[]string) (there []networkingv1.NetworkPolicyPeer, lost bool) {
	for i, peer := range peers {
		remote := networkingv1.NetworkPolicyPeer{
			PodSelector:       withoutOurLabels(peer.PodSelector),
			NamespaceSelector: remoteNamespaces(in, peer.NamespaceSelector),
			IPBlock:           remoteBlock(in, peer.IPBlock),
		}
		known := (peer.PodSelector != nil || peer.NamespaceSelector != nil || peer.IPBlock != nil) && !selectsHomeAlone(peer.PodSelector)
		if !known || (peer.NamespaceSelector != nil) != (remote.NamespaceSelector != nil) || (peer.IPBlock != nil) != (remote.IPBlock != nil) {
			*left = append(*left, fmt.Sprintf("%s[%d]", path, i))
			continue
		}
		there = append(there, remote)
	}
	return there, len(there) == 0 && len(peers) > 0
}

// selectsHomeAlone tells whether a selector keeps out pods with labels that Liqo gives: those of a twin are such pods.
func selectsHomeAlone(selector *metav1.LabelSelector) bool {
	return selector != nil && slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return isOurLabel(e.Key) && (e.Operator == metav1.LabelSelectorOpDoesNotExist || e.Operator == metav1.LabelSelectorOpNotIn)
	})
}

// remoteNamespaces selects, by their names, the twins of the namespaces that a selector selects at home; nil if there are none.
func remoteNamespaces(in Input, local *metav1.LabelSelector) *metav1.LabelSelector {
	selector, err := metav1.LabelSelectorAsSelector(local) // That of nil selects nothing.
	if err != nil {
		return nil
	}
	var names []string
	for twin, of := range in.Twins {
		if selector.Matches(labels.Set(of)) {
			names = append(names, twin)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names}}}
}

// remoteBlock is a range as the provider knows it; nil if it, or one that is taken out of it, is not known there. What is taken out and lies
// outside of it there takes nothing out.
func remoteBlock(in Input, local *networkingv1.IPBlock) *networkingv1.IPBlock {
	if local == nil || in.Provider.Ranges == nil {
		return local
	}
	var ranges []netip.Prefix
	for _, text := range append([]string{local.CIDR}, local.Except...) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil
		}
		there, known := in.Provider.Ranges.Range(prefix)
		if !known {
			return nil
		}
		ranges = append(ranges, there)
	}
	block := &networkingv1.IPBlock{CIDR: ranges[0].String()}
	for _, out := range ranges[1:] {
		if ranges[0].Bits() < out.Bits() && ranges[0].Contains(out.Addr()) {
			block.Except = append(block.Except, out.String())
		}
	}
	return block
}

func networkPolicyChanges(liveObject, wantedObject Object) []Change {
	live, readable := liveObject.(*networkingv1.NetworkPolicy)
	if spec := wantedObject.(*networkingv1.NetworkPolicy).Spec; !readable || !apiequality.Semantic.DeepEqual(live.Spec, spec) {
		return []Change{{Path: []string{"spec"}, Value: spec}}
	}
	return nil
}

const (
	// egressNotAllowed begins the refusal, by admission policy liqo-consumer-networkpolicies, of what is about egress.
	egressNotAllowed = "EgressPolicyNotAllowed: "
	egressStays      = "it says nothing there of what pods may send"
)

// relaxNetworkPolicy has a policy cross without its egress where the provider takes none, if it is about ingress, too.
func relaxNetworkPolicy(wantedObject Object, refusal string) (relaxed Object, given string) {
	relaxed, given = relaxKeys(wantedObject, refusal)
	if wanted := wantedObject.(*networkingv1.NetworkPolicy); strings.Contains(refusal, egressNotAllowed) &&
		slices.Contains(wanted.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
		if given += ", " + egressStays; relaxed == nil {
			relaxed, given = wanted.DeepCopy(), egressStays
		}
		spec := &relaxed.(*networkingv1.NetworkPolicy).Spec
		spec.Egress, spec.PolicyTypes = nil, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	}
	if left := RefusedPartOf(wantedObject); relaxed != nil && left != "" {
		given = left + ", " + given
	}
	return relaxed, given
}

// networkPolicyLacks tells what was left out, unless a refusal told it already.
func networkPolicyLacks(_, made Object) string {
	if note := RefusedPartOf(made); !strings.Contains(note, egressStays) {
		return note
	}
	return ""
}
