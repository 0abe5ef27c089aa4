package reflection

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ago  = func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }
)

func localPod(status corev1.PodStatus, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", UID: "local"},
		Spec: corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyAlways,
			Containers:     []corev1.Container{{Name: "app", Image: "app"}},
			InitContainers: []corev1.Container{{Name: "init"}},
		},
		Status: status,
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func remotePod(status corev1.PodStatus, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := localPod(status, change...)
	pod.Namespace, pod.UID = "shop-rome", "remote"
	for _, f := range change {
		f(pod)
	}
	return pod
}

func running(ip string, restarts int32) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "192.0.2.1", PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: new(ago(time.Minute)),
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Second)},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Second)},
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, RestartCount: restarts, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Minute)}}}},
	}
}

var plainInput = StatusInput{NodeIP: "10.9.9.9", PodPrefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")},
	OwnPrefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Now: noon,
	Reserved: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.1.9.9") }}

const remoteMessage = "runs as pod shop-rome/p, UID remote"

func TestLocalStatusOfARunningPod(t *testing.T) {
	local := localPod(corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}})
	got, refused := LocalStatus(local, remotePod(running("10.1.0.7", 2)), plainInput)
	want := corev1.PodStatus{
		Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, HostIP: "10.9.9.9", HostIPs: []corev1.HostIP{{IP: "10.9.9.9"}},
		PodIP: "10.1.0.7", PodIPs: []corev1.PodIP{{IP: "10.1.0.7"}}, StartTime: new(ago(time.Minute)),
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Second)},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Second)},
			{Type: offloadingv1beta1.RemotePodCondition, Status: corev1.ConditionTrue, Reason: offloadingv1beta1.ReasonRemotePodExists,
				Message: remoteMessage, LastTransitionTime: metav1.NewTime(noon)},
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, RestartCount: 2, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Minute)}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(refused) != 0 {
		t.Errorf("refused %v", refused)
	}
}

func ready(s corev1.PodStatus) corev1.ConditionStatus {
	if c := condition(s.Conditions, corev1.PodReady); c != nil {
		return c.Status
	}
	return "missing"
}

// A pod behind a tunnel that is down is not ready since then, and ready again since it works, whenever the remote one became ready. What it is
// not ready for by itself is told before.
func TestReadinessFollowsTheTunnel(t *testing.T) {
	in := plainInput
	local, remote := localPod(corev1.PodStatus{Phase: corev1.PodPending}), remotePod(running("10.1.0.7", 0))
	step := func(down bool, after time.Duration) corev1.PodCondition {
		in.NetworkDown, in.Now = down, plainInput.Now.Add(after)
		local.Status, _ = LocalStatus(local, remote, in)
		c := *condition(local.Status.Conditions, corev1.PodReady)
		checkIdempotent(t, local, remote, local.Status, in)
		return c
	}
	step(false, 0)
	for _, tc := range []struct {
		down  bool
		after time.Duration
		want  corev1.ConditionStatus
	}{{true, time.Minute, corev1.ConditionFalse}, {true, 2 * time.Minute, corev1.ConditionFalse}, {false, 3 * time.Minute, corev1.ConditionTrue}} {
		since := plainInput.Now.Add(tc.after)
		if tc.after == 2*time.Minute {
			since = plainInput.Now.Add(time.Minute)
		}
		c := step(tc.down, tc.after)
		if c.Status != tc.want || !c.LastTransitionTime.Time.Equal(since.Truncate(time.Second)) || tc.down != (c.Reason == offloadingv1beta1.ReasonNetworkUnavailable) {
			t.Errorf("after %s: %+v", tc.after, c)
		}
	}
	remote.Status.Conditions[1].Status, remote.Status.Conditions[1].Reason = corev1.ConditionFalse, "ContainersNotReady"
	if c := step(true, 4*time.Minute); c.Reason != "ContainersNotReady" {
		t.Errorf("one that is not ready by itself: %+v", c)
	}
}

