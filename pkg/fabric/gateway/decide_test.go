package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/netlink"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// What questions (q), answers (a) to the last one, and answers to one that nobody asked (x), come to.
func TestLiveness(t *testing.T) {
	for events, want := range map[string]string{
		"":            "lives false, known false, session false, next false",
		"qq":          "lives false, known false, session false, next false",
		"qqq":         "lives false, known false, session true, next false",
		"qqqq":        "lives false, known false, session false, next false",
		"qqqqq":       "lives false, known false, session true, next true",
		"qqqqqqq":     "lives false, known false, session true, next true",
		"qqqqqqqq":    "lives false, known true, session false, next false",
		"qqqqqqqqa":   "lives true, known true, session false, next false",
		"qa":          "lives true, known true, session false, next false",
		"qaqqqqq":     "lives true, known true, session false, next false",
		"qaqqqqqq":    "lives false, known true, session false, next false",
		"qaqqqq":      "lives true, known true, session true, next false",
		"qaqqqqqqqqq": "lives false, known true, session true, next true",
		"qaqqqqqqqqa": "lives true, known true, session false, next false",
		"qx":          "lives false, known false, session false, next false",
		"qaqqqqaa":    "lives true, known true, session false, next false",
	} {
		l, now := newLiveness(noon), noon
		var last uint64
		for _, event := range events {
			switch event {
			case 'q':
				now = now.Add(interval)
				last = l.ask(now)
			case 'a':
				l.answer(last, now.Add(10*time.Millisecond))
			case 'x':
				l.answer(last+1, now)
				l.answer(0, now)
			}
		}
		lives, known := l.lives()
		session, next := l.retry()
		if got := fmt.Sprintf("lives %t, known %t, session %t, next %t", lives, known, session, next); got != want {
			t.Errorf("%q: %s, want %s", events, got, want)
		}
		if len(l.asked) > remembered {
			t.Errorf("%q: %d questions are remembered", events, len(l.asked))
		}
	}
}

// Who does not answer, or did not yet, is asked again sooner, until it was asked in another session, and not before an answer can be there.
func TestWhoDoesNotAnswerIsAskedSooner(t *testing.T) {
	const soon = interval / hurried
	for _, tc := range []struct {
		events  string
		latency time.Duration
		want    time.Duration
	}{
		{"", 0, soon},
		{"qq", 0, soon},
		{"qqq", 0, soon},
		{"qqqq", 0, interval},
		{"qa", 0, interval},
		{"qaq", 0, soon},
		{"qaqqq", 0, soon},
		{"qaqqqq", 0, soon},
		{"qaqqqqq", 0, interval},
		{"qaqa", 0, interval},
		{"qaq", 300 * time.Millisecond, 1200 * time.Millisecond},
		{"qaq", time.Second, interval},
	} {
		l := newLiveness(noon)
		for _, event := range tc.events {
			if event == 'q' {
				l.ask(noon)
			} else {
				l.answer(l.next-1, noon)
			}
		}
		l.latency = tc.latency
		if got := l.pause(interval); got != tc.want {
			t.Errorf("%q with a latency of %s: %s, want %s", tc.events, tc.latency, got, tc.want)
		}
	}
}

func TestLatencyIsSmoothed(t *testing.T) {
	l, now := newLiveness(noon), noon
	for range 50 {
		l.answer(l.ask(now), now.Add(10*time.Millisecond))
		now = now.Add(interval)
	}
	l.answer(l.ask(now), now.Add(90*time.Millisecond))
	if l.latency != 20*time.Millisecond {
		t.Errorf("one answer of 90 ms after many of 10 ms makes %s", l.latency)
	}
}

