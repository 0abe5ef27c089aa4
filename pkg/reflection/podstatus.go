package reflection

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// StatusInput is what besides the two pods decides what is shown of the remote one.
type StatusInput struct {
	// NodeIP is the address of the virtual node, which pods show as their host's.
	NodeIP string
	// PodPrefixes are the ranges that the provider's pods must lie in; without any of a family, no address of it is shown.
	PodPrefixes []netip.Prefix
	// OwnPrefixes are ranges of this cluster: no remote pod may claim an address in them.
	OwnPrefixes []netip.Prefix
	// Reserved tells of addresses that are no pod's in any range; nil if nothing is known of such.
	Reserved func(netip.Addr) bool
	// Addresses says how an address of the provider is reached from this cluster; false if it is not. Nil means as it is.
	Addresses Addresses
	// HideAddresses keeps the addresses of remote pods to the provider.
	HideAddresses bool
	// NetworkDown says that it is proved that no packet from this cluster comes to the pod.
	NetworkDown bool
	// NetworkWatched says that the way to the provider's pods counts: those that it tells are not reached are not ready.
	NetworkWatched bool
	// ResizePending is the condition that says why the provider does not take the size which the local pod asks for; nil if it
	// does, or was not asked. Then what the remote pod says of a resize is shown.
	ResizePending *corev1.PodCondition
	// SizeUnknown says that the provider was not asked yet whether it takes that size: then what the local pod shows of one that is
	// pending stays, unless ResizePending is given.
	SizeUnknown bool
	// ChangeRefused is the condition that says which change of the local pod the provider does not take; nil if that is not known.
	ChangeRefused *corev1.PodCondition
	// ChangesTaken says that it took them all.
	ChangesTaken bool
	// NoAPIServer says that the pod cannot use this cluster's API server although it was sent a token for it.
	NoAPIServer bool
	// Now bounds timestamps from the provider.
	Now time.Time
}

// Refused is one thing of a remote status that was not believed.
type Refused struct {
	// Field of the status.
	Field string
	// Message says what is wrong with it.
	Message string
}

// remoteConditions are the conditions that a kubelet sets. All others belong to controllers of this cluster.
var remoteConditions = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
	corev1.PodResizePending, corev1.PodResizeInProgress,
}

// LocalStatus returns the status that the local pod shows, given the remote one, and what of it was not believed. It is
// idempotent: with the result in place the same input gives the same result. A finished pod keeps its status.
func LocalStatus(local, remote *corev1.Pod, in StatusInput) (corev1.PodStatus, []Refused) {
	if Terminal(local.Status.Phase) {
		return *local.Status.DeepCopy(), nil
	}
	t := newTranslation(local, remote, in)
	t.phase()
	t.reason()
	t.addresses()
	t.startTime()
	t.containers()
	t.ends()
	t.conditions()
	return t.out, t.refused
}

// Terminal tells whether a phase is the last one of a pod.
func Terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// Started tells whether a container of the pod ever ran, as far as its status shows.
func Started(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return true
	}
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// Finished tells whether a pod of the given specification ended by itself. One that was evicted, preempted, lost with its node, refused
// by it or deleted before its end did not, and the provider makes it again; so it does with one that has a container which is to be
// started again. One that was evicted because it went beyond its own limits did: it would again.
func Finished(spec *corev1.PodSpec, pod *corev1.Pod) bool {
	if !Terminal(pod.Status.Phase) || Disrupted(pod) {
		return false
	}
	limit := OwnLimit(pod)
	if !limit && !endedForGood(spec, &pod.Status) {
		return false
	}
	if pod.DeletionTimestamp == nil {
		return limit || anyEnded(pod)
	}
	return endedBefore(spec, pod)
}

// OwnLimit tells whether a pod failed because of a limit that it has itself: its deadline, or the amount of local storage that it may
// use. A kubelet evicts for the latter without a word of a disruption, which it says of a pod that it evicts for its node's sake.
func OwnLimit(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && (pod.Status.Reason == "DeadlineExceeded" || pod.Status.Reason == "Evicted" && !Disrupted(pod))
}

// Disrupted tells whether the pod was ended by its node or by the cluster.
func Disrupted(pod *corev1.Pod) bool {
	switch pod.Status.Reason {
	case "Preempting", "NodeLost", "NodeShutdown", "Shutdown", "Terminated":
		return true
	}
	c := condition(pod.Status.Conditions, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue
}

// anyEnded tells whether a container of the pod is known to have ended, and when: none of one that its node refuses did.
func anyEnded(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && !c.State.Terminated.FinishedAt.IsZero()
	})
}