// A pod on a node of the provider to which no packet of this cluster comes is not ready, where the network is watched over.
func TestReadinessFollowsTheProvidersNetwork(t *testing.T) {
	reach := func(status corev1.ConditionStatus) *corev1.Pod {
		remote := remotePod(running("10.1.0.7", 0))
		remote.Status.Conditions = append(remote.Status.Conditions, corev1.PodCondition{Type: offloadingv1beta1.ReachableCondition, Status: status, Message: "theirs"})
		return remote
	}
	for name, tc := range map[string]struct {
		remote  *corev1.Pod
		watched bool
		want    string
	}{
		"nothing is said":                    {remotePod(running("10.1.0.7", 0)), true, "True "},
		"it is not reached":                  {reach(corev1.ConditionFalse), true, "False NetworkUnavailable"},
		"it is not reached, and need not be": {reach(corev1.ConditionFalse), false, "True "},
		"it is reached again":                {reach(corev1.ConditionTrue), true, "True "},
	} {
		t.Run(name, func(t *testing.T) {
			in := plainInput
			in.NetworkWatched = tc.watched
			local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
			status, refused := LocalStatus(local, tc.remote, in)
			c := condition(status.Conditions, corev1.PodReady)
			if got := string(c.Status) + " " + c.Reason; got != tc.want || len(refused) > 0 || c.Message == "theirs" {
				t.Errorf("it is %q (%s), %v", got, c.Message, refused)
			}
			if condition(status.Conditions, offloadingv1beta1.ReachableCondition) != nil {
				t.Error("the provider's condition crosses")
			}
			checkIdempotent(t, local, tc.remote, status, in)
		})
	}
}

