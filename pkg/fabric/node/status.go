package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/netlink"
)

const (
	// owner is the field manager of what the agent writes.
	owner = "liqo-fabric"
	// maxAddresses is how many an InternalNode tells, and how many networks.
	maxAddresses = 64
	// maxSilent is how many gateways are named that do not answer.
	maxSilent = 5
	// maxSilentPeers is how many peers an InternalNode lists whose gateways do not answer.
	maxSilentPeers = 64
	// quarrel is for how long it is told that somebody else changed what is ours.
	quarrel = 10 * time.Minute
	// shown is how many of these changes are told, longest how many characters of each.
	shown   = 3
	longest = 200
)

// addressOf is the address of a node's own; none if it is not known.
func addressOf(self *networkingv1beta1.InternalNode) netip.Addr {
	if self == nil || self.Status.NodeIP.Remote == nil {
		return netip.Addr{}
	}
	address, _ := self.Status.NodeIP.Remote.Addr()
	return address
}

// networkMTU is that of the device with the node's own address. Where that device leads nowhere (routers have their address on the loopback
// device), it is the smallest of those that do. 0 if it is not known.
func networkMTU(all []netlink.HostAddress, own netip.Addr) int {
	smallest := 0
	for _, a := range all {
		switch {
		case !a.Leads:
		case a.Address == own:
			return a.MTU
		case smallest == 0 || a.MTU < smallest:
			smallest = a.MTU
		}
	}
	if !slices.ContainsFunc(all, func(a netlink.HostAddress) bool { return a.Address == own }) {
		return 0
	}
	return smallest
}

