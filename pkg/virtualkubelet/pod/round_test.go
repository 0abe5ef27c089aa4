package pod

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

// keepsAtMost has the provider refuse ShadowPods beyond so many, those that ended included.
func (w *world) keepsAtMost(most int) {
	fakeapi.React(&w.dyn.Fake, "create", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if len(w.kept()) < most {
			return false, nil, nil
		}
		name := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured).GetName()
		return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), name,
			errors.New("admission webhook denied the request: "+offloadingv1beta1.ReasonTooManyEndedPods+": the provider keeps 4 pods of this slice"))
	})
}

// kept are the names of the ShadowPods that the provider has.
func (w *world) kept() (names []string) {
	w.t.Helper()
	list, err := w.dyn.Tracker().List(shadowpods.Resource, offloadingv1beta1.GroupVersion.WithKind("ShadowPod"), twinNamespace)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	for _, item := range list.(*unstructured.UnstructuredList).Items {
		names = append(names, item.GetName())
	}
	slices.Sort(names)
	return names
}

// succeeds has the remote pod end, and its ShadowPod say so.
func (w *world) succeeds(name string) {
	w.t.Helper()
	w.atomic.Lock()
	defer w.atomic.Unlock()
	pod := w.remote(name).DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	object, err := w.dyn.Tracker().Get(shadowpods.Resource, twinNamespace, name)
	if err != nil {
		w.t.Fatal(err)
	}
	shadow := object.(*unstructured.Unstructured).DeepCopy()
	if err := unstructured.SetNestedField(shadow.Object, string(corev1.PodSucceeded), "status", "phase"); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(w.dyn.Tracker().Update(shadowpods.Resource, shadow, twinNamespace), w.kube.Tracker().Update(podResource, pod, twinNamespace)); err != nil {
		w.t.Fatal(err)
	}
}

// A Job of more completions than the provider keeps ends: what ended longest ago is removed there, and stays here as it ended. A pod that runs is not.
func TestPodsThatEndedMakeRoomForNewOnes(t *testing.T) {
	w := newWorld(t)
	w.keepsAtMost(4)
	w.add(newPod("runs", "uid-runs"))
	w.start()
	w.offload()
	w.provider()
	w.eventually("the pod that goes on runs", func() bool { return isReady(w.pod("runs")) })
	for i := range 6 {
		name := fmt.Sprint("job-", i)
		w.add(newPod(name, types.UID("uid-"+name), func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))
		w.eventually(name+" runs", func() bool { return isReady(w.pod(name)) })
		w.succeeds(name)
		w.eventually(name+" shows its end", func() bool { return w.pod(name).Status.Phase == corev1.PodSucceeded })
	}
	for i := range 6 {
		if pod := w.pod(fmt.Sprint("job-", i)); pod == nil || pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("the local pod is %+v", pod)
		}
	}
	if kept := w.kept(); len(kept) > 4 || !slices.Contains(kept, "runs") || !slices.Contains(kept, "job-5") {
		t.Errorf("the provider keeps %v", kept)
	}
	w.calm()
	if w.ran != 7 {
		t.Errorf("%d pods ran in place of 7", w.ran)
	}
}

// Where nothing ended that could make room, the pod says what the provider says.
func TestAPodForWhichNothingMakesRoomSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.keepsAtMost(1)
	w.add(newPod("runs", "uid-runs"))
	w.start()
	w.offload()
	w.provider()
	w.eventually("the first one runs", func() bool { return isReady(w.pod("runs")) })
	w.add(newPod("p", "uid-1"))
	w.eventually("the other one says why it waits", func() bool { return w.pod("p").Status.Reason == offloadingv1beta1.ReasonTooManyEndedPods })
	if kept := w.kept(); !slices.Equal(kept, []string{"runs"}) {
		t.Errorf("the provider keeps %v", kept)
	}
}