func TestLocalStatusRules(t *testing.T) {
	type result struct {
		Phase    corev1.PodPhase
		Ready    corev1.ConditionStatus
		IPs      int
		Restarts int32
		Reason   string
		Refused  int
	}
	ok := result{corev1.PodRunning, corev1.ConditionTrue, 1, 0, "", 0}
	with := func(change func(*result)) result { r := ok; change(&r); return r }
	seen := func(uid string, restarts int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status = running("10.1.0.7", restarts)
			other := remotePod(corev1.PodStatus{})
			other.UID = types.UID(uid)
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: offloadingv1beta1.RemotePodCondition,
				Status: corev1.ConditionTrue, Message: remotePodMessage(other, nil)})
		}
	}
	for name, tc := range map[string]struct {
		local, remote func(*corev1.Pod)
		want          result
	}{
		"all is well":                        {nil, nil, ok},
		"an address in this cluster's range": {nil, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "10.0.0.7", nil }, with(func(r *result) { r.IPs, r.Refused = 0, 1 })},
		"an address outside of the provider's ranges": {nil, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "8.8.8.8", nil },
			with(func(r *result) { r.IPs, r.Refused, r.Ready = 0, 1, corev1.ConditionFalse })},
		"no address at all":    {nil, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "bogus", nil }, with(func(r *result) { r.IPs, r.Refused, r.Ready = 0, 1, corev1.ConditionFalse })},
		"a loopback address":   {nil, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "127.0.0.1", nil }, with(func(r *result) { r.IPs, r.Refused, r.Ready = 0, 1, corev1.ConditionFalse })},
		"a reserved address":   {nil, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "10.1.9.9", nil }, with(func(r *result) { r.IPs, r.Refused, r.Ready = 0, 1, corev1.ConditionFalse })},
		"a mapped address":     {nil, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "::ffff:10.1.0.7", nil }, with(func(r *result) { r.IPs, r.Refused, r.Ready = 0, 1, corev1.ConditionFalse })},
		"two families":         {nil, func(p *corev1.Pod) { p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::7"}) }, with(func(r *result) { r.IPs = 2 })},
		"twice the family":     {nil, func(p *corev1.Pod) { p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "10.1.0.8"}) }, with(func(r *result) { r.Refused = 1 })},
		"an unknown container": {nil, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Name = "miner" }, with(func(r *result) { r.Refused, r.Restarts = 1, -1 })},
		"a container listed twice": {nil, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, p.Status.ContainerStatuses[0])
		}, with(func(r *result) { r.Refused = 1 })},
		"a container in two states": {nil, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{}
		}, with(func(r *result) { r.Refused = 1 })},
		"an absurd restart count": {nil, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = -5 }, with(func(r *result) { r.Refused = 1 })},
		"an invented phase":       {nil, func(p *corev1.Pod) { p.Status.Phase = "Mining" }, with(func(r *result) { r.Refused, r.Phase = 1, corev1.PodPending })},
		"an invented condition status": {nil, func(p *corev1.Pod) { p.Status.Conditions[1].Status = "Maybe" },
			with(func(r *result) { r.Refused, r.Ready = 1, corev1.ConditionUnknown })},
		"a pod that starts over stays Running": {seen("remote", 0), func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodPending
			p.Status.Conditions[1].Status = corev1.ConditionFalse
		}, with(func(r *result) { r.Ready = corev1.ConditionFalse })},
		"the first restart count is the remote one":       {nil, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 }, with(func(r *result) { r.Restarts = 3 })},
		"a replaced remote pod counts as a restart":       {seen("earlier", 3), nil, with(func(r *result) { r.Restarts = 4 })},
		"the same remote pod does not":                    {seen("remote", 3), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 }, with(func(r *result) { r.Restarts = 3 })},
		"an evicted pod is made again, so it is not over": {seen("remote", 0), func(p *corev1.Pod) { evicted(p, true) }, with(func(r *result) { r.Ready, r.Reason = corev1.ConditionFalse, "Evicted" })},
		"a pod that was evicted for its own limit is over": {seen("remote", 0), func(p *corev1.Pod) { evicted(p, false) },
			with(func(r *result) { r.Phase, r.Ready, r.Reason = corev1.PodFailed, corev1.ConditionFalse, "Evicted" })},
		"a label says that the provider is away": {func(p *corev1.Pod) { p.Labels = map[string]string{offloadingv1beta1.RemoteUnavailableLabel: "true"} }, nil, with(func(r *result) { r.Ready = corev1.ConditionFalse })},
		"an open readiness gate": {func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "g"}} }, nil,
			with(func(r *result) { r.Ready = corev1.ConditionFalse })},
		"a met readiness gate": {func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "g"}}
			p.Status.Conditions = []corev1.PodCondition{{Type: "g", Status: corev1.ConditionTrue}}
		}, nil, ok},
		"the provider cannot meet a gate": {func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "g"}} },
			func(p *corev1.Pod) {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "g", Status: corev1.ConditionTrue})
			}, with(func(r *result) { r.Ready = corev1.ConditionFalse })},
		"a pod that the provider cannot place": {nil, func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes"}}}
		}, result{corev1.PodPending, "missing", 0, -1, "Unschedulable", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			local, remote := localPod(corev1.PodStatus{Phase: corev1.PodPending}), remotePod(running("10.1.0.7", 0))
			if tc.local != nil {
				tc.local(local)
			}
			if tc.remote != nil {
				tc.remote(remote)
			}
			status, refused := LocalStatus(local, remote, plainInput)
			got := result{Phase: status.Phase, Ready: ready(status), IPs: len(status.PodIPs), Restarts: -1, Reason: status.Reason, Refused: len(refused)}
			if len(status.ContainerStatuses) > 0 {
				got.Restarts = status.ContainerStatuses[0].RestartCount
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, refused)
			}
			if c := condition(status.Conditions, offloadingv1beta1.InvalidRemoteStatusCondition); (c != nil) != (len(refused) > 0) {
				t.Errorf("condition InvalidRemoteStatus is %v", c)
			}
			checkIdempotent(t, local, remote, status, plainInput)
		})
	}
}

