package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the EndpointSlices of a Service say of its only pod.
const (
	saysNothing   = "no endpoint"
	saysReady     = "ready=true serving=true terminating=false"
	saysWaits     = "ready=false serving=false terminating=false"
	saysPublished = "ready=true serving=false terminating=false"
	saysLeaves    = "ready=false serving=true terminating=true"
	saysLeft      = "ready=false serving=false terminating=true"
)

// lingers goes on after SIGTERM, which it notes, until it is let go.
const (
	lingers = `trap 'touch /memory/told' TERM; until test -e /memory/end; do sleep 1 & wait $!; done`
	// letGo does so once nobody waits in the container any more, who would be killed with it.
	letGo = "(sleep 1; touch /memory/end) >/dev/null 2>&1 &"
	// servesUntilTold answers its probe until SIGTERM. It is asked by HTTP: on either node a probe that is a command was seen to hang in a
	// container that is being stopped, which leaves the pod ready.
	servesUntilTold = "touch /memory/up; httpd -p 8080 -h /memory; trap 'rm /memory/up; touch /memory/told' TERM; " +
		"until test -e /memory/end; do sleep 1 & wait $!; done"
	// untilLetGo ends by itself, with the exit code that follows.
	untilLetGo = "until test -e /memory/end; do sleep 1; done; exit "
)

// gate is a readiness gate that nobody meets but the test.
const gate corev1.PodConditionType = "example.com/gate"

