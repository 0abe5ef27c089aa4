package reflection

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

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
