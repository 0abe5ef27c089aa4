package pod

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

// asksFor has a pod ask for so much cpu, as its user or the provider's controller does.
func asksFor(p *corev1.Pod, cpu string) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	p.Generation++
}

// sizedUp is a world whose pod asks for one cpu and runs with that, as its kubelet says; the provider refuses nine.
func sizedUp(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.provider()
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"cpu":"9"`) {
			return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("exceeded quota: no more cpu"))
		}
		return false, nil, nil
	})
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) { asksFor(p, "1") }))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.updateRemote(func(p *corev1.Pod) {
		p.Generation, p.Status.ObservedGeneration = 1, 1
		p.Annotations[offloadingv1beta1.ResourcesAskedAnnotation] = reflection.ResourcesAsked(&w.shadow("p").Spec.Pod)
	})
	w.calm()
	w.observes("at first", 1)
	return w
}

// observes fails unless that generation of the local pod is shown as seen, in its status and its conditions.
func (w *world) observes(when string, generation int64) {
	w.t.Helper()
	status := w.pod("p").Status
	if status.ObservedGeneration != generation {
		w.t.Fatalf("%s generation %d is shown as observed, want %d", when, status.ObservedGeneration, generation)
	}
	for _, c := range status.Conditions {
		if c.Type == corev1.PodReady && c.ObservedGeneration != generation {
			w.t.Fatalf("%s condition %s shows generation %d as observed, want %d", when, c.Type, c.ObservedGeneration, generation)
		}
	}
}

func (w *world) shadowAsks(cpu int64) {
	w.t.Helper()
	w.eventually("the ShadowPod asks for as much", func() bool {
		return w.shadow("p").Spec.Pod.Containers[0].Resources.Requests.Cpu().Value() == cpu
	})
	w.calm()
}

// Who resizes a pod takes the sizes that it shows for the new ones once its generation is observed: so it is not before the
// provider's kubelet has seen it.
func TestANewSizeIsObservedByTheProvidersKubelet(t *testing.T) {
	w := sizedUp(t)
	before := w.count()
	w.update(func(p *corev1.Pod) { asksFor(p, "2") })
	w.shadowAsks(2)
	w.observes("before the provider's controller did anything", 1)
	w.updateRemote(func(p *corev1.Pod) { p.Generation = 2 })
	w.calm()
	w.observes("before the provider's kubelet saw it", 1)
	w.updateRemote(func(p *corev1.Pod) {
		p.Annotations[offloadingv1beta1.ResourcesAskedAnnotation] = reflection.ResourcesAsked(&w.shadow("p").Spec.Pod)
	})
	w.calm()
	w.observes("before the provider's kubelet saw what was noted", 1)
	w.updateRemote(func(p *corev1.Pod) { p.Labels["seen"] = "true" })
	w.calm()
	w.observes("after other news", 1)
	w.updateRemote(func(p *corev1.Pod) { p.Status.ObservedGeneration = 2 })
	w.eventually("the generation is observed", func() bool { return w.pod("p").Status.ObservedGeneration == 2 })
	w.observes("at last", 2)
	if writes := w.count() - before; writes != 2 {
		t.Errorf("a resize takes %d writes, want one of the ShadowPod and one of the status", writes)
	}
}

// A size that is refused at once is observed with the refusal, which says nothing of the next one.
func TestASizeThatIsRefusedAtOnceIsObserved(t *testing.T) {
	w := sizedUp(t)
	w.update(func(p *corev1.Pod) { asksFor(p, "9") })
	w.eventually("the new size is pending", func() bool { return w.shown(corev1.PodResizePending) != "" })
	w.observes("with the refusal", 2)
	w.update(func(p *corev1.Pod) { asksFor(p, "2") })
	w.shadowAsks(2)
	w.eventually("nothing is pending any more", func() bool { return w.shown(corev1.PodResizePending) == "" })
	w.calm()
	w.observes("before the provider's controller did anything", 2)
	w.updateRemote(func(p *corev1.Pod) {
		p.Generation, p.Status.ObservedGeneration = 2, 2
		p.Annotations[offloadingv1beta1.ResourcesAskedAnnotation] = reflection.ResourcesAsked(&w.shadow("p").Spec.Pod)
	})
	w.eventually("the next size is observed", func() bool { return w.pod("p").Status.ObservedGeneration == 3 })
}

// A size that the provider's controller refuses is observed with the refusal.
func TestASizeThatIsRefusedLateIsObserved(t *testing.T) {
	w := sizedUp(t)
	w.update(func(p *corev1.Pod) { asksFor(p, "8") })
	w.shadowAsks(8)
	w.observes("before the refusal", 1)
	w.says(string(corev1.PodResizePending), corev1.PodReasonDeferred, "the grant of cpu is used up")
	w.eventually("the new size is pending", func() bool { return w.shown(corev1.PodResizePending) != "" })
	w.observes("with the refusal", 2)
	w.calm()
	w.restartsSilently()
	w.observes("after a restart", 2)
}
