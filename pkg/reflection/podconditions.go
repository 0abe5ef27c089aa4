package reflection

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// conditions are those of the remote pod, and ours.
func (t *translation) conditions() {
	for _, conditionType := range remoteConditions {
		remote := condition(t.remote.Status.Conditions, conditionType)
		if conditionType == corev1.PodResizePending {
			remote = t.pendingResize(remote)
		}
		if remote == nil {
			t.dropResize(conditionType)
			continue
		}
		c := corev1.PodCondition{
			Type: conditionType, Status: remote.Status, Reason: bounded(remote.Reason), Message: bounded(remote.Message),
			LastTransitionTime: remote.LastTransitionTime,
		}
		if remote == t.in.ResizePending {
			c.LastTransitionTime = t.now
		}
		if c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible && !t.sized() {
			c.Reason = corev1.PodReasonDeferred
		}
		switch c.Status {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		default:
			t.refuse("conditions", "%q is no status of a condition", bounded(string(c.Status)))
			c.Status = corev1.ConditionUnknown
		}
		t.judge(&c)
		t.set(c)
	}
	t.set(corev1.PodCondition{
		Type: offloadingv1beta1.RemotePodCondition, Status: corev1.ConditionTrue,
		Reason: offloadingv1beta1.ReasonRemotePodExists, Message: remotePodMessage(t.remote, t.restarts),
		LastTransitionTime: t.now,
	})
	t.change()
	hidden := ""
	if t.unannounced {
		hidden = "the pod is shown without its address: " + unannounced
	}
	t.without(offloadingv1beta1.AddressShownCondition, offloadingv1beta1.ReasonNoPodAddressRange, hidden)
	if t.in.NoAPIServer {
		t.without(offloadingv1beta1.APIServerReachableCondition, offloadingv1beta1.ReasonNoAPIServerAddress,
			"no address of this cluster's API server was known when the pod was sent to the provider")
	}
	t.without(offloadingv1beta1.HostNamespacesCondition, offloadingv1beta1.ReasonHostNamespacesOff, HostNamespacesMessage(&t.local.Spec))
	t.without(offloadingv1beta1.PriorityCondition, offloadingv1beta1.ReasonPriorityNotKept, PriorityMessage(&t.local.Spec))
	t.report()
}

// pendingResize is what is to be shown of a size that is pending, given what the remote pod shows; nil if none is.
func (t *translation) pendingResize(remote *corev1.PodCondition) *corev1.PodCondition {
	if t.in.ResizePending != nil {
		return t.in.ResizePending
	}
	if shown := condition(t.local.Status.Conditions, corev1.PodResizePending); shown != nil && t.in.SizeUnknown {
		return shown
	}
	return remote
}

// change shows which change the provider does not take. Until it was asked, which a restart begins with, what is shown stays.
func (t *translation) change() {
	switch {
	case t.in.ChangeRefused != nil:
		c := *t.in.ChangeRefused
		c.LastTransitionTime = t.now
		t.set(c)
	case t.in.ChangesTaken:
		t.drop(offloadingv1beta1.ChangeRefusedCondition)
	}
}

// without says what the pod does without; with an empty message it does not, and nothing says so any more.
func (t *translation) without(kind corev1.PodConditionType, reason, message string) {
	if message == "" {
		t.drop(kind)
		return
	}
	t.set(corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: t.now})
}

// drop takes a condition away.
func (t *translation) drop(conditionType corev1.PodConditionType) {
	t.out.Conditions = slices.DeleteFunc(t.out.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType })
}

// sized tells whether all containers are shown with what they have. Where that is not known, a size that can never be had must
// not be shown as such: Kubernetes then counts what containers have, and would count nothing.
func (t *translation) sized() bool {
	for _, list := range [][]corev1.ContainerStatus{t.out.InitContainerStatuses, t.out.ContainerStatuses} {
		for i := range list {
			if list[i].Resources == nil || list[i].AllocatedResources == nil {
				return false
			}
		}
	}
	return true
}

// dropResize takes away a condition about a resize that is over: a kubelet removes it then.
func (t *translation) dropResize(conditionType corev1.PodConditionType) {
	if conditionType == corev1.PodResizePending || conditionType == corev1.PodResizeInProgress {
		t.drop(conditionType)
	}
}

// NotRequested tells whether a pod's status says that the provider was never asked for the pod.
func NotRequested(status *corev1.PodStatus) bool {
	c := condition(status.Conditions, offloadingv1beta1.RemotePodCondition)
	return c != nil && c.Status == corev1.ConditionFalse
}