// translation is one call of LocalStatus: each method fills one part of out.
type translation struct {
	local, remote *corev1.Pod
	in            StatusInput
	now           metav1.Time
	finished      bool
	replaced      bool
	lie           bool
	unannounced   bool
	restarts      map[string]int32
	out           corev1.PodStatus
	refused       []Refused
}

func newTranslation(local, remote *corev1.Pod, in StatusInput) *translation {
	t := &translation{
		local: local, remote: remote, in: in, out: *local.Status.DeepCopy(),
		now: metav1.NewTime(in.Now.Truncate(time.Second)), finished: Finished(&local.Spec, remote) || local.DeletionTimestamp != nil && Terminal(remote.Status.Phase),
	}
	uid, restarts := remotePodOf(&local.Status)
	t.restarts = restarts
	if uid != "" && uid != string(remote.UID) {
		t.replaced = true
		// Each of them begins anew, those included that run before the others or beside them.
		for _, c := range slices.Concat(local.Status.InitContainerStatuses, local.Status.ContainerStatuses) {
			t.restarts[c.Name] = c.RestartCount + 1
		}
	}
	return t
}

func (t *translation) refuse(field, format string, args ...any) {
	if len(t.refused) < maxPodErrors {
		t.refused = append(t.refused, Refused{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// rank orders the phases: a pod never goes back.
func rank(phase corev1.PodPhase) int {
	switch phase {
	case corev1.PodRunning:
		return 1
	case corev1.PodSucceeded, corev1.PodFailed:
		return 2
	default:
		return 0
	}
}

func (t *translation) phase() {
	phase := t.remote.Status.Phase
	switch phase {
	case corev1.PodPending, corev1.PodRunning:
	case corev1.PodSucceeded, corev1.PodFailed:
		if !t.finished {
			phase = t.out.Phase
		}
	case "", corev1.PodUnknown:
		phase = t.out.Phase
	default:
		t.refuse("phase", "%q is no phase", bounded(string(phase)))
		phase = t.out.Phase
	}
	if rank(phase) < rank(t.out.Phase) || phase == "" {
		phase = t.out.Phase
	}
	if phase == "" {
		phase = corev1.PodPending
	}
	t.out.Phase = phase
}

func (t *translation) reason() {
	t.out.Reason, t.out.Message = bounded(t.remote.Status.Reason), bounded(t.remote.Status.Message)
	if t.out.Phase != corev1.PodPending || t.out.Reason != "" {
		return
	}
	// What keeps the provider's scheduler from placing the pod is what the user wants to know.
	if c := condition(t.remote.Status.Conditions, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		t.out.Reason, t.out.Message = bounded(c.Reason), bounded(c.Message)
	}
}

func (t *translation) addresses() {
	// It follows the virtual kubelet that works, as the node's address does.
	if t.in.NodeIP != "" && t.remote.Status.HostIP != "" && t.out.HostIP != t.in.NodeIP {
		t.out.HostIP, t.out.HostIPs = t.in.NodeIP, []corev1.HostIP{{IP: t.in.NodeIP}}
	}
	t.out.PodIP, t.out.PodIPs = "", nil
	if t.in.HideAddresses {
		return
	}
	claimed := make([]string, 0, len(t.remote.Status.PodIPs)+1)
	if t.remote.Status.PodIP != "" {
		claimed = append(claimed, t.remote.Status.PodIP)
	}
	for _, ip := range t.remote.Status.PodIPs {
		if ip.IP != t.remote.Status.PodIP {
			claimed = append(claimed, ip.IP)
		}
	}
	families := map[bool]bool{}
	for _, claim := range claimed {
		address, why := t.address(claim)
		if why == unannounced {
			t.unannounced = true
			continue
		}
		if why != "" {
			t.refuse("podIPs", "%s", why)
			continue
		}
		if families[address.Is4()] {
			t.refuse("podIPs", "there are several addresses of one family")
			break
		}
		families[address.Is4()] = true
		t.out.PodIPs = append(t.out.PodIPs, corev1.PodIP{IP: address.String()})
	}
	if len(t.out.PodIPs) > 0 {
		t.out.PodIP, t.unannounced = t.out.PodIPs[0].IP, false
	}
}

// unannounced is why no address of a family is shown. That says nothing against the provider's report: of two families, the network to it may carry
// one. Where no address at all is shown, it is told of the VirtualNode.
const unannounced = "the provider announced no range that it can be in: see " + offloadingv1beta1.AddressesShownCondition +
	" in the summary of the pod's VirtualNode"

// address is how this cluster reaches a remote pod, given the address that it has at the provider; or why it cannot be that.
func (t *translation) address(claim string) (netip.Addr, string) {
	remote, err := netip.ParseAddr(claim)
	if why := t.whyNotAddress(remote, err); why != "" {
		return remote, why
	}
	address, reachable := remote, true
	if t.in.Addresses != nil {
		address, reachable = t.in.Addresses.Translate(remote)
	}
	switch {
	case !reachable:
		return address, fmt.Sprintf("pod IP %s cannot be reached from this cluster, so it is not shown", remote)
	case slices.ContainsFunc(t.in.OwnPrefixes, func(p netip.Prefix) bool { return p.Contains(address) }):
		return address, fmt.Sprintf("pod IP %s lies in a range of this cluster, so it is not shown", address)
	default:
		return address, ""
	}
}

// whyNotAddress tells why an address cannot be a remote pod's. Showing it would send this cluster's traffic there.
func (t *translation) whyNotAddress(address netip.Addr, err error) string {
	holds := func(p netip.Prefix) bool { return p.Contains(address) }
	ofFamily := func(p netip.Prefix) bool { return p.Addr().Is4() == address.Is4() }
	switch {
	case err != nil || address.Zone() != "" || address.Is4In6():
		t.lie = true
		return "a pod IP is not an IP address"
	case !address.IsGlobalUnicast(), t.in.Reserved != nil && t.in.Reserved(address):
		t.lie = true
		return fmt.Sprintf("pod IP %s cannot be a pod's", address)
	case slices.ContainsFunc(t.in.PodPrefixes, holds):
		return ""
	case !slices.ContainsFunc(t.in.PodPrefixes, ofFamily):
		return unannounced
	case slices.ContainsFunc(t.in.OwnPrefixes, holds):
		// Not a lie for certain: ranges of clusters may overlap where no network connects them.
		return fmt.Sprintf("pod IP %s lies in a range of this cluster, so it is not shown", address)
	default:
		t.lie = true
		return fmt.Sprintf("pod IP %s lies outside of the ranges that the provider announced", address)
	}
}

func (t *translation) startTime() {
	if t.out.StartTime == nil && t.remote.Status.StartTime != nil {
		start := t.clamped(*t.remote.Status.StartTime, metav1.Time{})
		t.out.StartTime = &start
	}
}

// clamped returns a timestamp of the provider, but not one in the future: then the known one, or now.
func (t *translation) clamped(remote, known metav1.Time) metav1.Time {
	switch {
	case remote.IsZero() || !remote.After(t.now.Time):
		return remote
	case !known.IsZero():
		return known
	default:
		return t.now
	}
}

// Marks of the RemotePod condition's message, which is the memory of restarts that earlier remote pods had.
const (
	markUID      = "UID "
	markRestarts = "; restarts before it: "
)

// remotePodMessage says which remote pod the local one runs as, and how often its containers were restarted before it.
func remotePodMessage(remote *corev1.Pod, restarts map[string]int32) string {
	message := fmt.Sprintf("runs as pod %s/%s, %s%s", bounded(remote.Namespace), bounded(remote.Name), markUID, bounded(string(remote.UID)))
	if len(restarts) == 0 {
		return message
	}
	parts := make([]string, 0, len(restarts))
	for _, name := range slices.Sorted(maps.Keys(restarts)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, restarts[name]))
	}
	return message + markRestarts + strings.Join(parts, ",")
}

// remotePodOf reads what remotePodMessage wrote.
func remotePodOf(status *corev1.PodStatus) (uid string, restarts map[string]int32) {
	restarts = map[string]int32{}
	c := condition(status.Conditions, offloadingv1beta1.RemotePodCondition)
	if c == nil {
		return "", restarts
	}
	_, rest, ok := strings.Cut(c.Message, markUID)
	if !ok {
		return "", restarts
	}
	uid, list, _ := strings.Cut(rest, markRestarts)
	for part := range strings.SplitSeq(list, ",") {
		name, count, ok := strings.Cut(part, "=")
		if n, err := strconv.ParseInt(count, 10, 32); ok && err == nil && n >= 0 {
			restarts[name] = int32(n)
		}
	}
	return uid, restarts
}

func condition(list []corev1.PodCondition, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}