// TestEndpointsOfPods shows that Services take and leave a pod on the virtual node just when they do so with one on a physical node beside it, and
// that the provider's copies of those Services say the same.
func TestEndpointsOfPods(t *testing.T) {
	the.shared(t)
	const namespace = "endpoints"
	twin := the.offloaded(t, namespace)
	does := func(container, script string) func(*testing.T, string) {
		return func(t *testing.T, pod string) {
			the.kubectl(t, the.rome, soon, "exec", "-n", namespace, pod, "-c", container, "--", "sh", "-c", script).succeeds(t)
		}
	}
	meets := func(status corev1.ConditionStatus) func(*testing.T, string) {
		return func(t *testing.T, pod string) { meetsGate(t, namespace, pod, status) }
	}
	deleted := func(t *testing.T, pod string) { toldToEnd(t, namespace, pod) }
	ended := func(t *testing.T, pod string) {
		does("main", letGo)(t, pod)
		ends(t, namespace, twin, pod)
	}
	type step struct {
		// does is what is done to each pod; nil if it is only looked at.
		does func(t *testing.T, pod string)
		want string
	}
	cases := map[string]struct {
		script string
		// change makes a pod of busybox what the case is about.
		change  func(*corev1.PodSpec)
		publish bool
		steps   []step
	}{
		"ready":     {script: forever, steps: []step{{nil, saysReady}}},
		"not-ready": {script: forever, change: readyBy("false"), steps: []step{{nil, saysWaits}}},
		"now-and-then": {script: forever, change: readyBy("test -e /memory/ready"),
			steps: []step{{nil, saysWaits}, {does("main", "touch /memory/ready"), saysReady}, {does("main", "rm /memory/ready"), saysWaits}}},
		"gate": {script: forever, change: gated,
			steps: []step{{nil, saysWaits}, {meets(corev1.ConditionTrue), saysReady}, {meets(corev1.ConditionFalse), saysWaits}}},
		"starts": {script: forever, change: startedBy("test -e /memory/up"),
			steps: []step{{nil, saysWaits}, {does("main", "touch /memory/up"), saysReady}}},
		"init":      {script: forever, change: initialised, steps: []step{{nil, saysWaits}, {does("init", "touch /memory/end"), saysReady}}},
		"published": {script: forever, change: readyBy("false"), publish: true, steps: []step{{nil, saysPublished}}},
		"published-init": {script: forever, change: initialised, publish: true,
			steps: []step{{nil, saysPublished}, {does("init", "touch /memory/end"), saysReady}}},
		"serves-to-end":  {script: lingers, steps: []step{{nil, saysReady}, {deleted, saysLeaves}, {does("main", letGo), saysNothing}}},
		"serves-in-hook": {script: forever, change: hooked, steps: []step{{nil, saysReady}, {deleted, saysLeaves}, {does("main", letGo), saysNothing}}},
		"serves-no-more": {script: servesUntilTold, change: readyByHTTP,
			steps: []step{{nil, saysReady}, {deleted, saysLeft}, {does("main", letGo), saysNothing}}},
		"never-served": {script: lingers, change: readyBy("false"),
			steps: []step{{nil, saysWaits}, {deleted, saysLeft}, {does("main", letGo), saysNothing}}},
		"gate-to-end": {script: lingers, change: gated,
			steps: []step{{nil, saysWaits}, {meets(corev1.ConditionTrue), saysReady}, {deleted, saysLeaves}, {does("main", letGo), saysNothing}}},
		"published-to-end": {script: lingers, publish: true,
			steps: []step{{nil, saysReady}, {deleted, "ready=true serving=true terminating=true"}, {does("main", letGo), saysNothing}}},
		"succeeded": {script: untilLetGo + "0", change: onlyOnce, steps: []step{{nil, saysReady}, {ended, saysNothing}}},
		"failed":    {script: untilLetGo + "3", change: onlyOnce, publish: true, steps: []step{{nil, saysReady}, {ended, saysNothing}}},
	}
	nodes := map[string]map[string]string{"here": {corev1.LabelHostname: physicalNode(t)}, "there": remotely}
	for name, tc := range cases {
		for where, selected := range nodes {
			service := serviceOf(namespace, name+"-"+where, corev1.ServiceTypeClusterIP)
			service.Spec.PublishNotReadyAddresses = tc.publish
			spec := withMemory(tc.script)
			spec.NodeSelector = selected
			if tc.change != nil {
				tc.change(&spec)
			}
			the.rome.creates(t, service, podOf(namespace, name+"-"+where, spec))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			the.recordFailure(t)
			for where := range nodes {
				begins(t, len(cases), namespace, name+"-"+where)
			}
			for i, s := range cases[name].steps {
				for where := range nodes {
					if s.does != nil {
						s.does(t, name+"-"+where)
					}
				}
				eventually(t, soon, fmt.Sprintf("%q of the pods on both nodes, in both clusters, at step %d", s.want, i), func(ctx context.Context) (bool, string) {
					same, seen := true, map[string]string{}
					for where := range nodes {
						for c, in := range map[*side]string{the.rome: namespace, the.milan: twin} {
							said := c.endpointsOf(ctx, in, name+"-"+where)
							seen[where+", at "+c.name] = said
							same = same && said == s.want
						}
					}
					return same, fmt.Sprintf("%q", seen)
				})
			}
		})
	}
	// Kubernetes looks again at a namespace that goes once half of the longest grace period of its pods is over.
	for name := range cases {
		for where := range nodes {
			the.rome.deletes(t, &corev1.Pod{ObjectMeta: named(namespace, name+"-"+where)}, client.GracePeriodSeconds(1))
		}
	}
	the.rome.empties(t, namespace)
}

// withMemory is the spec of a pod with a folder that outlives its containers, and with time to end.
func withMemory(text string) corev1.PodSpec {
	spec := script(text)
	spec.TerminationGracePeriodSeconds = ptr.To[int64](300)
	spec.Volumes = []corev1.Volume{{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "memory", MountPath: "/memory"}}
	return spec
}

func shell(text string) *corev1.ExecAction {
	return &corev1.ExecAction{Command: []string{"sh", "-c", text}}
}

// probed looks every second, and believes what it sees.
func probed(text string) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: shell(text)}, PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 10}
}

func readyBy(text string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.Containers[0].ReadinessProbe = probed(text) }
}

func readyByHTTP(spec *corev1.PodSpec) {
	spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 10,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/up", Port: intstr.FromInt32(8080)}}}
}