// checkIdempotent: with the result in place there is nothing more to write, now and a minute later, and what a cache keeps of
// the remote pod says the same as the whole one.
func checkIdempotent(t *testing.T, local, remote *corev1.Pod, status corev1.PodStatus, in StatusInput) {
	t.Helper()
	next := local.DeepCopy()
	// What is stored has gone through JSON.
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	next.Status = corev1.PodStatus{}
	if err := json.Unmarshal(raw, &next.Status); err != nil {
		t.Fatal(err)
	}
	slim := remote.DeepCopy()
	SlimRemotePod(slim)
	if kept, _ := LocalStatus(local, slim, in); !apiequality.Semantic.DeepEqual(status, kept) {
		t.Errorf("what is kept of the remote pod says something else:\n%s", cmp.Diff(status, kept))
	}
	in.Now = in.Now.Add(time.Minute + 345*time.Millisecond)
	again, _ := LocalStatus(next, remote, in)
	if !apiequality.Semantic.DeepEqual(next.Status, again) {
		t.Errorf("a second look changes the status:\n%s", cmp.Diff(next.Status, again))
	}
}

func TestRestartsOfEarlierRemotePodsAreKept(t *testing.T) {
	local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
	for step, tc := range []struct {
		uid      types.UID
		restarts int32
		want     int32
	}{{"a", 0, 0}, {"a", 2, 2}, {"b", 0, 3}, {"b", 1, 4}, {"c", 0, 5}, {"c", 0, 5}, {"d", 7, 13}} {
		remote := remotePod(running("10.1.0.7", tc.restarts))
		remote.UID = tc.uid
		local.Status, _ = LocalStatus(local, remote, plainInput)
		if got := local.Status.ContainerStatuses[0].RestartCount; got != tc.want {
			t.Errorf("step %d: restart count %d, want %d", step, got, tc.want)
		}
	}
}

// What runs before or beside the containers begins anew with the pod, too.
func TestRestartsOfInitContainersAreKept(t *testing.T) {
	local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
	for step, tc := range []struct {
		uid      types.UID
		restarts int32
		want     int32
	}{{"a", 0, 0}, {"b", 0, 1}, {"b", 2, 3}, {"c", 0, 4}, {"c", 0, 4}} {
		remote := remotePod(running("10.1.0.7", 0))
		remote.UID = tc.uid
		remote.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", RestartCount: tc.restarts}}
		local.Status, _ = LocalStatus(local, remote, plainInput)
		if got := local.Status.InitContainerStatuses[0].RestartCount; got != tc.want {
			t.Errorf("step %d: restart count %d, want %d", step, got, tc.want)
		}
	}
}

// seenAs are Addresses by a function.
type seenAs func(netip.Addr) (netip.Addr, bool)

func (s seenAs) Translate(own netip.Addr) (netip.Addr, bool) { return s(own) }

