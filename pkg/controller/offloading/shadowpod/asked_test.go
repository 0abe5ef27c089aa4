package shadowpod

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// bear gives the Pod of a ShadowPod so much cpu, as the provider's admission or autoscaler does.
func (w *world) bear(name, cpu string, change func(*corev1.Pod)) {
	w.Helper()
	var pod corev1.Pod
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &pod); err != nil {
		w.Fatal(err)
	}
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	if change != nil {
		change(&pod)
	}
	if err := w.Client.Update(context.Background(), &pod); err != nil {
		w.Fatal(err)
	}
}

// debugged adds an ephemeral container to a ShadowPod: a change that is none of its resources.
func (w *world) debugged(name string) {
	w.Helper()
	var live offloadingv1beta1.ShadowPod
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &live); err != nil {
		w.Fatal(err)
	}
	live.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "busybox"}}}
	live.Generation = 2
	if err := w.Update(context.Background(), &live); err != nil {
		w.Fatal(err)
	}
}

// What a provider's admission or autoscaler makes of a pod's resources stays, until the ShadowPod asks for something else.
func TestWhatTheProviderMadeOfTheResourcesStays(t *testing.T) {
	w := enforcing(t, "9", asking("a", "2"))
	w.run("a")
	w.bear("a", "1", nil)
	w.debugged("a")
	w.run("a", "a")
	if got := w.has("a"); got != "1" {
		t.Errorf("an ephemeral container made the Pod's request %s", got)
	}
	w.ask("a", "3")
	w.run("a", "a")
	if got := w.has("a"); got != "3" {
		t.Fatalf("the Pod has %s of 3", got)
	}
	w.bear("a", "4", nil)
	before := w.Writes
	w.run("a", "a")
	newWorldFrom(w)
	w.run("a")
	if got := w.has("a"); got != "4" || w.Writes != before {
		t.Errorf("the autoscaler's request became %s, in %d writes", got, w.Writes-before)
	}
	w.bear("a", "5", nil)
	w.ask("a", "5")
	w.run("a", "a")
	w.bear("a", "6", nil)
	w.run("a")
	if got := w.has("a"); got != "6" {
		t.Errorf("what the Pod had already when it was asked for is not remembered: it has %s", got)
	}
}

// The Pods of earlier versions do not say what was asked for: they are not written only to say it.
func TestPodsThatDoNotSayWhatWasAsked(t *testing.T) {
	w := enforcing(t, "9", asking("a", "2"))
	w.run("a")
	w.debugged("a")
	w.run("a")
	forget := func(pod *corev1.Pod) { delete(pod.Annotations, offloadingv1beta1.ResourcesAskedAnnotation) }
	w.bear("a", "2", forget)
	newWorldFrom(w)
	before := w.Writes
	w.run("a", "a")
	if w.Writes != before {
		t.Errorf("%d writes for a Pod that is as it was asked for", w.Writes-before)
	}
	w.bear("a", "1", nil)
	w.run("a")
	w.bear("a", "1", nil)
	w.run("a")
	if got := w.has("a"); got != "1" {
		t.Errorf("the Pod has %s: the first resize was to say what was asked for", got)
	}
}