func startedBy(text string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].StartupProbe = probed(text)
		// Until then it is no failure.
		spec.Containers[0].StartupProbe.FailureThreshold = 10000
	}
}

func gated(spec *corev1.PodSpec) {
	spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
}

func onlyOnce(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyNever }

func initialised(spec *corev1.PodSpec) {
	first := container(lingers)
	first.Name, first.VolumeMounts = "init", spec.Containers[0].VolumeMounts
	spec.InitContainers = []corev1.Container{first}
}

func hooked(spec *corev1.PodSpec) {
	spec.Containers[0].Lifecycle = &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Exec: shell("touch /memory/told; until test -e /memory/end; do sleep 1; done")},
	}
}

// begins waits until a pod is shown to run a container.
func begins(t *testing.T, count int, namespace, name string) {
	t.Helper()
	eventually(t, forPods(count), "pod "+name+" to run", func(ctx context.Context) (bool, string) {
		pod := &corev1.Pod{}
		if err := the.rome.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
			return c.State.Running != nil
		}), describe([]corev1.Pod{*pod})
	})
}

// meetsGate writes the condition that a pod's readiness gate is about, as a controller at home does.
func meetsGate(t *testing.T, namespace, name string, status corev1.ConditionStatus) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, gate, status)
	pod := &corev1.Pod{ObjectMeta: named(namespace, name)}
	if err := the.rome.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatalf("writing condition %s of pod %s: %v", gate, name, err)
	}
}

// toldToEnd deletes a pod, and waits until its program or its hook knows.
func toldToEnd(t *testing.T, namespace, name string) {
	t.Helper()
	the.rome.deletes(t, &corev1.Pod{ObjectMeta: named(namespace, name)})
	eventually(t, soon, "pod "+name+" to be told to end", func(context.Context) (bool, string) {
		o, err := perform(soon, the.kubectlCommand(the.rome, "exec", "-n", namespace, name, "-c", "main", "--", "test", "-e", "/memory/told"))
		return err == nil && o.code == 0, fmt.Sprintf("%s %v", o, err)
	})
}

// ends waits until a pod has ended, and has Kubernetes look at its Service again, in both clusters. By itself it does not: kubelets say that a pod
// is not ready before they say that it ended, which changes nothing for Services any more.
func ends(t *testing.T, namespace, twin, name string) {
	t.Helper()
	eventually(t, soon, "pod "+name+" to end", func(ctx context.Context) (bool, string) {
		pod := &corev1.Pod{}
		if err := the.rome.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
			return false, err.Error()
		}
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed, describe([]corev1.Pod{*pod})
	})
	service := serviceOf(namespace, name, corev1.ServiceTypeClusterIP)
	looks := 0
	eventually(t, soon, "Services to leave pod "+name+", which has ended", func(ctx context.Context) (bool, string) {
		// Whoever looked too early is asked again.
		looks++
		the.rome.changes(t, service, func() { service.Labels = map[string]string{"look": fmt.Sprint(looks)} })
		home, there := the.rome.endpointsOf(ctx, namespace, name), the.milan.endpointsOf(ctx, twin, name)
		return home == saysNothing && there == saysNothing, fmt.Sprintf("at home %q, at the provider %q", home, there)
	})
}

// endpointsOf is what the EndpointSlices of a Service say of each of its endpoints.
func (c *side) endpointsOf(ctx context.Context, namespace, service string) string {
	list := &discoveryv1.EndpointSliceList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return err.Error()
	}
	if len(list.Items) == 0 {
		return "no EndpointSlice"
	}
	var said []string
	for i := range list.Items {
		for _, e := range list.Items[i].Endpoints {
			said = append(said, fmt.Sprintf("ready=%t serving=%t terminating=%t",
				ptr.Deref(e.Conditions.Ready, true), ptr.Deref(e.Conditions.Serving, true), ptr.Deref(e.Conditions.Terminating, false)))
		}
	}
	if len(said) == 0 {
		return saysNothing
	}
	return strings.Join(said, " and ")
}