// Addresses are shown as this cluster reaches them.
func TestAddressesOfRemotePodsAreTranslated(t *testing.T) {
	known := map[string]string{"10.1.0.7": "10.201.0.7", "10.0.0.7": "10.200.0.7", "10.9.0.7": "10.0.0.7", "10.2.0.7": "10.202.0.7"}
	mapped := seenAs(func(theirs netip.Addr) (netip.Addr, bool) {
		ours, err := netip.ParseAddr(known[theirs.String()])
		return ours, err == nil
	})
	identity := seenAs(func(theirs netip.Addr) (netip.Addr, bool) { return theirs, true })
	announced := slices.Concat(plainInput.PodPrefixes, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("10.9.0.0/16")})
	for name, tc := range map[string]struct {
		addresses Addresses
		ip        string
		want      string
		refused   string
		ready     corev1.ConditionStatus
	}{
		"as they are":                   {nil, "10.1.0.7", "10.1.0.7", "", corev1.ConditionTrue},
		"by the identity":               {identity, "10.1.0.7", "10.1.0.7", "", corev1.ConditionTrue},
		"by their prefix":               {mapped, "10.1.0.7", "10.201.0.7", "", corev1.ConditionTrue},
		"from a range that we have":     {mapped, "10.0.0.7", "10.200.0.7", "", corev1.ConditionTrue},
		"into a range of ours":          {mapped, "10.9.0.7", "", "lies in a range of this cluster", corev1.ConditionTrue},
		"not without a way":             {mapped, "10.1.200.7", "", "cannot be reached", corev1.ConditionTrue},
		"not if they are not announced": {mapped, "10.2.0.7", "", "outside of the ranges", corev1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			in := plainInput
			in.PodPrefixes, in.Addresses = announced, tc.addresses
			local, remote := localPod(corev1.PodStatus{Phase: corev1.PodPending}), remotePod(running(tc.ip, 0))
			status, refused := LocalStatus(local, remote, in)
			if status.PodIP != tc.want || tc.want != "" && status.PodIPs[0].IP != tc.want || ready(status) != tc.ready {
				t.Errorf("pod IP %q, IPs %v, ready %s", status.PodIP, status.PodIPs, ready(status))
			}
			if said := fmt.Sprint(refused); (len(refused) > 0) != (tc.refused != "") || !strings.Contains(said, tc.refused) {
				t.Errorf("refused %s", said)
			}
			checkIdempotent(t, local, remote, status, in)
		})
	}
}

// A provider that announced no range did nothing wrong: its pods run, without an address, and each says where to read what to do.
func TestPodsOfAProviderThatAnnouncedNothing(t *testing.T) {
	type shown struct {
		Address string
		Ready   corev1.ConditionStatus
		Why     string
		Refused int
	}
	const why = "NoPodAddressRange"
	for name, tc := range map[string]struct {
		ip     string
		change func(*StatusInput)
		want   shown
	}{
		"an address":                  {"10.1.0.7", nil, shown{"", corev1.ConditionTrue, why, 0}},
		"one of the Internet":         {"203.0.113.7", nil, shown{"", corev1.ConditionTrue, why, 0}},
		"one of ours":                 {"10.0.0.7", nil, shown{"", corev1.ConditionTrue, why, 0}},
		"IPv6":                        {"fd00::7", nil, shown{"", corev1.ConditionTrue, why, 0}},
		"none yet":                    {"", nil, shown{"", corev1.ConditionTrue, "", 0}},
		"what is no pod's anywhere":   {"127.0.0.1", nil, shown{"", corev1.ConditionFalse, "", 1}},
		"what is no address":          {"x", nil, shown{"", corev1.ConditionFalse, "", 1}},
		"which nobody wants to see":   {"10.1.0.7", func(in *StatusInput) { in.HideAddresses = true }, shown{"", corev1.ConditionTrue, "", 0}},
		"and announces one later":     {"10.1.0.7", func(in *StatusInput) { in.PodPrefixes = plainInput.PodPrefixes }, shown{"10.1.0.7", corev1.ConditionTrue, "", 0}},
		"and announces another later": {"10.2.0.7", func(in *StatusInput) { in.PodPrefixes = plainInput.PodPrefixes }, shown{"", corev1.ConditionFalse, "", 1}},
	} {
		t.Run(name, func(t *testing.T) {
			in := plainInput
			in.PodPrefixes = nil
			local, remote := localPod(corev1.PodStatus{Phase: corev1.PodPending}), remotePod(running(tc.ip, 0))
			if tc.change != nil {
				local.Status, _ = LocalStatus(local, remote, in)
				tc.change(&in)
			}
			status, refused := LocalStatus(local, remote, in)
			got := shown{Address: status.PodIP, Ready: ready(status), Refused: len(refused)}
			if c := condition(status.Conditions, offloadingv1beta1.AddressShownCondition); c != nil {
				got.Why = c.Reason
				if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "see AddressesShown in the summary of the pod's VirtualNode") {
					t.Errorf("the condition says %v", c)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, refused)
			}
			checkIdempotent(t, local, remote, status, in)
		})
	}
}

