package pod

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

func TestEphemeralContainersReachTheProvider(t *testing.T) {
	w := up(t)
	w.calm()
	w.update(func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox"}}}
	})
	w.eventually("the ShadowPod has the ephemeral container", func() bool { return len(w.shadow("p").Spec.Pod.EphemeralContainers) == 1 })
	w.updateRemote(func(p *corev1.Pod) {
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debugger", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	})
	w.eventually("its status comes back", func() bool {
		list := w.pod("p").Status.EphemeralContainerStatuses
		return len(list) == 1 && list[0].State.Running != nil
	})
	target, err := w.r.Twin(t.Context(), "shop", "p", "uid-1")
	if err != nil || !slices.Contains(target.Containers, "debugger") {
		t.Errorf("streams find %v, error %v", target.Containers, err)
	}
}

// An ephemeral container can never be taken back: one that the provider refuses is told of, and holds up nothing else.
func TestARefusedDebuggerHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	w.provider()
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"privileged":true`) {
			return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("no privileged containers"))
		}
		return false, nil, nil
	})
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	debugger := func(name string, privileged bool) corev1.EphemeralContainer {
		return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: name, Image: "busybox", SecurityContext: &corev1.SecurityContext{Privileged: &privileged}}}
	}
	w.update(func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, debugger("mighty", true))
	})
	w.eventually("the refusal is told", func() bool { return len(w.events.all()) == 1 })
	w.update(func(p *corev1.Pod) {
		p.Labels["tier"] = "front"
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, debugger("modest", false))
	})
	w.eventually("the label travelled", func() bool { return w.shadow("p").Labels["tier"] == "front" })
	w.eventually("the other debugger travelled", func() bool {
		list := w.shadow("p").Spec.Pod.EphemeralContainers
		return len(list) == 1 && list[0].Name == "modest"
	})
	w.calm()
	if told := w.events.all(); len(told) != 1 || !strings.Contains(told[0], "no privileged containers") {
		t.Errorf("events are %q", told)
	}
}

// A toleration can never be taken back either.
func TestARefusedTolerationHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	w.provider()
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"dedicated"`) {
			return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("no dedicated nodes"))
		}
		return false, nil, nil
	})
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.update(func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
	})
	w.eventually("the refusal is told", func() bool { return len(w.events.all()) == 1 })
	for name, follow := range map[string]struct {
		change func(*corev1.Pod)
		there  func(*offloadingv1beta1.ShadowPod) bool
	}{
		"a label": {func(p *corev1.Pod) { p.Labels["tier"] = "front" }, func(s *offloadingv1beta1.ShadowPod) bool { return s.Labels["tier"] == "front" }},
		"an image": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "shop:9" },
			func(s *offloadingv1beta1.ShadowPod) bool { return s.Spec.Pod.Containers[0].Image == "shop:9" }},
		"a deadline": {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](5000) },
			func(s *offloadingv1beta1.ShadowPod) bool { return s.Spec.Pod.ActiveDeadlineSeconds != nil }},
		"a debugger": {func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox"}}}
		}, func(s *offloadingv1beta1.ShadowPod) bool { return len(s.Spec.Pod.EphemeralContainers) == 1 }},
	} {
		w.update(follow.change)
		w.eventually(name+" travelled", func() bool { return follow.there(w.shadow("p")) })
	}
	w.calm()
	if told := w.events.all(); len(told) != 1 || !strings.Contains(told[0], "no dedicated nodes") {
		t.Errorf("events are %q", told)
	}
}

// A refused debugger, which stays refused, hides no refused size, and a size that fits later is taken then.
func TestARefusedDebuggerHidesNoRefusedSize(t *testing.T) {
	w := newWorld(t)
	w.provider()
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := string(action.(clienttesting.PatchAction).GetPatch())
		if strings.Contains(patch, `"privileged":true`) {
			return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("no privileged containers"))
		}
		if strings.Contains(patch, `"cpu":"9"`) {
			return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("exceeded quota: no more cpu"))
		}
		return false, nil, nil
	})
	request := func(p *corev1.Pod, cpu string) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		p.Generation++
	}
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) { request(p, "1") }))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.update(func(p *corev1.Pod) {
		request(p, "9")
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "mighty", Image: "busybox", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}}
	})
	pending := func() bool {
		return slices.ContainsFunc(w.pod("p").Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	}
	w.eventually("the new size is pending", pending)
	w.calm()
	if told := w.events.all(); len(told) != 2 {
		t.Errorf("events are %q", told)
	}
	w.update(func(p *corev1.Pod) { request(p, "2") })
	w.eventually("another size is taken", func() bool { return w.shadow("p").Spec.Pod.Containers[0].Resources.Requests.Cpu().Value() == 2 })
	w.eventually("nothing is pending any more", func() bool { return !pending() })
}

// A refused debugger is told once: after a restart the pod's condition says that it was. It goes when the provider takes it.
func TestARefusedDebuggerIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.provider()
	var allowed atomic.Bool
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !allowed.Load() && strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"mighty"`) {
			return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("no privileged containers"))
		}
		return false, nil, nil
	})
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.update(func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "mighty", Image: "busybox"}}}
	})
	refused := func() string {
		for _, c := range w.pod("p").Status.Conditions {
			if c.Type == offloadingv1beta1.ChangeRefusedCondition && c.Status == corev1.ConditionTrue {
				return c.Reason + ": " + c.Message
			}
		}
		return ""
	}
	w.eventually("the condition is shown", func() bool { return strings.Contains(refused(), "no privileged containers") })
	if told := w.events.all(); len(told) != 1 {
		t.Errorf("events are %q", told)
	}
	w.calm()
	w.stop()
	before, tries := w.count(), len(w.dyn.Actions())
	w.start()
	w.offload()
	w.eventually("it is tried again after a restart", func() bool {
		return slices.ContainsFunc(w.dyn.Actions()[tries:], func(a clienttesting.Action) bool { return a.GetVerb() == "patch" })
	})
	w.calm()
	if told := w.events.all(); len(told) != 1 {
		t.Errorf("events after a restart are %q", told)
	}
	if writes := w.count() - before; writes > 0 {
		t.Errorf("%d writes after a restart", writes)
	}
	if refused() == "" {
		t.Error("the condition is gone after a restart")
	}
	allowed.Store(true)
	w.update(func(p *corev1.Pod) { p.Labels["tier"] = "front" })
	w.eventually("the debugger travelled", func() bool { return len(w.shadow("p").Spec.Pod.EphemeralContainers) == 1 })
	w.eventually("the condition is gone", func() bool { return refused() == "" })
}
