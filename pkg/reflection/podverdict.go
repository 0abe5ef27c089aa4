package reflection

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// readiness are the conditions that a pod loses when nothing is known to run.
var readiness = []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady}

// WaitingStatus is the status of a pod that has not started and may not: Pending, with the reason and what to do about it.
func WaitingStatus(local *corev1.Pod, reason, message string, now time.Time) corev1.PodStatus {
	status := *local.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = corev1.PodPending, reason, bounded(message)
	setAllFalse(&status, seconds(now), reason, bounded(message), readiness...)
	return status
}

// AbortedStatus is the status of a pod that ran when its namespace stopped to be offloaded: Failed, so that controllers
// replace it.
func AbortedStatus(local *corev1.Pod, message string, now time.Time) corev1.PodStatus {
	return EndedStatus(local, offloadingv1beta1.ReasonOffloadingAborted, message, now)
}

// EndedStatus is the status of a pod that failed because its remote pod was taken away, for the given reason.
func EndedStatus(local *corev1.Pod, reason, message string, now time.Time) corev1.PodStatus {
	status := *local.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = corev1.PodFailed, reason, bounded(message)
	endContainers(&status, 137, reason, seconds(now))
	setAllFalse(&status, seconds(now), reason, bounded(message),
		append([]corev1.PodConditionType{corev1.PodReadyToStartContainers}, readiness...)...)
	return status
}

// MissingStatus is the status of a pod whose remote pod is gone and has to be made again by the provider.
func MissingStatus(local *corev1.Pod, message string, now time.Time) corev1.PodStatus {
	status := *local.Status.DeepCopy()
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = false
	}
	setAllFalse(&status, seconds(now), offloadingv1beta1.ReasonRemotePodMissing, bounded(message), readiness...)
	return status
}

// UnreachableStatus is the status of a pod that runs at a provider which does not answer, or does not tell us any more: it may well
// run, but nobody here can say that it is ready. Kubernetes' node controller does the same to the pods of a node that it misses.
func UnreachableStatus(local *corev1.Pod, reason, message string, now time.Time) corev1.PodStatus {
	status := *local.Status.DeepCopy()
	setAllFalse(&status, seconds(now), reason, bounded(message), corev1.PodReady)
	// One that was not ready before says why nothing more is known of it now, too.
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodReady {
			c.Reason, c.Message = reason, bounded(message)
		}
	}
	return status
}

// FinishedStatus is the status of a pod that the provider recorded as finished. The remote pod may be gone (nil); what is
// not recorded of its containers is made up from the phase.
func FinishedStatus(local, remote *corev1.Pod, record *offloadingv1beta1.ShadowPodStatus, in StatusInput) (corev1.PodStatus, []Refused) {
	if Terminal(local.Status.Phase) || !Terminal(record.Phase) {
		return *local.Status.DeepCopy(), nil
	}
	if remote != nil && Finished(&local.Spec, remote) && remote.Status.Phase == record.Phase {
		return LocalStatus(local, remote, in)
	}
	known := local.DeepCopy()
	t := newTranslation(known, &corev1.Pod{Status: corev1.PodStatus{Phase: record.Phase, ContainerStatuses: record.ContainerStatuses}}, in)
	t.finished, t.restarts = true, map[string]int32{}
	if _, restarts := remotePodOf(&local.Status); restarts != nil {
		t.restarts = restarts
	}
	t.phase()
	t.containers()
	exitCode := int32(0)
	if record.Phase == corev1.PodFailed {
		exitCode = 1
	}
	if len(t.out.ContainerStatuses) == 0 {
		t.out.ContainerStatuses = unknownContainers(local)
	}
	if endContainers(&t.out, exitCode, offloadingv1beta1.ReasonRemotePodTerminated, t.now) {
		t.out.Reason = offloadingv1beta1.ReasonRemotePodTerminated
		t.out.Message = "the remote pod is gone; how its containers ended is not known beyond its phase"
	}
	ready := meta.FindStatusCondition(record.Conditions, corev1beta1.ConditionReady)
	if ready != nil && ready.Reason == offloadingv1beta1.ReasonStoppedOnPartition {
		t.out.Reason, t.out.Message = ready.Reason, "the provider stopped the pod: it heard nothing of this cluster for as long as the pod says"
	}
	setAllFalse(&t.out, t.now, endedReasons[record.Phase], "", readiness...)
	return t.out, t.refused
}