// What is asked before the other end answers waits for WireGuard's greeting: what such an answer takes is no latency, neither at first nor after
// an outage.
func TestGreetingsAreNoLatency(t *testing.T) {
	l, now := newLiveness(noon), noon
	for range 2 {
		early := l.ask(now)
		late := l.ask(now.Add(interval))
		now = now.Add(2 * interval)
		l.answer(early, now)
		l.answer(late, now)
		if l.latency != 0 {
			t.Fatalf("after the greeting the latency is %s", l.latency)
		}
		// An outage.
		l.ask(now)
		l.ask(now.Add(interval))
		now = now.Add(2 * interval)
	}
	l.answer(l.ask(now), now)
	now = now.Add(interval)
	l.answer(l.ask(now), now.Add(10*time.Millisecond))
	if l.latency != 10*time.Millisecond {
		t.Errorf("the latency is %s", l.latency)
	}
}

func TestMessages(t *testing.T) {
	for _, m := range []message{{question, 7, 9}, {reply, 1 << 63, -5}} {
		if got, ok := parse(m.bytes()); !ok || got != m {
			t.Errorf("%v becomes %v, %t", m, got, ok)
		}
	}
	good := message{question, 7, 9}.bytes()
	if m, ok := parse(append(good[:len(good):len(good)], 0)); !ok || m.number != 7 {
		t.Errorf("a longer one is read as %v, %t", m, ok)
	}
	for name, raw := range map[string][]byte{
		"nothing": nil, "less": good[:len(good)-1], "another version": append([]byte("lqe\x02"), good[4:]...),
		"another kind": append([]byte("lqe\x01\x03"), good[5:]...),
	} {
		if m, ok := parse(raw); ok {
			t.Errorf("%s is read as %v", name, m)
		}
	}
}