// WithRequest is a status that says so, or does not say so any more.
func WithRequest(status *corev1.PodStatus, requested bool, now time.Time) corev1.PodStatus {
	out := *status.DeepCopy()
	out.Conditions = slices.DeleteFunc(out.Conditions, func(c corev1.PodCondition) bool { return c.Type == offloadingv1beta1.RemotePodCondition })
	if !requested {
		out.Conditions = append(out.Conditions, corev1.PodCondition{
			Type: offloadingv1beta1.RemotePodCondition, Status: corev1.ConditionFalse, LastTransitionTime: seconds(now),
			Reason: offloadingv1beta1.ReasonNotRequested, Message: "the provider was not asked for the pod yet",
		})
	}
	return out
}

// judge takes away readiness that the provider cannot decide about, or that cannot be believed.
func (t *translation) judge(c *corev1.PodCondition) {
	if c.Type != corev1.PodReady && c.Type != corev1.ContainersReady || c.Status != corev1.ConditionTrue {
		return
	}
	not := func(reason, message string) {
		c.Status, c.Reason, c.Message, c.LastTransitionTime = corev1.ConditionFalse, reason, message, t.now
	}
	switch {
	case t.replacing():
		not(offloadingv1beta1.ReasonRemotePodMissing, remoteReplaced)
	case Terminal(t.out.Phase):
		not(endedReasons[t.out.Phase], "")
	case c.Type != corev1.PodReady:
	case t.lie:
		not(offloadingv1beta1.ReasonInvalidRemoteStatus, "the provider's report about the pod cannot be true")
	case t.local.Labels[offloadingv1beta1.RemoteUnavailableLabel] == "true":
		not(offloadingv1beta1.ReasonRemoteUnavailable, "the provider cluster does not answer")
	case t.in.NetworkDown:
		not(offloadingv1beta1.ReasonNetworkUnavailable, "the tunnel to the provider does not work, so the pod is not reached from this cluster")
	case t.in.NetworkWatched && CutOff(t.remote):
		not(offloadingv1beta1.ReasonNetworkUnavailable, NodeCutOff)
	case len(OpenGates(t.local)) > 0:
		not(offloadingv1beta1.ReasonReadinessGatesNotReady, bounded("waiting for readiness gates: "+strings.Join(OpenGates(t.local), ", ")))
	}
}

// NodeCutOff is the message of pods on a node of the provider to which no packet of this cluster comes.
const NodeCutOff = "the provider's network does not lead from its gateway to the node that the pod runs on, so the pod is not reached from this cluster"

// CutOff tells whether the provider says that no packet of this cluster comes to the node of a remote pod.
func CutOff(remote *corev1.Pod) bool {
	c := condition(remote.Status.Conditions, offloadingv1beta1.ReachableCondition)
	return c != nil && c.Status == corev1.ConditionFalse
}

// OpenGates lists the readiness gates of a local pod that are not met. Controllers of this cluster set them, on that pod.
func OpenGates(local *corev1.Pod) []string {
	var open []string
	for _, gate := range local.Spec.ReadinessGates {
		if c := condition(local.Status.Conditions, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			open = append(open, string(gate.ConditionType))
		}
	}
	return open
}

// report shows what was refused, as a condition of its own.
func (t *translation) report() {
	if len(t.refused) == 0 {
		t.drop(offloadingv1beta1.InvalidRemoteStatusCondition)
		return
	}
	parts := make([]string, len(t.refused))
	for i, r := range t.refused {
		parts[i] = r.Field + ": " + r.Message
	}
	t.set(corev1.PodCondition{
		Type: offloadingv1beta1.InvalidRemoteStatusCondition, Status: corev1.ConditionTrue,
		Reason: offloadingv1beta1.ReasonInvalidRemoteStatus, Message: bounded(strings.Join(parts, "; ")),
		LastTransitionTime: t.now,
	})
}

// set puts a condition in its place. Its transition time counts only when the status changes.
func (t *translation) set(c corev1.PodCondition) {
	old := condition(t.out.Conditions, c.Type)
	if old == nil {
		c.LastTransitionTime = t.clamped(c.LastTransitionTime, metav1.Time{})
		t.out.Conditions = append(t.out.Conditions, c)
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	} else {
		c.LastTransitionTime = t.clamped(c.LastTransitionTime, metav1.Time{})
		if c.LastTransitionTime.Before(&old.LastTransitionTime) {
			// It was this cluster that said otherwise meanwhile: minReadySeconds counts from now.
			c.LastTransitionTime = t.now
		}
	}
	// What others know about the condition stays.
	c.ObservedGeneration = old.ObservedGeneration
	*old = c
}

// setAll puts a condition's status and reason on the given types where they are True, as a virtual kubelet does by itself.
func setAllFalse(status *corev1.PodStatus, now metav1.Time, reason, message string, types ...corev1.PodConditionType) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if slices.Contains(types, c.Type) && c.Status == corev1.ConditionTrue {
			c.Status, c.Reason, c.Message, c.LastTransitionTime = corev1.ConditionFalse, reason, corev1beta1.BoundMessage(message), now
		}
	}
}