// sources are the addresses that a node may send from, in order: its own, and those of the devices that lead somewhere.
func sources(from []netlink.HostAddress, own netip.Addr) []networkingv1beta1.IP {
	var all []netip.Addr
	for _, a := range from {
		if a.Address == own || a.Leads && a.Address.IsGlobalUnicast() {
			all = append(all, a.Address)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	all = slices.Compact(all)
	if i := slices.Index(all, own); i >= maxAddresses {
		all[maxAddresses-1] = own
	}
	texts := make([]networkingv1beta1.IP, 0, len(all))
	for _, a := range all[:min(len(all), maxAddresses)] {
		texts = append(texts, networkingv1beta1.IP(a.String()))
	}
	return texts
}

// networks are those that a host is in, in order. One with a single address holds nothing else, and links have theirs all alike.
func networks(of []netlink.HostAddress) []networkingv1beta1.CIDR {
	var all []netip.Prefix
	for _, a := range of {
		if a.Leads && a.Address.IsGlobalUnicast() && !a.Network.IsSingleIP() {
			all = append(all, a.Network)
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	all = slices.Compact(all)
	texts := make([]networkingv1beta1.CIDR, 0, len(all))
	for _, n := range all[:min(len(all), maxAddresses)] {
		texts = append(texts, networkingv1beta1.CIDR(n.String()))
	}
	return texts
}

// place is where a node is.
type place struct {
	// addresses are those that it sends from, networks those that it is in.
	addresses []networkingv1beta1.IP
	networks  []networkingv1beta1.CIDR
}

func (h place) same(other place) bool {
	return slices.Equal(h.addresses, other.addresses) && slices.Equal(h.networks, other.networks)
}

// observation is what is known of a node.
type observation struct {
	known     place
	problems  []dataplane.Problem
	missing   error
	placement agent.Placement
	// silent are the gateways that do not answer, port is the overlay's.
	silent []gateway
	port   uint16
}

// status is what the agent says of a node.
type status struct {
	host  place
	ready metav1.Condition
	// silent are the peers whose gateways do not answer.
	silent []string
}

func (s status) same(other status) bool {
	s.ready.LastTransitionTime, other.ready.LastTransitionTime = metav1.Time{}, metav1.Time{}
	return s.host.same(other.host) && s.ready == other.ready && slices.Equal(s.silent, other.silent)
}

// statusOf is what is to be written; nil if it is there.
func statusOf(o observation, self *networkingv1beta1.InternalNode, now time.Time) *status {
	after := slices.Clone(self.Status.Conditions)
	ready := readiness(o, now)
	ready.Type, ready.ObservedGeneration, ready.LastTransitionTime = corev1beta1.ConditionReady, self.Generation, metav1.NewTime(now)
	// What is not known yet is no news: the last word stands.
	waits := ready.Reason == ""
	var silent []string
	if ready.Reason == networkingv1beta1.ReasonOverlaySilent {
		silent = peersOf(o.silent)
	}
	same := o.known.same(place{self.Status.Addresses, self.Status.Networks}) && slices.Equal(silent, self.Status.Silent)
	if waits || !conditions.SetStandard(&after, ready) && same {
		return nil
	}
	return &status{host: o.known, ready: *meta.FindStatusCondition(after, corev1beta1.ConditionReady), silent: silent}
}

// readiness says how a node is; without a reason if that is not known yet.
func readiness(o observation, now time.Time) metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	err := o.placement.Err
	switch {
	case o.missing != nil:
		return no(networkingv1beta1.ReasonIncomplete, sentence(o.missing.Error()))
	case errors.Is(err, syscall.EADDRINUSE):
		return no(networkingv1beta1.ReasonPortInUse, "Something else has the UDP port of the overlay: "+err.Error())
	case isMissing(err):
		return no(networkingv1beta1.ReasonKernelFeatureMissing, "The kernel lacks something: "+err.Error())
	case err != nil:
		return no(networkingv1beta1.ReasonNotProgrammed, "The kernel refuses: "+err.Error())
	case !o.placement.Placed:
		return metav1.Condition{}
	case len(o.silent) > 0:
		return no(networkingv1beta1.ReasonOverlaySilent, silence(o.silent, o.port))
	case len(o.problems)+len(o.placement.Left) > 0:
		reason := networkingv1beta1.ReasonInputInvalid
		if len(o.problems) > 0 && o.problems[0].Kind == dataplane.ProblemOverlap {
			reason = networkingv1beta1.ReasonRouteOverlap
		}
		var all []string
		for _, p := range o.problems {
			all = append(all, p.Message)
		}
		return no(reason, "Left out: "+strings.Join(append(all, o.placement.Left...), "; "))
	case !o.placement.Repaired.IsZero() && now.Sub(o.placement.Repaired) < quarrel:
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: networkingv1beta1.ReasonOverwritten,
			Message: putBack(o.placement),
		}
	default:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: networkingv1beta1.ReasonProgrammed, Message: "The kernel has all that the node needs."}
	}
}

// peersOf are the peers of gateways, in order, as many as there is room for.
func peersOf(gateways []gateway) (all []string) {
	for _, g := range gateways {
		all = append(all, g.peer)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxSilentPeers)]
}

// silence says which gateways do not answer, and what to look for.
func silence(of []gateway, port uint16) string {
	var all []string
	for _, g := range of[:min(len(of), maxSilent)] {
		all = append(all, fmt.Sprintf("the gateway to %s (pod %s)", g.peer, g.pod))
	}
	if more := len(of) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return sentence(fmt.Sprintf("this node is not answered through the overlay by %s: UDP %d (networking.genevePort) has to be open in both directions "+
		"between this node and the pod, which has to run", strings.Join(all, ", "), port))
}

// putBack says when somebody else's changes were put back, to the minute, and what that was.
func putBack(p agent.Placement) string {
	what := make([]string, 0, shown)
	for _, change := range p.PutBack[:min(len(p.PutBack), shown)] {
		what = append(what, fmt.Sprintf("%.*s", longest, change))
	}
	if more := len(p.PutBack) - shown; more > 0 {
		what = append(what, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("Somebody else on the node changed what Liqo has in the kernel, and it was put back, last at %s UTC: %s. The agent's log says more.",
		p.Repaired.UTC().Format("15:04"), strings.Join(what, "; "))
}

// isMissing tells whether the kernel cannot do what it was told to.
func isMissing(err error) bool {
	return slices.ContainsFunc([]error{syscall.EOPNOTSUPP, syscall.EPROTONOSUPPORT, syscall.EAFNOSUPPORT, syscall.ENOSYS},
		func(missing error) bool { return errors.Is(err, missing) })
}

func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
