package pod

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// An annotation that could not be made sense of, had the pod had it from the start, is told of, and holds up nothing.
func TestAnInvalidAnnotationOfARunningPod(t *testing.T) {
	w := up(t)
	w.update(func(p *corev1.Pod) {
		p.Annotations = map[string]string{offloadingv1beta1.AntiAffinityPresetAnnotation: "bogus"}
	})
	w.eventually("the pod tells", func() bool {
		return strings.Contains(w.shown(offloadingv1beta1.ChangeRefusedCondition), offloadingv1beta1.AntiAffinityPresetAnnotation)
	})
	w.update(func(p *corev1.Pod) {
		p.Labels["tier"] = "front"
		p.Spec.Containers[0].Image = "app:2"
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		p.Generation++
	})
	w.eventually("label, image and size follow", func() bool {
		container := w.shadow("p").Spec.Pod.Containers[0]
		return w.shadow("p").Labels["tier"] == "front" && container.Image == "app:2" && container.Resources.Requests.Cpu().Value() == 2
	})
	w.calm()
	w.restartsSilently()
	if told := w.events.all(); len(told) != 1 || !strings.Contains(told[0], "runs on as it was made") {
		t.Errorf("events are %q", told)
	}
	w.update(func(p *corev1.Pod) { delete(p.Annotations, offloadingv1beta1.AntiAffinityPresetAnnotation) })
	w.eventually("nothing is refused any more", func() bool { return w.shown(offloadingv1beta1.ChangeRefusedCondition) == "" })
}

// Before Kubernetes 1.34 nothing counts the changes of a pod's specification.
func TestChangesInPlaceAreSeenWithoutGeneration(t *testing.T) {
	for name, change := range map[string]func(*corev1.PodSpec){
		"an image":     func(s *corev1.PodSpec) { s.Containers[0].Image = "app:2" },
		"a deadline":   func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = new(int64(60)) },
		"a toleration": func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Key: "a"}} },
		"a container's size": func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t)
			w.calm()
			before := w.count()
			w.update(func(p *corev1.Pod) { change(&p.Spec) })
			w.eventually("the ShadowPod changes", func() bool { return w.count() > before })
		})
	}
}

// A readiness gate is met, or not any more, by the word of a controller of this cluster in the pod's status: the provider hears of it.
func TestReadinessGatesFollow(t *testing.T) {
	w := newWorld(t)
	w.provider()
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "garden.example/opened"}, {ConditionType: "garden.example/swept"}}
	}))
	w.start()
	w.offload()
	w.eventually("the pod is asked for", func() bool { return w.shadow("p") != nil })
	said := func() string { return w.shadow("p").Annotations[offloadingv1beta1.OpenGatesAnnotation] }
	if got := said(); got != "garden.example/opened,garden.example/swept" {
		t.Fatalf("at first %q is open", got)
	}
	set := func(gate corev1.PodConditionType, status corev1.ConditionStatus) {
		w.update(func(p *corev1.Pod) {
			p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate })
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate, Status: status})
		})
	}
	set("garden.example/opened", corev1.ConditionTrue)
	w.eventually("one gate is met", func() bool { return said() == "garden.example/swept" })
	set("garden.example/swept", corev1.ConditionTrue)
	w.eventually("both gates are met", func() bool { return said() == "" })
	if _, told := w.shadow("p").Annotations[offloadingv1beta1.OpenGatesAnnotation]; !told {
		t.Error("that there are gates is not told any more")
	}
	set("garden.example/opened", corev1.ConditionFalse)
	w.eventually("a gate is open again", func() bool { return said() == "garden.example/opened" })
	w.calm()
	w.restartsSilently()
}