// A network that carries one family shows pods of two by it. That the other one is not shown says nothing against the provider.
func TestPodsOfTwoFamilies(t *testing.T) {
	four, six := plainInput.PodPrefixes[:1], plainInput.PodPrefixes
	type shown struct {
		Addresses []string
		Ready     corev1.ConditionStatus
		Why       string
		Refused   int
	}
	for name, tc := range map[string]struct {
		announced []netip.Prefix
		ips       []string
		want      shown
	}{
		"both are announced":         {six, []string{"10.1.0.7", "fd00::7"}, shown{[]string{"10.1.0.7", "fd00::7"}, corev1.ConditionTrue, "", 0}},
		"one is":                     {four, []string{"10.1.0.7", "fd00::7"}, shown{[]string{"10.1.0.7"}, corev1.ConditionTrue, "", 0}},
		"one is, the pod's second":   {four, []string{"fd00::7", "10.1.0.7"}, shown{[]string{"10.1.0.7"}, corev1.ConditionTrue, "", 0}},
		"one is, and it is a lie":    {four, []string{"10.2.0.7", "fd00::7"}, shown{nil, corev1.ConditionFalse, "NoPodAddressRange", 1}},
		"one is, the pod has it not": {four, []string{"fd00::7"}, shown{nil, corev1.ConditionTrue, "NoPodAddressRange", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			in := plainInput
			in.PodPrefixes = tc.announced
			local, remote := localPod(corev1.PodStatus{Phase: corev1.PodPending}), remotePod(running(tc.ips[0], 0))
			remote.Status.PodIPs = nil
			for _, ip := range tc.ips {
				remote.Status.PodIPs = append(remote.Status.PodIPs, corev1.PodIP{IP: ip})
			}
			status, refused := LocalStatus(local, remote, in)
			got := shown{Ready: ready(status), Refused: len(refused)}
			for _, ip := range status.PodIPs {
				got.Addresses = append(got.Addresses, ip.IP)
			}
			if c := condition(status.Conditions, offloadingv1beta1.AddressShownCondition); c != nil {
				got.Why = c.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, refused)
			}
			checkIdempotent(t, local, remote, status, in)
		})
	}
}

func TestTimestampsFromTheFutureAreClampedOnce(t *testing.T) {
	remote := remotePod(running("10.1.0.7", 0))
	future := metav1.NewTime(noon.Add(time.Hour))
	remote.Status.StartTime = &future
	remote.Status.Conditions[1].LastTransitionTime = future
	remote.Status.ContainerStatuses[0].State.Running.StartedAt = future
	local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
	status, _ := LocalStatus(local, remote, plainInput)
	for what, at := range map[string]metav1.Time{
		"start": *status.StartTime, "condition": condition(status.Conditions, corev1.PodReady).LastTransitionTime,
		"container": status.ContainerStatuses[0].State.Running.StartedAt,
	} {
		if !at.Time.Equal(noon) {
			t.Errorf("%s at %s", what, at)
		}
	}
	checkIdempotent(t, local, remote, status, plainInput)
}

func TestEndedContainersStayEnded(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0, FinishedAt: ago(time.Minute), StartedAt: ago(time.Hour)}}
	for name, tc := range map[string]struct {
		policy corev1.RestartPolicy
		stays  bool
	}{
		"Never": {corev1.RestartPolicyNever, true}, "OnFailure, and it succeeded": {corev1.RestartPolicyOnFailure, true}, "Always": {corev1.RestartPolicyAlways, false},
	} {
		t.Run(name, func(t *testing.T) {
			local := localPod(corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: ended}}},
				func(p *corev1.Pod) { p.Spec.RestartPolicy = tc.policy })
			status, _ := LocalStatus(local, remotePod(running("10.1.0.7", 0)), plainInput)
			if stays := status.ContainerStatuses[0].State.Terminated != nil; stays != tc.stays {
				t.Errorf("stays = %v", stays)
			}
		})
	}
}