// TerminatedStatus is the status of a deleted pod whose remote pod is gone, given all that is known of it. What is not known to have
// ended failed: a kubelet says so of containers that it cannot find, once the pod's init containers have ended.
func TerminatedStatus(local *corev1.Pod, known *corev1.PodStatus, now time.Time) corev1.PodStatus {
	if known == nil {
		known = &local.Status
	}
	status := *known.DeepCopy()
	if Terminal(status.Phase) {
		return status
	}
	if len(status.ContainerStatuses) == 0 {
		status.InitContainerStatuses, status.ContainerStatuses = waitingContainers(local.Spec.InitContainers), waitingContainers(local.Spec.Containers)
	}
	if initialized(local, &status) {
		endContainers(&status, lostExitCode, lostReason, metav1.Time{})
	}
	status.Phase = corev1.PodFailed
	setAllFalse(&status, seconds(now), endedReasons[corev1.PodFailed], "", append([]corev1.PodConditionType{corev1.PodReadyToStartContainers}, readiness...)...)
	return status
}

// RejectedStatus is the status of a pod that the node does not take, as a kubelet writes it.
func RejectedStatus(local *corev1.Pod, reason, message string) corev1.PodStatus {
	status := *local.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = corev1.PodFailed, reason, "Pod was rejected: "+message
	return status
}

// Host is what of a node decides whether it takes a pod.
type Host struct {
	// OS is its operating system; empty while it is not known.
	OS string
	// Allocatable is what its pods may request in all.
	Allocatable corev1.ResourceList
}

// HostOf is that of a virtual node.
func HostOf(node *corev1.Node) Host {
	return Host{OS: node.Labels[corev1.LabelOSStable], Allocatable: node.Status.Allocatable}
}

// WhyRejected tells why a node does not take a pod, as a kubelet's admission does; empty if it does, or if that is not known.
func WhyRejected(local *corev1.Pod, host Host) (reason, message string) {
	if wanted := local.Spec.NodeSelector[corev1.LabelOSStable]; host.OS != "" && wanted != "" && wanted != host.OS {
		return "PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
	}
	if wanted := local.Spec.OS; host.OS != "" && wanted != nil && wanted.Name != "" && string(wanted.Name) != host.OS {
		return "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
	}
	// No scheduler places such a pod, but whoever binds it by hand. Where there is nothing at all pods wait: a grant may come back.
	requests := resource.PodRequests(local, resource.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		requested, offered := requests[name], host.Allocatable[name]
		if offered.Sign() > 0 && requested.Cmp(offered) > 0 {
			return "OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %s, capacity: %s", name, &requested, &offered)
		}
	}
	return "", ""
}

// endedReasons are why a kubelet says that a pod that ended is not ready.
var endedReasons = map[corev1.PodPhase]string{corev1.PodFailed: "PodFailed", corev1.PodSucceeded: "PodCompleted"}

// How a kubelet says that it does not know how a container ended, and that one was never started.
const (
	waitReason   = "PodInitializing"
	lostExitCode = 137
	lostReason   = "ContainerStatusUnknown"
	lostMessage  = "The container could not be located when the pod was terminated"
)

func unknownContainers(local *corev1.Pod) []corev1.ContainerStatus {
	list := make([]corev1.ContainerStatus, len(local.Spec.Containers))
	for i := range local.Spec.Containers {
		list[i] = corev1.ContainerStatus{Name: local.Spec.Containers[i].Name, Image: local.Spec.Containers[i].Image}
	}
	return list
}

// waitingContainers is what a pod shows of containers that were never started.
func waitingContainers(containers []corev1.Container) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for i := range containers {
		list = append(list, corev1.ContainerStatus{Name: containers[i].Name, Image: containers[i].Image, Started: new(false),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waitReason}}})
	}
	return list
}

// initialized tells whether nothing keeps the pod's containers from being started, by the rule of a kubelet.
func initialized(local *corev1.Pod, status *corev1.PodStatus) bool {
	if len(local.Spec.InitContainers) == 0 {
		return true
	}
	if slices.ContainsFunc(status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	}) {
		return true
	}
	if len(status.InitContainerStatuses) == 0 {
		return false
	}
	last := status.InitContainerStatuses[len(status.InitContainerStatuses)-1]
	succeeded := func(s corev1.ContainerState) bool { return s.Terminated != nil && s.Terminated.ExitCode == 0 }
	return last.State.Running != nil && ptr.Deref(last.Started, false) || succeeded(last.State) || succeeded(last.LastTerminationState)
}

// endContainers gives containers that did not end an end, and tells whether there were any.
func endContainers(status *corev1.PodStatus, exitCode int32, reason string, now metav1.Time) bool {
	any := false
	for i := range status.ContainerStatuses {
		if c := &status.ContainerStatuses[i]; c.State.Terminated == nil {
			endContainer(c, exitCode, reason, now)
			any = true
		}
		status.ContainerStatuses[i].Ready = false
	}
	// Those that never ran did not end either.
	for i := range status.InitContainerStatuses {
		if c := &status.InitContainerStatuses[i]; c.State.Running != nil {
			endContainer(c, exitCode, reason, now)
		}
	}
	return any
}