func ports(texts ...string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range texts {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}

func TestEndpoints(t *testing.T) {
	var e endpoints
	var got []string
	note := func() { got = append(got, e.current().String()) }
	e.next()
	note()
	e.take(ports("192.0.2.1:1", "192.0.2.2:1"))
	note()
	e.next()
	note()
	// The one that is used stays it; what cannot be resolved any more is not forgotten.
	e.take(ports("192.0.2.9:1", "192.0.2.1:1", "192.0.2.2:1"))
	note()
	e.take(nil)
	note()
	e.next()
	note()
	e.take(ports("192.0.2.7:1"))
	note()
	if text := strings.Join(got, " "); text != "invalid AddrPort 192.0.2.1:1 192.0.2.2:1 192.0.2.2:1 192.0.2.2:1 192.0.2.9:1 192.0.2.7:1" {
		t.Error(text)
	}
}

func TestResolve(t *testing.T) {
	names := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		found, ok := map[string][]netip.Addr{
			"gw.example.com": {netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::ffff:192.0.2.2"), netip.MustParseAddr("192.0.2.1")},
			"localhost":      {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("0.0.0.0")},
		}[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		return found, nil
	}
	for name, tc := range map[string]struct {
		hosts []networkingv1beta1.Host
		want  []netip.AddrPort
	}{
		"addresses in their order":         {[]networkingv1beta1.Host{"192.0.2.7", "2001:db8::7", "192.0.2.6"}, ports("192.0.2.7:5", "[2001:db8::7]:5", "192.0.2.6:5")},
		"names, IPv4 first, each once":     {[]networkingv1beta1.Host{"nowhere", "gw.example.com", "192.0.2.1"}, ports("192.0.2.1:5", "192.0.2.2:5", "[2001:db8::1]:5")},
		"what would lead back to this one": {[]networkingv1beta1.Host{"localhost", "127.0.0.1"}, nil},
	} {
		got := resolve(t.Context(), target{tc.hosts, 5}, names)
		if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What a Connection says, after what it said before.
func TestStatusOf(t *testing.T) {
	working := observation{placement: agent.Placement{Placed: true}, endpoint: netip.MustParseAddrPort("192.0.2.1:51840"), lives: true, known: true, latency: 12 * time.Millisecond, mtu: 1440, most: 1440}
	with := func(change func(*observation)) observation {
		o := working
		change(&o)
		return o
	}
	silent := func(o *observation) { o.lives = false }
	connected := statusOf(working, networkingv1beta1.ConnectionStatus{}, 1, noon)
	lost := *connected.DeepCopy()
	lost.Value, lost.Conditions = networkingv1beta1.ConnectionError, []metav1.Condition{{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: networkingv1beta1.ReasonGatewayPodPending, Message: "No pod is ready.",
	}}
	for name, tc := range map[string]struct {
		seen   observation
		before networkingv1beta1.ConnectionStatus
		want   string
	}{
		"the first answer":     {seen: working, want: "Connected 12ms 1440 True Connected: The other end answers."},
		"WireGuard in process": {seen: with(func(o *observation) { o.userSpace = true }), want: "Connected 12ms 1440 True WireGuardUnavailable: The other end answers. The kernel of this gateway's node has no WireGuard: the gateway runs it in user space, which costs more."},
		"something is left out": {seen: with(func(o *observation) { o.problems = []dataplane.Problem{{Message: "one"}, {Message: "two"}} }),
			want: "Connected 12ms 1440 True Connected: The other end answers. Left out: one; two"},
		"a route is refused": {seen: with(func(o *observation) { o.placement.Left = []string{"three"} }),
			want: "Connected 12ms 1440 True Connected: The other end answers. Left out: three"},
		"nothing is known yet": {seen: observation{peer: "milan", keyless: true, mtu: 1440},
			want: "Connecting  1440 False KeyMissing: There is no PublicKey with label liqo.io/remote-cluster-id=milan: the key of the other end is not known."},
		"something is missing": {seen: observation{missing: errors.New("x is not known yet"), mtu: 1440}, want: "Connecting  1440 False Incomplete: Waiting: x is not known yet."},
		"never an answer": {seen: with(func(o *observation) { *o = observation{known: true, endpoint: o.endpoint, mtu: 1440} }),
			want: "Connecting  1440 False NoHandshake: The other end does not answer at UDP 192.0.2.1:51840: it has to be reached there, and know this end's key."},
		"no answer to a server": {seen: observation{known: true, server: true, mtu: 1440},
			want: "Connecting  1440 False NoHandshake: The other end does not answer through the tunnel: it has to come here by UDP, and know this end's key."},
		"no address":                {seen: observation{known: true, unresolved: true, mtu: 1440}, want: "Connecting  1440 False EndpointUnresolved: The names in spec.endpoint.addresses of the GatewayClient have no addresses."},
		"no address, but an answer": {seen: with(func(o *observation) { o.unresolved = true }), want: "Connected 12ms 1440 True Connected: The other end answers."},
		"no answer any more": {seen: with(silent), before: connected,
			want: "Error 12ms 1440 False NoHandshake: The other end does not answer at UDP 192.0.2.1:51840: it has to be reached there, and know this end's key."},
		"an agent that starts again": {seen: observation{endpoint: working.endpoint, mtu: 1440}, before: connected, want: "Connected 12ms 1440 True Connected: The other end answers."},
		"one that starts again after an error": {seen: observation{endpoint: working.endpoint, mtu: 1440}, before: statusOf(with(silent), connected, 1, noon),
			want: "Error 12ms 1440 False NoHandshake: The other end does not answer at UDP 192.0.2.1:51840: it has to be reached there, and know this end's key."},
		"its word was taken back, and it lives":   {seen: working, before: lost, want: "Connected 12ms 1440 True Connected: The other end answers."},
		"one that starts again after it was lost": {seen: observation{endpoint: working.endpoint, mtu: 1440}, before: lost, want: "Error 12ms 1440 Unknown GatewayPodPending: No pod is ready."},
		"no answer to one that was lost": {seen: with(silent), before: lost,
			want: "Error 12ms 1440 False NoHandshake: The other end does not answer at UDP 192.0.2.1:51840: it has to be reached there, and know this end's key."},
		"an answer again": {seen: working, before: statusOf(with(silent), connected, 1, noon), want: "Connected 12ms 1440 True Connected: The other end answers."},
		"shorter packets": {seen: with(func(o *observation) { o.mtu = 1340 }),
			want: "Connected 12ms 1340 True Connected: The other end answers. Packets have at most 1340 bytes, not 1440: the way to the other end carries no larger ones."},
		"shorter packets than wished, WireGuard in process": {seen: with(func(o *observation) { o.mtu, o.wished, o.userSpace = 1340, true, true }),
			want: "Connected 12ms 1340 True MTUTooSmall: The other end answers. The kernel of this gateway's node has no WireGuard: the gateway runs it in user space, which costs more. " +
				"Packets have at most 1340 bytes, not 1440 as the gateway's spec.mtu asks for: the way to the other end carries no larger ones."},
		"short packets only": {seen: with(func(o *observation) { o.mtu, o.blocked = 1280, true }),
			want: "Connected 12ms 1280 False MTUTooSmall: The other end answers short packets, but none of 1280 bytes: something on the way between the gateways drops long ones. " +
				"Let UDP packets of 1340 bytes pass there, and the ICMP errors that tell of sizes."},
		"the kernel refuses": {seen: with(func(o *observation) { o.placement.Err = syscall.EPERM }), want: "Connected 12ms 1440 False NotProgrammed: The kernel refuses: operation not permitted"},
		"the kernel refuses for long": {seen: with(func(o *observation) { o.lives, o.placement.Err = false, syscall.EPERM }), before: connected,
			want: "Error 12ms 1440 False NotProgrammed: The kernel refuses: operation not permitted"},
		"no WireGuard at all": {seen: observation{known: true, placement: agent.Placement{Err: fmt.Errorf("add: %w", netlink.ErrNoWireGuard)}},
			want: "Connecting  0 False WireGuardUnavailable: There is no tunnel: add: the kernel has no WireGuard"},
	} {
		after := statusOf(tc.seen, tc.before, 1, noon.Add(time.Hour))
		if len(after.Conditions) != 1 {
			t.Fatalf("%s: %v", name, after.Conditions)
		}
		c := after.Conditions[0]
		got := fmt.Sprintf("%s %s %d %s %s: %s", after.Value, after.Latency.Value, after.MTU, c.Status, c.Reason, c.Message)
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Nobody asks the other end while the kernel refuses what is wanted. What was known before counts for a while, so that a pass that fails once is
// no Error.
func TestNobodyAnswersForLongWhileTheKernelRefuses(t *testing.T) {
	answered := newLiveness(noon)
	answered.answer(answered.ask(noon), noon)
	for name, tc := range map[string]struct {
		live         *liveness
		placement    agent.Placement
		lives, known bool
	}{
		"it answers":                                   {answered, agent.Placement{Placed: true}, true, true},
		"it answered, the kernel refuses":              {answered, agent.Placement{Err: syscall.EPERM, Failing: noon.Add(time.Second)}, true, true},
		"it answered, the kernel refuses so long":      {answered, agent.Placement{Err: syscall.EPERM, Failing: noon}, false, true},
		"nothing is known":                             {newLiveness(noon), agent.Placement{Placed: true}, false, false},
		"nothing is known, the kernel refuses so long": {newLiveness(noon), agent.Placement{Err: syscall.EPERM, Failing: noon}, false, true},
	} {
		if lives, known := answers(tc.live, tc.placement, noon.Add(refusedAfter)); lives != tc.lives || known != tc.known {
			t.Errorf("%s: lives %t, known %t", name, lives, known)
		}
	}
}

// The time of Ready shows that a gateway has contradicted who took its word back, whatever else is wrong with it.
func TestAContradictionHasATime(t *testing.T) {
	before := networkingv1beta1.ConnectionStatus{Value: networkingv1beta1.ConnectionError, Conditions: []metav1.Condition{{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: networkingv1beta1.ReasonGatewayPodPending, LastTransitionTime: metav1.NewTime(noon),
	}}}
	for name, placement := range map[string]agent.Placement{"all is well": {Placed: true}, "the kernel refuses": {Err: syscall.EPERM}} {
		after := statusOf(observation{lives: true, known: true, mtu: 1440, placement: placement}, before, 1, noon.Add(time.Hour))
		if at := after.Conditions[0].LastTransitionTime; after.Value != networkingv1beta1.Connected || !at.Time.Equal(noon.Add(time.Hour)) {
			t.Errorf("%s: %s at %v", name, after.Value, at)
		}
	}
}

// Another latency is told if it is one, and not too often.
func TestLatencyIsToldOnChange(t *testing.T) {
	before := networkingv1beta1.ConnectionLatency{Value: "10ms", Timestamp: metav1.NewTime(noon)}
	for name, tc := range map[string]struct {
		measured time.Duration
		after    time.Duration
		want     string
	}{
		"the same":          {10 * time.Millisecond, time.Hour, "10ms"},
		"a little more":     {12 * time.Millisecond, time.Hour, "10ms"},
		"more":              {12*time.Millisecond + 10*time.Microsecond, time.Hour, "12.01ms"},
		"less":              {7 * time.Millisecond, time.Hour, "7ms"},
		"more, too early":   {time.Second, 9 * time.Second, "10ms"},
		"next to nothing":   {1, time.Hour, "10µs"},
		"more, in due time": {time.Second, 10 * time.Second, "1s"},
	} {
		if got := latency(tc.measured, before, noon.Add(tc.after)); got.Value != tc.want {
			t.Errorf("%s: %s, want %s", name, got.Value, tc.want)
		}
	}
}

// What is there is not written, nor what was written a moment ago.
func TestNothingIsWrittenThatIsThere(t *testing.T) {
	o := own{meta: metav1.ObjectMeta{Namespace: "ns", Name: "milan", UID: "u"}, kind: "GatewayServer", end: networkingv1beta1.ConnectionTypeServer}
	wanted := connectionOf(o, "milan", "milan")
	wanted.Status = statusOf(observation{lives: true, known: true, latency: time.Second, mtu: 1440}, networkingv1beta1.ConnectionStatus{}, 1, noon)
	there := wanted.DeepCopy()
	there.Labels["of"] = "others"
	for name, tc := range map[string]struct {
		there  func() *networkingv1beta1.Connection
		writes int
	}{
		"none is there":      {func() *networkingv1beta1.Connection { return nil }, 1},
		"it is there":        {func() *networkingv1beta1.Connection { return there }, 0},
		"without its status": {func() *networkingv1beta1.Connection { c := there.DeepCopy(); c.Status.Value = ""; return c }, 1},
		"its word was taken back": {func() *networkingv1beta1.Connection {
			c := there.DeepCopy()
			c.Status.Value, c.Status.Conditions[0].Status = networkingv1beta1.ConnectionError, metav1.ConditionUnknown
			return c
		}, 1},
		"without its owner": {func() *networkingv1beta1.Connection { c := there.DeepCopy(); c.OwnerReferences = nil; return c }, 1},
		"without its label": {func() *networkingv1beta1.Connection { c := there.DeepCopy(); c.Labels = nil; return c }, 1},
		"of another end":    {func() *networkingv1beta1.Connection { c := there.DeepCopy(); c.Spec.Type = "Client"; return c }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			writes := 0
			c := newConnections(func(context.Context, networkingv1beta1.Connection) error { writes++; return nil })
			go c.Run(t.Context())
			for range 3 {
				c.want(wanted, tc.there(), noon)
				synctest.Wait()
			}
			if writes != tc.writes {
				t.Errorf("%s: written %d times, want %d", name, writes, tc.writes)
			}
		})
	}
}