func TestBoundedTexts(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 1<<20), "\x1b[2Jcleared", "a\xffb", "\u202eevil", "line\nline\ttab"} {
		got := bounded(text)
		if len(got) > 1024 || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("%.20q became %.40q (%d bytes)", text, got, len(got))
		}
	}
	if bounded("line\nline\ttab") != "line\nline\ttab" {
		t.Error("harmless white space was changed")
	}
}

// evicted makes of a pod what a kubelet does when it evicts it, for its node's sake or because the pod went beyond its own limits.
func evicted(p *corev1.Pod, disrupted bool) {
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
	if disrupted {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet"})
	}
}

func TestFinished(t *testing.T) {
	end := func(at metav1.Time) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at}}}}
	}
	deletion := func(at metav1.Time, grace int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace }
	}
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a running pod":                          {remotePod(corev1.PodStatus{Phase: corev1.PodRunning}, never), false},
		"a pod that succeeded":                   {remotePod(corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: end(ago(time.Hour))}, never), true},
		"a pod that failed":                      {remotePod(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: end(ago(time.Hour))}, never), true},
		"a pod that always restarts":             {remotePod(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: end(ago(time.Hour))}), false},
		"its deadline ended it":                  {remotePod(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}), true},
		"it was evicted for its node's sake":     {remotePod(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: end(ago(time.Hour))}, never, func(p *corev1.Pod) { evicted(p, true) }), false},
		"it went beyond its own limit":           {remotePod(corev1.PodStatus{ContainerStatuses: end(ago(time.Hour))}, func(p *corev1.Pod) { evicted(p, false) }), true},
		"it was disrupted":                       {remotePod(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: end(ago(time.Hour)), Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}, never), false},
		"its node refused it":                    {remotePod(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}, never), false},
		"it was deleted after its end":           {remotePod(corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: end(ago(time.Hour))}, never, deletion(ago(0), 30)), true},
		"its end came from its deletion":         {remotePod(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: end(ago(10 * time.Second))}, never, deletion(ago(0), 30)), false},
		"its deletion says nothing of its grace": {remotePod(corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: end(ago(10 * time.Second))}, never, func(p *corev1.Pod) { p.DeletionTimestamp = new(ago(0)) }), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Finished(&tc.pod.Spec, tc.pod); got != tc.want {
				t.Errorf("Finished = %v", got)
			}
		})
	}
}

func TestRemotePodMessageRoundTrip(t *testing.T) {
	restarts := map[string]int32{"app": 3, "side": 0}
	status := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: offloadingv1beta1.RemotePodCondition,
		Message: remotePodMessage(remotePod(corev1.PodStatus{}), restarts)}}}
	uid, got := remotePodOf(&status)
	if uid != "remote" || cmp.Diff(restarts, got) != "" {
		t.Errorf("read back %q, %v", uid, got)
	}
	for _, message := range []string{"", "nonsense", "UID x; restarts before it: a=b,c,=1,d=-4"} {
		status.Conditions[0].Message = message
		if _, restarts := remotePodOf(&status); restarts["d"] != 0 || restarts["a"] != 0 {
			t.Errorf("%q gives %v", message, restarts)
		}
	}
}

