package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// once fails with a code the first time, and then succeeds.
func once(code int) string {
	return fmt.Sprintf("test -e /memory/done && exit 0; touch /memory/done; exit %d", code)
}

// afresh fails the first time, and runs for ever when it is started again, which awaited waits for: what ends first is no matter of chance.
const (
	afresh  = `test -e /memory/done || { touch /memory/done; exit 1; }; trap 'exit 0' TERM; touch /memory/again; ` + forever
	awaited = `until test -e /memory/again; do sleep 1; done`
)

// TestRestartPolicies shows that a pod on the virtual node ends, goes on and is started again just as one on a physical node beside it: by
// the pod's policy, its containers' own, and their rules.
func TestRestartPolicies(t *testing.T) {
	the.shared(t)
	const namespace = "policies"
	the.offloaded(t, namespace)
	const always, onFailure, never = corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever
	type part struct {
		script string
		policy corev1.ContainerRestartPolicy
		// again are the exit codes after which a rule starts the container again.
		again []int32
		// all are those after which a rule starts all containers of the pod again.
		all []int32
	}
	cases := map[string]struct {
		policy     corev1.RestartPolicy
		init, main []part
		want       string
	}{
		"done":         {policy: corev1.RestartPolicyAlways, main: []part{{script: "exit 0", policy: never}}, want: "Succeeded main-0=0"},
		"failed":       {policy: corev1.RestartPolicyAlways, main: []part{{script: "exit 3", policy: never}}, want: "Failed main-0=3"},
		"done-at-last": {policy: corev1.RestartPolicyAlways, main: []part{{script: once(1), policy: onFailure}}, want: "Succeeded main-0=0 again 1"},
		"one-of-two":   {policy: corev1.RestartPolicyAlways, main: []part{{script: "exit 4", policy: never}, {script: forever}}, want: "Running main-0=4 main-1 runs"},
		"tries-again":  {policy: corev1.RestartPolicyNever, main: []part{{script: "sleep 1; exit 5", policy: onFailure}}, want: "Running again"},
		"by-a-rule":    {policy: corev1.RestartPolicyNever, main: []part{{script: once(42), policy: never, again: []int32{42}}}, want: "Succeeded main-0=0 again 1"},
		"by-no-rule":   {policy: corev1.RestartPolicyNever, main: []part{{script: once(41), policy: never, again: []int32{42}}}, want: "Failed main-0=41"},
		"all-by-a-rule": {policy: corev1.RestartPolicyNever, main: []part{{script: "test -e /memory/done && exit 0; " + forever}, {script: once(42), policy: never, all: []int32{42}}},
			want: "Succeeded main-0=0 again 1 main-1=0 again 1"},
		"on-failure":        {policy: corev1.RestartPolicyOnFailure, main: []part{{script: once(1)}}, want: "Succeeded main-0=0 again 1"},
		"with-a-sidecar":    {policy: corev1.RestartPolicyNever, init: []part{{script: forever, policy: always}}, main: []part{{script: "exit 0"}}, want: "Succeeded init-0=0 main-0=0"},
		"sidecar-restarts":  {policy: corev1.RestartPolicyNever, init: []part{{script: afresh, policy: always}}, main: []part{{script: awaited}}, want: "Succeeded init-0=0 again 1 main-0=0"},
		"init-fails":        {policy: corev1.RestartPolicyAlways, init: []part{{script: "exit 6", policy: never}}, main: []part{{script: forever}}, want: "Failed init-0=6 main-0 waits"},
		"init-tries-again":  {policy: corev1.RestartPolicyNever, init: []part{{script: once(1), policy: onFailure}}, main: []part{{script: "exit 0"}}, want: "Succeeded init-0=0 again 1 main-0=0"},
		"init-fails-always": {policy: corev1.RestartPolicyNever, init: []part{{script: "exit 7"}}, main: []part{{script: forever}}, want: "Failed init-0=7 main-0 waits"},
	}
	physical := physicalNode(t)
	nodes := map[string]map[string]string{"here": {corev1.LabelHostname: physical}, "there": remotely}
	for name, tc := range cases {
		for where, selected := range nodes {
			spec := script("")
			spec.NodeSelector, spec.RestartPolicy, spec.Containers = selected, tc.policy, nil
			spec.Volumes = []corev1.Volume{{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			make := func(kind string, parts []part) (containers []corev1.Container) {
				for i, p := range parts {
					c := container(p.script)
					c.Name = fmt.Sprintf("%s-%d", kind, i)
					c.VolumeMounts = []corev1.VolumeMount{{Name: "memory", MountPath: "/memory"}}
					if p.policy != "" {
						c.RestartPolicy = &p.policy
					}
					for action, codes := range map[corev1.ContainerRestartRuleAction][]int32{
						corev1.ContainerRestartRuleActionRestart: p.again, corev1.ContainerRestartRuleActionRestartAllContainers: p.all,
					} {
						if len(codes) > 0 {
							c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: action,
								ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: codes}}}
						}
					}
					containers = append(containers, c)
				}
				return containers
			}
			spec.InitContainers, spec.Containers = make("init", tc.init), make("main", tc.main)
			the.rome.creates(t, podOf(namespace, name+"-"+where, spec))
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			the.recordFailure(t)
			eventually(t, forPods(len(cases)), "the pods on both nodes to come to the same end", func(ctx context.Context) (bool, string) {
				ends := map[string]string{}
				for where := range nodes {
					pod := &corev1.Pod{}
					if err := the.rome.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-" + where}, pod); err != nil {
						return false, err.Error()
					}
					ends[where] = endOf(pod)
				}
				return ends["here"] == ends["there"] && strings.HasPrefix(ends["here"], tc.want), fmt.Sprintf("%q, want %q", ends, tc.want)
			})
		})
	}
}

// endOf says what has become of a pod: its phase, and how its containers ended. Of one that is started again and again only that is said.
func endOf(pod *corev1.Pod) string {
	words := []string{string(pod.Status.Phase)}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if pod.Status.Phase == corev1.PodRunning && c.RestartCount > 0 {
			return string(pod.Status.Phase) + " again"
		}
		switch {
		case c.State.Terminated != nil:
			words = append(words, fmt.Sprintf("%s=%d", c.Name, c.State.Terminated.ExitCode))
		case c.State.Running != nil:
			words = append(words, c.Name+" runs")
		default:
			words = append(words, c.Name+" waits")
		}
		if c.RestartCount > 0 {
			words = append(words, fmt.Sprintf("again %d", c.RestartCount))
		}
	}
	return strings.Join(words, " ")
}
