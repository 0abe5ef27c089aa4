package reflection

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func contained(name string, policy corev1.ContainerRestartPolicy, rules ...corev1.ContainerRestartRule) corev1.Container {
	c := corev1.Container{Name: name, RestartPolicyRules: rules}
	if policy != "" {
		c.RestartPolicy = &policy
	}
	return c
}

func rule(action corev1.ContainerRestartRuleAction, operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes}}
}

// What decides whether a pod is over: the pod's policy, its containers' own, and their rules, as a kubelet reads them.
func TestWhatEndsForGood(t *testing.T) {
	const always, onFailure, never = corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	const restart, all = corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers
	type list = []corev1.Container
	for name, tc := range map[string]struct {
		pod              corev1.RestartPolicy
		init, containers list
		// codes of init containers and containers that ended.
		codes                map[string]int32
		phase                corev1.PodPhase
		mayEnd, ended, again bool
	}{
		"Always":    {pod: corev1.RestartPolicyAlways, containers: list{contained("app", "")}, codes: map[string]int32{"app": 0}, phase: corev1.PodSucceeded, again: true},
		"no policy": {containers: list{contained("app", "")}, codes: map[string]int32{"app": 0}, phase: corev1.PodSucceeded, again: true},
		"Always, but Never for its only container": {pod: corev1.RestartPolicyAlways, containers: list{contained("app", never)}, codes: map[string]int32{"app": 3},
			phase: corev1.PodFailed, mayEnd: true, ended: true},
		"Always, but Never for one of two": {pod: corev1.RestartPolicyAlways, containers: list{contained("app", never), contained("log", "")},
			codes: map[string]int32{"app": 0, "log": 0}, phase: corev1.PodSucceeded},
		"Always, but OnFailure for its only container, which succeeded": {pod: corev1.RestartPolicyAlways, containers: list{contained("app", onFailure)},
			codes: map[string]int32{"app": 0}, phase: corev1.PodSucceeded, mayEnd: true, ended: true},
		"Always, but OnFailure for its only container, which failed": {pod: corev1.RestartPolicyAlways, containers: list{contained("app", onFailure)},
			codes: map[string]int32{"app": 1}, phase: corev1.PodFailed, mayEnd: true, again: true},
		"Never, but OnFailure for a container, which failed": {pod: corev1.RestartPolicyNever, containers: list{contained("app", onFailure)},
			codes: map[string]int32{"app": 1}, phase: corev1.PodFailed, mayEnd: true, again: true},
		"Never, but Always for a container": {pod: corev1.RestartPolicyNever, containers: list{contained("app", always)},
			codes: map[string]int32{"app": 0}, phase: corev1.PodSucceeded, again: true},
		"Never, with a rule for another exit code": {pod: corev1.RestartPolicyNever, containers: list{contained("app", never, rule(restart, in, 42))},
			codes: map[string]int32{"app": 1}, phase: corev1.PodFailed, mayEnd: true, ended: true},
		"Never, with a rule for its exit code": {pod: corev1.RestartPolicyNever, containers: list{contained("app", never, rule(restart, in, 42))},
			codes: map[string]int32{"app": 42}, phase: corev1.PodFailed, mayEnd: true, again: true},
		"Never, with a rule for all exit codes but one": {pod: corev1.RestartPolicyNever, containers: list{contained("app", never, rule(restart, notIn, 42))},
			codes: map[string]int32{"app": 1}, phase: corev1.PodFailed, mayEnd: true, again: true},
		"Never, with a rule that restarts all": {pod: corev1.RestartPolicyNever, containers: list{contained("app", never), contained("boss", never, rule(all, in, 42))},
			codes: map[string]int32{"app": 0, "boss": 1}, phase: corev1.PodFailed, mayEnd: true, ended: true, again: true},
		"a rule without a policy of its container": {pod: corev1.RestartPolicyNever, containers: list{contained("app", "", rule(restart, in, 42))},
			codes: map[string]int32{"app": 42}, phase: corev1.PodFailed, mayEnd: true, ended: true},
		"an unknown action": {pod: corev1.RestartPolicyNever, containers: list{contained("app", never, rule("Explode", in, 42))},
			codes: map[string]int32{"app": 42}, phase: corev1.PodFailed, mayEnd: true, ended: true},
		"Never, and a sidecar": {pod: corev1.RestartPolicyNever, init: list{contained("side", always)}, containers: list{contained("app", "")},
			codes: map[string]int32{"side": 137, "app": 0}, phase: corev1.PodSucceeded, mayEnd: true, ended: true},
		"Always, and an init container that may fail once, and did": {pod: corev1.RestartPolicyAlways, init: list{contained("init", never)}, containers: list{contained("app", "")},
			codes: map[string]int32{"init": 1}, phase: corev1.PodFailed, mayEnd: true, ended: true},
		"Always, and an init container that failed": {pod: corev1.RestartPolicyAlways, init: list{contained("init", "")}, containers: list{contained("app", "")},
			codes: map[string]int32{"init": 1}, phase: corev1.PodFailed, again: true},
		"Never, and an init container that is tried again": {pod: corev1.RestartPolicyNever, init: list{contained("init", onFailure)}, containers: list{contained("app", always)},
			codes: map[string]int32{"init": 1}, phase: corev1.PodFailed},
		"OnFailure, and the end of its container is not known": {pod: corev1.RestartPolicyOnFailure, containers: list{contained("app", ""), contained("log", "")},
			codes: map[string]int32{"app": 0}, phase: corev1.PodSucceeded, mayEnd: true, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tc.pod, InitContainers: tc.init, Containers: tc.containers}, Status: corev1.PodStatus{Phase: tc.phase}}
			fill := func(containers list) (statuses []corev1.ContainerStatus) {
				for _, c := range containers {
					status := corev1.ContainerStatus{Name: c.Name}
					if code, is := tc.codes[c.Name]; is {
						status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: ago(time.Minute)}
					}
					statuses = append(statuses, status)
				}
				return statuses
			}
			pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = fill(tc.init), fill(tc.containers)
			if got := MayEnd(&pod.Spec); got != tc.mayEnd {
				t.Errorf("may end: %t", got)
			}
			if got := Finished(&pod.Spec, pod); got != tc.ended {
				t.Errorf("finished: %t", got)
			}
			if code, is := tc.codes["app"]; is && mayRunAgain(&pod.Spec, "app", code) != tc.again && len(tc.containers) == 1 {
				t.Errorf("its container may run again: %t", !tc.again)
			}
		})
	}
}

