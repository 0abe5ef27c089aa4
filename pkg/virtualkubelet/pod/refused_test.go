package pod

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// says has the provider's controller write a condition of the ShadowPod; without a reason it says nothing any more.
func (w *world) says(conditionType, reason, message string) {
	w.t.Helper()
	w.atomic.Lock()
	defer w.atomic.Unlock()
	object, err := w.dyn.Tracker().Get(shadowpods.Resource, twinNamespace, "p")
	if err != nil {
		w.t.Fatal(err)
	}
	shadow := object.(*unstructured.Unstructured).DeepCopy()
	conditions := []any{}
	if reason != "" {
		conditions = append(conditions, map[string]any{"type": conditionType, "status": "True", "reason": reason, "message": message,
			"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": shadow.GetGeneration()})
	}
	if err := unstructured.SetNestedSlice(shadow.Object, conditions, "status", "conditions"); err != nil {
		w.t.Fatal(err)
	}
	if err := w.dyn.Tracker().Update(shadowpods.Resource, shadow, twinNamespace); err != nil {
		w.t.Fatal(err)
	}
}

// shown is what the local pod says in a condition; empty without it.
func (w *world) shown(conditionType corev1.PodConditionType) string {
	for _, c := range w.pod("p").Status.Conditions {
		if c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// restartsSilently restarts the virtual kubelet, which asks the provider for what it refused before, and writes nothing.
func (w *world) restartsSilently() {
	w.t.Helper()
	w.eventually("no status waits to be written", func() bool {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		return time.Since(w.r.memory.known("uid-1").written) > statusPace
	})
	w.calm()
	w.stop()
	before, asked := w.count(), len(w.dyn.Actions())
	w.start()
	w.offload()
	w.eventually("the pod was looked at", func() bool {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		return w.r.memory.known("uid-1").sized
	})
	w.calm()
	if after := w.count(); after != before {
		w.t.Errorf("a restart writes %v, after %v", w.writes[before:after], slices.Collect(patchesIn(w.dyn.Actions()[asked:])))
	}
}

func patchesIn(actions []clienttesting.Action) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, a := range actions {
			if patch, is := a.(clienttesting.PatchAction); is && !yield(string(patch.GetPatch())) {
				return
			}
		}
	}
}

// A size that the provider's webhook takes and its controller then refuses, because another claim was faster, is pending as any
// refused size is: until there is room, or the user wants it no more.
func TestASizeThatIsRefusedLateIsPending(t *testing.T) {
	w := newWorld(t)
	request := func(p *corev1.Pod, cpu string) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		p.Generation++
	}
	w.provider()
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) { request(p, "1") }))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	for _, end := range []string{"there is room", "it is withdrawn"} {
		w.update(func(p *corev1.Pod) { request(p, "9") })
		w.eventually("the ShadowPod asks for as much", func() bool { return w.shadow("p").Spec.Pod.Containers[0].Resources.Requests.Cpu().Value() == 9 })
		w.calm()
		if got := w.shown(corev1.PodResizePending); got != "" {
			t.Errorf("%s: before the refusal %q is shown", end, got)
		}
		w.says(string(corev1.PodResizePending), corev1.PodReasonDeferred, "the grant of cpu is used up")
		const want = `Deferred: cluster "milan" refused it: the grant of cpu is used up`
		w.eventually("the new size is pending", func() bool { return w.shown(corev1.PodResizePending) == want })
		w.calm()
		w.restartsSilently()
		if got := w.shown(corev1.PodResizePending); got != want {
			t.Errorf("%s: after a restart %q is shown", end, got)
		}
		if end == "it is withdrawn" {
			w.update(func(p *corev1.Pod) { request(p, "1") })
			w.eventually("the ShadowPod does not ask for it", func() bool { return w.shadow("p").Spec.Pod.Containers[0].Resources.Requests.Cpu().Value() == 1 })
		}
		w.says("", "", "")
		w.eventually("nothing is pending any more", func() bool { return w.shown(corev1.PodResizePending) == "" })
	}
	if told := w.events.all(); len(told) != 0 {
		t.Errorf("events are %q, beside those of the provider", told)
	}
}

// What happens to a pending size while nobody looks is seen after a restart.
func TestASizeThatIsTakenDuringARestart(t *testing.T) {
	w := up(t)
	w.says(string(corev1.PodResizePending), corev1.PodReasonInfeasible, "too much")
	w.eventually("the new size is pending", func() bool { return strings.Contains(w.shown(corev1.PodResizePending), "too much") })
	w.calm()
	w.stop()
	w.says("", "", "")
	w.start()
	w.offload()
	w.eventually("nothing is pending any more", func() bool { return w.shown(corev1.PodResizePending) == "" })
}

// A debugger that the provider's controller refuses shows as one that its webhook refuses.
func TestADebuggerThatIsRefusedLateIsShown(t *testing.T) {
	w := up(t)
	w.says(offloadingv1beta1.ChangeRefusedCondition, offloadingv1beta1.ReasonDebugFailed, "ephemeral container d: not this image")
	const want = `FailedDebug: cluster "milan" refused it: ephemeral container d: not this image`
	w.eventually("the refusal is shown", func() bool { return w.shown(offloadingv1beta1.ChangeRefusedCondition) == want })
	w.calm()
	w.restartsSilently()
	if got := w.shown(offloadingv1beta1.ChangeRefusedCondition); got != want {
		t.Errorf("after a restart %q is shown", got)
	}
	w.says("", "", "")
	w.eventually("nothing is refused any more", func() bool { return w.shown(offloadingv1beta1.ChangeRefusedCondition) == "" })
}
