package pod

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

// A pod of a StatefulSet that was removed by force may come to another virtual node before its predecessor has gone from the first.
func TestAPodWaitsForItsPredecessorOnAnotherVirtualNode(t *testing.T) {
	w := newWorld(t)
	w.provider()
	w.addShadow("uid-0", func(s *offloadingv1beta1.ShadowPod) { s.Labels[offloadingv1beta1.NodeNameLabel] = "milan-gpu" })
	// The label selector, which the fake does not know, hides it from the cache.
	fakeapi.React(&w.dyn.Fake, "list", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, newShadowList(), nil
	})
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod tells what it waits for", func() bool {
		status := w.pod("p").Status
		return status.Reason == offloadingv1beta1.ReasonEarlierPod && strings.Contains(status.Message, `virtual node "milan-gpu"`)
	})
	if told := w.events.all(); len(told) != 0 {
		t.Errorf("events are %q", told)
	}
	if err := w.dyn.Tracker().Delete(shadowpods.Resource, twinNamespace, "p"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the pod is made soon", func() bool { return w.shadow("p") != nil })
}

// What the provider refuses is counted; of a pod that should not be here at all the way out is told.
func TestARefusedPodOfADaemonSet(t *testing.T) {
	w := newWorld(t)
	fakeapi.React(&w.dyn.Fake, "create", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("tolerates the taints of its control plane"))
	})
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}))
	w.start()
	w.offload()
	w.eventually("the pod tells what to do", func() bool {
		status := w.pod("p").Status
		return status.Reason == offloadingv1beta1.ReasonOffloadingBackOff && strings.Contains(status.Message, "keepDaemonSetsOff")
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.r.errors)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "liqo_virtual_kubelet_reflection_error_counter" || families[0].GetMetric()[0].GetCounter().GetValue() < 1 {
		t.Errorf("counted: %v (%v)", families, err)
	}
}

// However much the provider has to say, a pod that no provider takes shows the way out, in its status and once in an Event.
func TestAPodThatNoProviderTakesShowsTheWayOut(t *testing.T) {
	w := newWorld(t)
	fakeapi.React(&w.dyn.Fake, "create", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New(strings.Repeat("spec.pod.volumes[0].hostPath: Forbidden ", 40)))
	})
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	}))
	w.start()
	w.offload()
	const wayOut = "no provider takes pods with volumes.hostPath: run it in a namespace that is not offloaded, " +
		"or offload this one with pod offloading strategy LocalAndRemote, which keeps such pods at home"
	w.eventually("the pod tells what to do", func() bool { return strings.HasPrefix(w.pod("p").Status.Message, wayOut) })
	w.calm()
	status := w.pod("p").Status
	for _, c := range status.Conditions {
		if c.Type == corev1.PodReady && (c.Status != corev1.ConditionFalse || !strings.HasPrefix(c.Message, wayOut)) {
			t.Errorf("condition %s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
	if events := w.events.all(); status.Reason != offloadingv1beta1.ReasonPodRefused || len(events) != 1 || !strings.Contains(events[0], wayOut) {
		t.Errorf("reason %s, Events %q", status.Reason, events)
	}
}

// A provider that fails with each try, as one whose webhook cannot be called, is told of while it is tried again.
func TestAPodThatCannotBeCreatedForLongSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.provider()
	var works atomic.Bool
	fakeapi.React(&w.dyn.Fake, "create", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !works.Load(), nil, apierrors.NewInternalError(errors.New("failed calling webhook: the server could not find the requested resource"))
	})
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod says why", func() bool {
		return strings.Contains(w.pod("p").Status.Message, "failed calling webhook") && len(w.events.all()) == 1
	})
	works.Store(true)
	w.eventually("the pod runs", func() bool { return w.pod("p").Status.Phase == corev1.PodRunning && w.pod("p").Status.Message == "" })
	if events := w.events.all(); len(events) > 2 {
		t.Errorf("Events: %q", events)
	}
}