// A container that may run again is shown running again, whatever the pod's policy; one that may not is shown as it ended.
func TestContainersRunAgainAsTheirOwnPolicySays(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   corev1.RestartPolicy
		own   corev1.ContainerRestartPolicy
		code  int32
		stays bool
	}{
		"Never, but OnFailure, and it failed":     {corev1.RestartPolicyNever, corev1.ContainerRestartPolicyOnFailure, 1, false},
		"Never, but OnFailure, and it succeeded":  {corev1.RestartPolicyNever, corev1.ContainerRestartPolicyOnFailure, 0, true},
		"Always, but Never":                       {corev1.RestartPolicyAlways, corev1.ContainerRestartPolicyNever, 1, true},
		"OnFailure, but Always, and it succeeded": {corev1.RestartPolicyOnFailure, corev1.ContainerRestartPolicyAlways, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(p *corev1.Pod) { p.Spec.RestartPolicy, p.Spec.Containers[0].RestartPolicy = tc.pod, &tc.own }
			local := localPod(corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: ended(tc.code)}}}, change)
			status, _ := LocalStatus(local, remotePod(running("10.1.0.7", 1), change), plainInput)
			if stays := status.ContainerStatuses[0].State.Terminated != nil; stays != tc.stays {
				t.Errorf("stays = %v", stays)
			}
		})
	}
	// A sidecar is started again in a pod whose other containers never are.
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever; withInit(p) }
	local, remote := localPod(running("10.1.0.7", 0), never), remotePod(running("10.1.0.7", 0), never)
	local.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "side", State: ended(1)}}
	remote.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "side", Ready: true, RestartCount: 1, State: runs()}}
	if status, _ := LocalStatus(local, remote, plainInput); status.InitContainerStatuses[0].State.Running == nil {
		t.Errorf("a sidecar that was started again is shown as %+v", status.InitContainerStatuses[0].State)
	}
}
