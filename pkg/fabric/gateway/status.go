package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
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
	// latencyEvery is how often another latency may be told, latencyNews from which share on it is one, in percent.
	latencyEvery, latencyNews = 10 * time.Second, 20
	// refusedAfter is how long the kernel refuses what is wanted before the tunnel is an Error: as long as with an end that is silent. What fails
	// once works a second later.
	refusedAfter = silentAfter * interval
)

// observation is what is known of a tunnel.
type observation struct {
	// peer is the cluster at the other end. keyless tells that the other end's key is not known; missing is what else is not.
	peer      string
	keyless   bool
	missing   error
	problems  []dataplane.Problem
	placement agent.Placement
	// server tells that the other end comes here; otherwise endpoint is where it is reached, if that is known, and unresolved tells that it
	// has no address.
	server     bool
	unresolved bool
	endpoint   netip.AddrPort
	// userSpace tells that WireGuard runs in the gateway.
	userSpace bool
	// lives tells whether the other end answers, if that is known; latency is how long that takes.
	lives, known bool
	latency      time.Duration
	// mtu is the size of the largest packet that gets through, most that of the largest that the devices at this end let pass, which is less than
	// they could if that was wished; blocked tells that not even mtu gets through.
	mtu, most int
	wished    bool
	blocked   bool
	transit   transit
}

// statusOf is what is to stand in a Connection's status after what stood there before.
func statusOf(o observation, before networkingv1beta1.ConnectionStatus, generation int64, now time.Time) networkingv1beta1.ConnectionStatus {
	after := *before.DeepCopy()
	after.Value = value(o, before.Value)
	after.MTU = networkingv1beta1.MTU(o.mtu) //nolint:gosec // That of a device.
	after.Transit = o.transit.status(before.Transit)
	if o.lives {
		after.Latency = latency(o.latency, before.Latency, now)
	}
	ready := readiness(o)
	if ready.Reason == networkingv1beta1.ReasonNoHandshake && !o.known && before.Value == after.Value &&
		meta.FindStatusCondition(before.Conditions, corev1beta1.ConditionReady) != nil {
		// Who has just started knows no better.
		return after
	}
	ready.Type, ready.ObservedGeneration, ready.LastTransitionTime = corev1beta1.ConditionReady, generation, metav1.NewTime(now)
	conditions.SetStandard(&after.Conditions, ready)
	return after
}

// answers tells whether the other end answers; known is false as long as that cannot be said. It is not asked while the kernel refuses what is
// wanted: then it does not, after a while, whatever it did before.
func answers(l *liveness, p agent.Placement, now time.Time) (lives, known bool) {
	if p.Err != nil && now.Sub(p.Failing) >= refusedAfter {
		return false, true
	}
	return l.lives()
}

// value is the state of a tunnel in a word.
func value(o observation, before networkingv1beta1.ConnectionStatusValue) networkingv1beta1.ConnectionStatusValue {
	switch {
	case o.lives:
		return networkingv1beta1.Connected
	case before == "":
		return networkingv1beta1.Connecting
	case o.known && before == networkingv1beta1.Connected:
		return networkingv1beta1.ConnectionError
	default:
		return before
	}
}

// latency is what was measured, or what stood there before if that is no news.
func latency(measured time.Duration, before networkingv1beta1.ConnectionLatency, now time.Time) networkingv1beta1.ConnectionLatency {
	if measured == 0 {
		return before
	}
	measured = max(measured.Round(10*time.Microsecond), 10*time.Microsecond)
	old, err := time.ParseDuration(before.Value)
	if err == nil && (now.Sub(before.Timestamp.Time) < latencyEvery || (measured-old).Abs()*100 <= old*latencyNews) {
		return before
	}
	return networkingv1beta1.ConnectionLatency{Value: measured.String(), Timestamp: metav1.NewTime(now)}
}

// readiness says how a tunnel is.
func readiness(o observation) metav1.Condition {
	no := func(reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	err := o.placement.Err
	switch {
	case o.keyless:
		return no(networkingv1beta1.ReasonKeyMissing,
			"There is no PublicKey with label %s=%s: the key of the other end is not known.", corev1beta1.RemoteClusterIDLabel, o.peer)
	case o.missing != nil:
		return no(networkingv1beta1.ReasonIncomplete, "Waiting: %v.", o.missing)
	case errors.Is(err, netlink.ErrNoWireGuard):
		return no(networkingv1beta1.ReasonWireGuardUnavailable, "There is no tunnel: %v", err)
	case err != nil:
		return no(networkingv1beta1.ReasonNotProgrammed, "The kernel refuses: %v", err)
	case o.lives && o.blocked:
		return no(networkingv1beta1.ReasonMTUTooSmall, "The other end answers short packets, but none of %d bytes: "+
			"something on the way between the gateways drops long ones. "+
			"Let UDP packets of %d bytes pass there, and the ICMP errors that tell of sizes.", o.mtu, o.mtu+dataplane.TunnelOverhead4)
	case o.lives:
		return ready(o)
	case !o.server && o.unresolved:
		return no(networkingv1beta1.ReasonEndpointUnresolved, "The names in spec.endpoint.addresses of the GatewayClient have no addresses.")
	case o.server:
		return no(networkingv1beta1.ReasonNoHandshake, "The other end does not answer through the tunnel: it has to come here by UDP, and know this end's key.")
	default:
		return no(networkingv1beta1.ReasonNoHandshake, "The other end does not answer at UDP %s: it has to be reached there, and know this end's key.", o.endpoint)
	}
}

// ready is the condition of a tunnel that works.
func ready(o observation) metav1.Condition {
	c := metav1.Condition{Status: metav1.ConditionTrue, Reason: networkingv1beta1.ReasonConnected, Message: "The other end answers."}
	if o.userSpace {
		c.Reason = networkingv1beta1.ReasonWireGuardUnavailable
		c.Message = "The other end answers. The kernel of this gateway's node has no WireGuard: the gateway runs it in user space, which costs more."
	}
	switch {
	case o.mtu < o.most && o.wished:
		c.Reason = networkingv1beta1.ReasonMTUTooSmall
		c.Message += fmt.Sprintf(
			" Packets have at most %d bytes, not %d as the gateway's spec.mtu asks for: the way to the other end carries no larger ones.", o.mtu, o.most)
	case o.mtu < o.most:
		c.Message += fmt.Sprintf(" Packets have at most %d bytes, not %d: the way to the other end carries no larger ones.", o.mtu, o.most)
	}
	var left []string
	for _, p := range o.problems {
		left = append(left, p.Message)
	}
	if left = append(left, o.placement.Left...); len(left) > 0 {
		c.Message += " Left out: " + strings.Join(left, "; ")
	}
	return c
}

// sameStatus tells whether two statuses say the same, whenever they do.
func sameStatus(a, b networkingv1beta1.ConnectionStatus) bool {
	timeless := func(s networkingv1beta1.ConnectionStatus) networkingv1beta1.ConnectionStatus {
		s.Latency.Timestamp = metav1.Time{}
		s.Conditions = slices.Clone(s.Conditions)
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		return s
	}
	return equality.Semantic.DeepEqual(timeless(a), timeless(b))
}