func endContainer(c *corev1.ContainerStatus, exitCode int32, reason string, now metav1.Time) {
	end := &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason, FinishedAt: now, StartedAt: now, ContainerID: c.ContainerID}
	if reason == lostReason {
		end.Message = lostMessage
	}
	if c.State.Running != nil {
		end.StartedAt = c.State.Running.StartedAt
	}
	c.Ready, c.State = false, corev1.ContainerState{Terminated: end}
	if c.Started != nil {
		c.Started = new(false)
	}
}

func seconds(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second)) }

// MayEnd tells whether a pod can come to an end by itself: whether none of its containers is started again whatever its exit code, or an
// init container may fail for good. A container's own policy goes before the pod's.
func MayEnd(spec *corev1.PodSpec) bool {
	for i := range spec.InitContainers {
		if policyOf(spec, &spec.InitContainers[i]) == corev1.RestartPolicyNever {
			return true
		}
	}
	return !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return policyOf(spec, &c) == corev1.RestartPolicyAlways })
}

// endedForGood tells whether a kubelet starts none of a pod's containers again, given how they ended. Of one whose end is not known its
// policy decides: it is not started again unless it always is.
func endedForGood(spec *corev1.PodSpec, status *corev1.PodStatus) bool {
	return initFailed(spec, status) != nil || !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
		ended := endOf(status.ContainerStatuses, c.Name)
		return ended != nil && restarts(spec, &c, ended.ExitCode) || ended == nil && policyOf(spec, &c) == corev1.RestartPolicyAlways
	})
}

// initFailed is the end of an init container that failed for good; nil if none did.
func initFailed(spec *corev1.PodSpec, status *corev1.PodStatus) *corev1.ContainerStateTerminated {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if ended := endOf(status.InitContainerStatuses, c.Name); ended != nil && ended.ExitCode != 0 && !restarts(spec, c, ended.ExitCode) {
			return ended
		}
	}
	return nil
}

// endedBefore tells whether all that had to end of a pod ended before somebody asked for its deletion. In the second of the request itself
// nobody can tell what came first: then the deletion counts as the cause. Sidecars are stopped once the others ended, and do not count.
func endedBefore(spec *corev1.PodSpec, pod *corev1.Pod) bool {
	// The timestamp is when the grace period ends; the kubelet's last call sets the period to 0 and moves the timestamp back.
	requested := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		requested = requested.Add(-time.Duration(*grace) * time.Second)
	}
	before := func(ended *corev1.ContainerStateTerminated) bool {
		return ended != nil && !ended.FinishedAt.IsZero() && ended.FinishedAt.Time.Before(requested)
	}
	if before(initFailed(spec, &pod.Status)) {
		return true
	}
	return len(pod.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return !before(c.State.Terminated)
	})
}

// mayRunAgain tells whether a container of a pod may run again that ended with the given exit code: by its own policy, or because another
// one's end has all of them start anew.
func mayRunAgain(spec *corev1.PodSpec, name string, exitCode int32) bool {
	all := slices.Concat(spec.InitContainers, spec.Containers)
	if slices.ContainsFunc(all, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(rule corev1.ContainerRestartRule) bool {
			return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	}) {
		return true
	}
	return slices.ContainsFunc(all, func(c corev1.Container) bool { return c.Name == name && restarts(spec, &c, exitCode) })
}

// restarts tells whether a kubelet starts a container again that ended with the given exit code: the first rule of the container that is
// about the code decides, else the container's policy, else the pod's. A rule counts only in a container that has a policy.
func restarts(spec *corev1.PodSpec, c *corev1.Container, exitCode int32) bool {
	if c.RestartPolicy != nil {
		for _, rule := range c.RestartPolicyRules {
			if ruleHolds(rule, exitCode) {
				return true // both actions that there are start the container again
			}
		}
	}
	switch policyOf(spec, c) {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}

func ruleHolds(rule corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil || rule.Action != corev1.ContainerRestartRuleActionRestart && rule.Action != corev1.ContainerRestartRuleActionRestartAllContainers {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	default:
		return false
	}
}

// policyOf is when a container is started again if no rule says otherwise.
func policyOf(spec *corev1.PodSpec, c *corev1.Container) corev1.RestartPolicy {
	policy := spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
		return policy
	default:
		return corev1.RestartPolicyAlways
	}
}

// endOf is how a container ended; nil if it runs, or if its end is not known.
func endOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStateTerminated {
	if status := containerStatus(statuses, name); status != nil {
		return status.State.Terminated
	}
	return nil
}