// FuzzLocalStatus: whatever a hostile provider reports, the result is bounded, about known containers only, idempotent, and
// shows no address outside of the announced ranges.
func FuzzLocalStatus(f *testing.F) {
	for _, status := range []corev1.PodStatus{running("10.1.0.7", 1), {Phase: corev1.PodFailed, Reason: "Evicted"}, {Phase: "x", PodIP: "fe80::1%eth0"}} {
		pod := corev1.Pod{Status: status}
		raw, err := pod.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		remote := &corev1.Pod{}
		if remote.Unmarshal(raw) != nil {
			return
		}
		local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
		status, _ := LocalStatus(local, remote, plainInput)
		for _, ip := range status.PodIPs {
			address := netip.MustParseAddr(ip.IP)
			if !plainInput.PodPrefixes[0].Contains(address) && !plainInput.PodPrefixes[1].Contains(address) {
				t.Errorf("address %s is shown", ip.IP)
			}
		}
		if len(status.ContainerStatuses) > 1 || len(status.InitContainerStatuses) > 1 || len(status.Conditions) > 6 {
			t.Errorf("the status is not bounded: %v", status)
		}
		text, err := json.Marshal(status)
		if err != nil || len(text) > 64<<10 {
			t.Errorf("the status has %d bytes (%v)", len(text), err)
		}
		checkIdempotent(t, local, remote, status, plainInput)
	})
}

// B7: by whatever clock a provider stamps what it says, the pod shows the same state, and nothing that is yet to come.
func TestB7ClocksAnHourApart(t *testing.T) {
	same := func(apart time.Duration) corev1.PodStatus {
		remote := remotePod(running("10.1.0.7", 1))
		at := metav1.NewTime(noon.Add(apart - time.Second))
		remote.CreationTimestamp, remote.Status.StartTime = at, &at
		remote.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		for i := range remote.Status.Conditions {
			remote.Status.Conditions[i].LastTransitionTime = at
		}
		local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
		status, refused := LocalStatus(local, remote, plainInput)
		if len(refused) > 0 {
			t.Errorf("refused: %+v", refused)
		}
		checkIdempotent(t, local, remote, status, plainInput)
		for _, stamp := range append([]metav1.Time{*status.StartTime, status.ContainerStatuses[0].State.Running.StartedAt}, stampsOf(status.Conditions)...) {
			if stamp.After(noon) {
				t.Errorf("with clocks %s apart something is shown of %s, and it is %s", apart, stamp, noon)
			}
		}
		return status
	}
	ignored := cmpopts.IgnoreTypes(metav1.Time{})
	want := same(0)
	for _, apart := range []time.Duration{-time.Hour, time.Hour} {
		if diff := cmp.Diff(want, same(apart), ignored, cmpopts.IgnoreFields(corev1.PodStatus{}, "StartTime")); diff != "" {
			t.Errorf("clocks %s apart (-together +apart):\n%s", apart, diff)
		}
	}
}

func stampsOf(conditions []corev1.PodCondition) []metav1.Time {
	var stamps []metav1.Time
	for _, c := range conditions {
		stamps = append(stamps, c.LastTransitionTime)
	}
	return stamps
}

// After a hand-over another virtual kubelet, with another address, works for the node: its pods show that one, as the Node does.
func TestHostAddressFollowsTheVirtualKubelet(t *testing.T) {
	before, _ := LocalStatus(localPod(corev1.PodStatus{Phase: corev1.PodPending}), remotePod(running("10.1.0.7", 0)), plainInput)
	moved := plainInput
	moved.NodeIP = "10.9.9.10"
	after, _ := LocalStatus(localPod(before), remotePod(running("10.1.0.7", 0)), moved)
	want := before.DeepCopy()
	want.HostIP, want.HostIPs = "10.9.9.10", []corev1.HostIP{{IP: "10.9.9.10"}}
	if diff := cmp.Diff(*want, after); diff != "" {
		t.Error(diff)
	}
	unknown := plainInput
	unknown.NodeIP = ""
	if kept, _ := LocalStatus(localPod(before), remotePod(running("10.1.0.7", 0)), unknown); kept.HostIP != "10.9.9.9" {
		t.Errorf("without an address of its own the host is %q", kept.HostIP)
	}
}
