package pod

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/api"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

// up is a world in which pod p runs.
func up(t *testing.T, change ...func(*corev1.Pod)) *world {
	t.Helper()
	w := newWorld(t)
	w.provider()
	w.add(newPod("p", "uid-1", change...))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	return w
}

func TestAPodRunsAndGoes(t *testing.T) {
	w := up(t)
	w.calm()
	if diff := cmp.Diff([]string{"remote create shadowpods/", "local patch pods/status"}, w.writes); diff != "" {
		t.Errorf("the writes until the pod runs: %s", diff)
	}
	w.terminate()
	w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
	if w.shadow("p") != nil || w.remote("p") != nil {
		t.Error("the local pod went before the remote one")
	}
	w.calm()
	if diff := cmp.Diff([]string{"remote delete shadowpods/", "local patch pods/status", "local delete pods/"}, w.writes[2:]); diff != "" {
		t.Errorf("the writes until the pod is gone: %s", diff)
	}
}

func TestARestartWritesNothing(t *testing.T) {
	w := up(t)
	w.calm()
	w.stop()
	before := w.count()
	w.start()
	w.offload()
	w.eventually("the caches are filled", func() bool { return w.r.look(key{Namespace: "shop", Name: "p"}, "uid-1").ready })
	w.calm()
	if n := w.count() - before; n != 0 {
		t.Errorf("a restart made %d writes: %v", n, w.writes[before:])
	}
}

// TestEveryCrashPoint kills the virtual kubelet before and after each of its writes, or has it lose the answer, and expects
// the same end every time, with at most one remote pod ever.
func TestEveryCrashPoint(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for _, before := range []bool{true, false} {
			for _, crash := range []bool{true, false} {
				name := map[bool]string{true: "before", false: "after"}[before] + " write " + string(rune('0'+n)) +
					map[bool]string{true: ", crash", false: ", lost answer"}[crash]
				t.Run(name, func(t *testing.T) { sweep(t, n, before, crash) })
			}
		}
	}
}

func sweep(t *testing.T, n int, before, crash bool) {
	w := newWorld(t)
	hit := make(chan struct{})
	fired := false
	w.fail = func(count int, isBefore bool) bool {
		if count != n || isBefore != before || fired {
			return false
		}
		fired = true
		close(hit)
		return true
	}
	w.provider()
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	restart := func() {
		select {
		case <-hit:
			hit = nil
			if crash {
				w.stop()
				w.start()
				w.offload()
			}
		default:
		}
	}
	w.eventually("the pod is ready", func() bool { restart(); return isReady(w.pod("p")) })
	if shadow := w.shadow("p"); shadow == nil || !standsFor(shadow, w.pod("p")) {
		t.Error("the pod is ready without its ShadowPod")
	}
	w.calm()
	restart()
	w.terminate()
	w.eventually("the pod is gone", func() bool { restart(); return w.pod("p") == nil })
	w.eventually("nothing is left at the provider", func() bool { return w.shadow("p") == nil && w.remote("p") == nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran != 1 {
		t.Errorf("the pod ran %d times: %v", w.ran, w.writes)
	}
}

func TestANewPodOfTheSameName(t *testing.T) {
	w := newWorld(t)
	w.addShadow("uid-0")
	w.provider()
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the new pod is ready", func() bool { return isReady(w.pod("p")) })
	if !standsFor(w.shadow("p"), w.pod("p")) || !standsFor(w.remote("p"), w.pod("p")) {
		t.Error("the pod shows another pod's remote pod")
	}
	if i, j := slices.Index(w.writes, "remote delete shadowpods/"), slices.Index(w.writes, "remote create shadowpods/"); i < 0 || i > j {
		t.Errorf("the old one did not go first: %v", w.writes)
	}
}

func TestAPodThatWasForcedAway(t *testing.T) {
	w := up(t)
	w.peer.set(func(s *peer.State) { s.Connected = false })
	w.force()
	w.calm()
	if w.shadow("p") == nil {
		t.Fatal("the ShadowPod went while the provider was away")
	}
	w.peer.set(func(s *peer.State) { s.Connected = true })
	w.eventually("the ShadowPod is gone", func() bool { return w.shadow("p") == nil })
}

func TestAPodOfAProviderThatDoesNotAnswerIsNotReady(t *testing.T) {
	w := up(t)
	w.calm()
	before := w.count()
	w.peer.set(func(s *peer.State) { s.Connected, s.Reason = false, peer.ReasonProbing })
	w.calm()
	if n := w.count() - before; n != 0 || !isReady(w.pod("p")) {
		t.Errorf("before the provider was asked, %d writes were made: %v", n, w.writes[before:])
	}
	w.peer.set(func(s *peer.State) { s.Connected, s.Reason = false, peer.ReasonUnreachable })
	w.eventually("the pod is not ready", func() bool { return !isReady(w.pod("p")) })
	if phase := w.pod("p").Status.Phase; phase != corev1.PodRunning {
		t.Errorf("the pod's phase is %s: it may well run", phase)
	}
	w.peer.set(func(s *peer.State) { s.Connected, s.Reason = true, peer.ReasonConnected })
	w.eventually("the pod is ready again", func() bool { return isReady(w.pod("p")) })
	if w.ran != 1 {
		t.Errorf("there were %d remote pods", w.ran)
	}
}

// A pod that never had a remote one does not wait for a provider that may never come back; one that had is not let go on missing knowledge.
func TestAPodThatNeverRanMayGoWithoutTheProvider(t *testing.T) {
	for name, lose := range map[string]func(*peer.State){
		"it does not answer":      func(s *peer.State) { s.Connected, s.Reason = false, peer.ReasonUnreachable },
		"it took our rights back": func(s *peer.State) { s.Reason = peer.ReasonRevoked },
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t)
			w.calm()
			fakeapi.React(&w.dyn.Fake, "*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("the provider is lost")
			})
			w.peer.set(lose)
			w.calm()
			w.add(newPod("never", "uid-2"))
			w.calm()
			for _, name := range []string{"p", "never"} {
				w.atomic.Lock()
				deleted := w.pod(name).DeepCopy()
				deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
				w.renew(deleted)
				err := w.local.Tracker().Update(podResource, deleted, "shop")
				w.atomic.Unlock()
				if err != nil {
					t.Fatal(err)
				}
			}
			w.eventually("the pod that never ran is gone", func() bool { return w.pod("never") == nil })
			w.calm()
			if w.pod("p") == nil {
				t.Error("the pod that may well run is gone")
			}
		})
	}
}

func TestAnOrphanIsKeptUntilTheLocalClusterConfirms(t *testing.T) {
	w := up(t)
	w.calm()
	fakeapi.React(&w.local.Fake, "list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &corev1.PodList{Items: []corev1.Pod{*newPod("p", "uid-1")}}, nil
	})
	before := w.count()
	w.force() // only the watch tells so; a list still shows the pod
	w.calm()
	if w.shadow("p") == nil || w.count() != before {
		t.Errorf("the ShadowPod went although the pod is still listed: %v", w.writes[before:])
	}
}

func TestNothingIsDoneWithoutKnowledge(t *testing.T) {
	for name, m := range map[string]Mapping{
		"no NamespaceMap was read":           {},
		"the provider does not confirm":      {Known: true, Desired: map[string]string{"shop": twinNamespace}},
		"the provider confirms another twin": {Known: true, Desired: map[string]string{"shop": twinNamespace}, Effective: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t)
			w.calm()
			before := w.count()
			w.setMapping(m)
			w.calm()
			w.terminate()
			w.calm()
			if w.count() != before || w.shadow("p") == nil {
				t.Errorf("writes: %v", w.writes[before:])
			}
		})
	}
}

func TestNamespacesThatAreNotOffloaded(t *testing.T) {
	w := up(t)
	w.add(newPod("q", "uid-2", func(p *corev1.Pod) { p.Namespace = "other" }))
	w.eventually("the pod is held back", func() bool {
		object, err := w.local.Tracker().Get(podResource, "other", "q")
		return err == nil && object.(*corev1.Pod).Status.Reason == offloadingv1beta1.ReasonOffloadingBackOff
	})
	w.setMapping(Mapping{Known: true})
	w.eventually("the pod is given up", func() bool {
		return w.pod("p").Status.Phase == corev1.PodFailed && w.pod("p").Status.Reason == offloadingv1beta1.ReasonOffloadingAborted
	})
	w.terminate()
	w.eventually("the pod goes at once", func() bool { return w.pod("p") == nil })
}

func TestThePodOfAnAbortedOffloadingIsStoppedWhenTheNamespaceComesBack(t *testing.T) {
	w := up(t)
	w.setMapping(Mapping{Known: true})
	w.eventually("the pod is given up", func() bool { return w.pod("p").Status.Phase == corev1.PodFailed })
	w.offload()
	w.eventually("the ShadowPod is gone", func() bool { return w.shadow("p") == nil })
	w.calm()
	if w.pod("p").Status.Phase != corev1.PodFailed {
		t.Error("a failed pod came back to life")
	}
}

func TestARefusedPod(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     func(*corev1.Pod)
		err     error
		reason  string
		message string
	}{
		"by quota": {nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("exceeded quota: compute")),
			offloadingv1beta1.ReasonQuotaExceeded, "exceeded quota: compute"},
		"by admission": {nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("spec.pod.hostPath: not allowed")),
			offloadingv1beta1.ReasonPodRefused, "hostPath"},
		"as invalid": {nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "image: Required"}},
			offloadingv1beta1.ReasonPodRefused, "image: Required"},
		"at home": {func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, nil,
			offloadingv1beta1.ReasonPodRefused, "resourceClaims"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.err != nil {
				fakeapi.React(&w.dyn.Fake, "create", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			pod := newPod("p", "uid-1")
			if tc.pod != nil {
				tc.pod(pod)
			}
			w.add(pod)
			w.start()
			w.offload()
			w.eventually("the pod tells why", func() bool { return w.pod("p").Status.Reason == tc.reason })
			if got := w.pod("p").Status; got.Phase != corev1.PodPending || !strings.Contains(got.Message, tc.message) {
				t.Errorf("status %+v", got)
			}
			w.calm()
			if events := w.events.all(); len(events) != 1 {
				t.Errorf("events: %v", events)
			}
			before := w.count()
			w.calm()
			if w.count() != before {
				t.Error("a refused pod causes writes at rest")
			}
			w.terminate()
			w.eventually("the pod can be removed", func() bool { return w.pod("p") == nil })
		})
	}
}

// V9: a pod that was admitted and gets no pod at the provider shows why.
func TestAnAdmittedPodShowsWhatItWaitsFor(t *testing.T) {
	w := newWorld(t)
	w.add(newPod("p", "uid-1"))
	w.addShadow("uid-1", func(s *offloadingv1beta1.ShadowPod) {
		s.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: offloadingv1beta1.ReasonQuotaExceeded,
			Message: "pods that were deleted and are still terminating hold cpu 3"}}
	})
	w.start()
	w.offload()
	w.eventually("the pod tells why", func() bool { return w.pod("p").Status.Reason == offloadingv1beta1.ReasonQuotaExceeded })
	if got := w.pod("p").Status; got.Phase != corev1.PodPending || !strings.Contains(got.Message, "still terminating hold cpu 3") {
		t.Errorf("status %+v", got)
	}
}

func TestAForeignShadowPodIsNotTouched(t *testing.T) {
	w := newWorld(t)
	w.addShadow("uid-1", func(s *offloadingv1beta1.ShadowPod) {
		s.Labels = map[string]string{offloadingv1beta1.OriginLabel: "naples"}
	})
	// The label selector, which the fake does not know, hides it from the cache.
	fakeapi.React(&w.dyn.Fake, "list", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, newShadowList(), nil
	})
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod tells of the conflict", func() bool { return w.pod("p").Status.Reason == offloadingv1beta1.ReasonNameConflict })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shadow("p") == nil || slices.Contains(w.writes, "remote delete shadowpods/") {
		t.Error("somebody else's ShadowPod was touched")
	}
}

// C15: the end that was seen here outlives the ShadowPod.
func TestFinishedPods(t *testing.T) {
	w := up(t, func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
	w.updateRemote(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	})
	w.eventually("the pod succeeded", func() bool { return w.pod("p").Status.Phase == corev1.PodSucceeded })
	shadow := w.shadow("p")
	if err := w.dyn.Tracker().Delete(shadowpods.Resource, twinNamespace, "p"); err != nil || shadow == nil {
		t.Fatal(err)
	}
	w.eventually("the remote pod is gone", func() bool { return w.remote("p") == nil })
	w.calm()
	if w.shadow("p") != nil || w.pod("p").Status.Phase != corev1.PodSucceeded {
		t.Error("a finished pod runs again")
	}
}

// The provider's record of how a pod ended may be seen before the pod's own end, which tells more: that is waited for.
func TestARecordedEndWaitsForThatOfTheRemotePod(t *testing.T) {
	w := up(t)
	w.meddle(func(shadow *unstructured.Unstructured) {
		shadow.Object["status"] = map[string]any{"phase": string(corev1.PodFailed)}
	})
	w.calm()
	if got := w.pod("p").Status; got.Phase != corev1.PodRunning {
		t.Errorf("while the remote pod is seen to run it is %s, reason %q", got.Phase, got.Reason)
	}
	w.updateRemote(func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.Now()}}
	})
	w.eventually("the pod failed", func() bool { return w.pod("p").Status.Phase == corev1.PodFailed })
	got := w.pod("p").Status
	if end := got.ContainerStatuses[0].State.Terminated; got.Reason != "Evicted" || end == nil || end.ExitCode != 137 {
		t.Errorf("reason %q, the container ended as %+v", got.Reason, end)
	}
}

// C15: the phase and the exit codes of a pod that is gone at the provider.
func TestARecordedEndOutlivesTheRemotePod(t *testing.T) {
	w := newWorld(t)
	w.addShadow("uid-1", func(s *offloadingv1beta1.ShadowPod) {
		s.Status.Phase = corev1.PodFailed
		s.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}
	})
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod failed", func() bool { return w.pod("p").Status.Phase == corev1.PodFailed })
	if code := w.pod("p").Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
		t.Errorf("exit code %d", code)
	}
	w.calm()
	if w.shadow("p") == nil {
		t.Error("the ShadowPod of a finished pod went")
	}
}

func TestARemotePodThatIsReplaced(t *testing.T) {
	w := up(t)
	if err := w.kube.Tracker().Delete(podResource, twinNamespace, "p"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the pod is not ready", func() bool { return !isReady(w.pod("p")) })
	raw, err := w.dyn.Tracker().Get(shadowpods.Resource, twinNamespace, "p")
	if err != nil {
		t.Fatal(err)
	}
	w.runRemote(raw)
	w.eventually("the pod is ready again, restarted once", func() bool {
		return isReady(w.pod("p")) && w.pod("p").Status.ContainerStatuses[0].RestartCount == 1
	})
}

func TestAShadowPodThatSomebodyDeletesIsMadeAgain(t *testing.T) {
	w := up(t)
	if err := w.dyn.Tracker().Delete(shadowpods.Resource, twinNamespace, "p"); err != nil {
		t.Fatal(err)
	}
	w.eventually("there is a new one", func() bool { return w.shadow("p") != nil })
	w.eventually("the pod is ready again, restarted once", func() bool {
		return isReady(w.pod("p")) && w.pod("p").Status.ContainerStatuses[0].RestartCount == 1
	})
}

func TestLabelsOfARunningPodTravel(t *testing.T) {
	w := up(t)
	w.update(func(p *corev1.Pod) { p.Labels["tier"] = "front"; delete(p.Labels, "app") })
	w.eventually("the labels are the ShadowPod's", func() bool {
		labels := w.shadow("p").Labels
		return labels["tier"] == "front" && labels["app"] == ""
	})
}

func TestResourcesOfARunningPodTravel(t *testing.T) {
	w := newWorld(t)
	request := func(p *corev1.Pod, cpu string) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	w.provider()
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) { request(p, "1") }))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.calm()
	w.update(func(p *corev1.Pod) { request(p, "2"); p.Generation++ })
	w.eventually("the ShadowPod asks for as much", func() bool {
		return w.shadow("p").Spec.Pod.Containers[0].Resources.Requests.Cpu().Value() == 2
	})
	w.updateRemote(func(p *corev1.Pod) {
		request(p, "2")
		p.Status.ContainerStatuses[0].Resources = p.Spec.Containers[0].Resources.DeepCopy()
	})
	w.eventually("the pod shows that it has as much", func() bool {
		has := w.pod("p").Status.ContainerStatuses[0].Resources
		return has != nil && has.Requests.Cpu().Value() == 2
	})
}

// A size that the provider has no room for holds nothing else back, and is told once, over a restart as well.
func TestARefusedSizeIsPending(t *testing.T) {
	w := newWorld(t)
	request := func(p *corev1.Pod, cpu string) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		p.Generation++
	}
	w.provider()
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"cpu":"9"`) {
			return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", errors.New("exceeded quota: no more cpu"))
		}
		return false, nil, nil
	})
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) { request(p, "1") }))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.update(func(p *corev1.Pod) { request(p, "9"); p.Labels["tier"] = "front" })
	pending := func() *corev1.PodCondition {
		for _, c := range w.pod("p").Status.Conditions {
			if c.Type == corev1.PodResizePending {
				return &c
			}
		}
		return nil
	}
	w.eventually("the new size is pending", func() bool {
		c := pending()
		return c != nil && c.Reason == corev1.PodReasonDeferred && strings.Contains(c.Message, "no more cpu")
	})
	w.eventually("the label travelled", func() bool { return w.shadow("p").Labels["tier"] == "front" })
	w.calm()
	w.restartsSilently()
	if told := w.events.all(); len(told) != 1 || !strings.Contains(told[0], "no more cpu") {
		t.Errorf("events are %q", told)
	}
	w.update(func(p *corev1.Pod) { request(p, "1") })
	w.eventually("nothing is pending any more", func() bool { return pending() == nil })
}

// A size that is refused because of a cordon is deferred, and asked for again after a while until the cordon ends.
func TestASizeThatACordonForbidsIsDeferred(t *testing.T) {
	w := newWorld(t)
	request := func(p *corev1.Pod, cpu string) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		p.Generation++
	}
	var cordoned atomic.Bool
	var asked atomic.Int32
	cordoned.Store(true)
	w.provider()
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !cordoned.Load() || !strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"cpu":"2"`) {
			return false, nil, nil
		}
		asked.Add(1)
		return true, nil, apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p",
			errors.New(`admission webhook "shadowpods" denied the request: Cordoned: the provider lets no pod of this slice grow`))
	})
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) { request(p, "1") }))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.update(func(p *corev1.Pod) { request(p, "2") })
	pending := func() string {
		for _, c := range w.pod("p").Status.Conditions {
			if c.Type == corev1.PodResizePending {
				return c.Reason
			}
		}
		return ""
	}
	w.eventually("the new size is pending", func() bool { return pending() != "" })
	if got := pending(); got != corev1.PodReasonDeferred {
		t.Errorf("the new size is %s", got)
	}
	w.calm()
	before := asked.Load()
	result, err := reconcile.Result(w.r.reconcileWork(t.Context(), keyOf(w.pod("p"))))
	if err != nil || result.RequeueAfter != reconcile.RefusedRetry || asked.Load() != before+1 {
		t.Errorf("asked for %d times, again in %s, error %v", asked.Load()-before, result.RequeueAfter, err)
	}
	if w.calm(); asked.Load() != before+1 {
		t.Errorf("at rest it is asked for %d times more", asked.Load()-before-1)
	}
	cordoned.Store(false)
	w.r.work.Add(keyOf(w.pod("p")))
	w.eventually("the ShadowPod has the new size", func() bool { return w.shadow("p").Spec.Pod.Containers[0].Resources.Requests.Cpu().Value() == 2 })
	w.eventually("nothing is pending any more", func() bool { return pending() == "" })
}

func TestUses(t *testing.T) {
	w := newWorld(t)
	changed, told := make(chan string, 10), map[string]int{}
	w.usesChanged = func(namespace, kind, name string) { changed <- namespace + "/" + kind + "/" + name }
	pod := newPod("p", "uid-1")
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	w.add(pod)
	w.start()
	for _, step := range []struct {
		want bool
		then func()
	}{{true, w.force}, {false, func() {}}} {
		w.eventually("the use of the Secret is as it should be", func() bool {
			used, known := w.r.Uses("shop", "secret", "pull")
			return known && used == step.want
		})
		told[<-changed]++
		step.then()
	}
	told[<-changed]++
	if diff := cmp.Diff(map[string]int{"//": 1, "shop/secret/pull": 2}, told); diff != "" {
		t.Errorf("what was told of changes:\n%s", diff)
	}
	if used, _ := w.r.Uses("shop", "secret", "other"); used {
		t.Error("a Secret that no pod names is used")
	}
}

func TestWorkersChangeWhileTheyWork(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.wanted.Change(func(now *Wanted) { now.Workers = 0 })
	w.provider()
	w.offload()
	w.add(newPod("p", "uid-1"))
	w.eventually("the pod is seen and its link is up", func() bool { return len(w.r.Pods()) == 1 && w.r.look(keyOf(w.r.Pods()[0]), "uid-1").ready })
	if w.shadow("p") != nil {
		t.Error("a pod is handled without workers")
	}
	if !w.r.Alive(time.Now().Add(time.Hour)) {
		t.Error("a virtual kubelet that was told to rest counts as dead")
	}
	w.wanted.Change(func(now *Wanted) { now.Workers = 1 })
	w.eventually("the pod runs", func() bool { return isReady(w.pod("p")) })
}

func TestNewCredentialsReopenEverything(t *testing.T) {
	w := up(t)
	w.calm()
	before := w.count()
	w.peer.set(func(s *peer.State) { s.Epoch++ })
	w.eventually("the new link is open", func() bool {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		return w.r.link != nil && w.r.link.epoch == 2 && w.r.link.twins["shop"] != nil && w.r.link.twins["shop"].synced()
	})
	w.calm()
	if w.count() != before {
		t.Errorf("new credentials made writes: %v", w.writes[before:])
	}
}

func TestStatusesThatCannotBeTrueAreReportedOnce(t *testing.T) {
	w := up(t)
	w.updateRemote(func(p *corev1.Pod) { p.Status.PodIP = "127.0.0.1" })
	w.eventually("the pod is not ready", func() bool { return !isReady(w.pod("p")) })
	w.updateRemote(func(p *corev1.Pod) { p.Status.PodIP = "127.0.0.2" })
	w.eventually("the message is up to date", func() bool {
		for _, c := range w.pod("p").Status.Conditions {
			if c.Type == offloadingv1beta1.InvalidRemoteStatusCondition {
				return strings.Contains(c.Message, "127.0.0.2")
			}
		}
		return false
	})
	if events := w.events.all(); len(events) != 1 || !strings.HasPrefix(events[0], offloadingv1beta1.ReasonInvalidRemoteStatus) {
		t.Errorf("events: %v", events)
	}
}

// That a provider announced no range is told once, of its VirtualNode, and not by an Event of each pod.
func TestPodsWithoutARangeMakeNoEvents(t *testing.T) {
	w := up(t)
	w.wanted.Change(func(now *Wanted) { now.Settings = Settings{} })
	w.eventually("the pod says that it is without its address", func() bool {
		return slices.ContainsFunc(w.pod("p").Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == offloadingv1beta1.AddressShownCondition && c.Status == corev1.ConditionFalse
		})
	})
	w.calm()
	if p := w.pod("p"); !isReady(p) || p.Status.PodIP != "" {
		t.Errorf("the pod is ready: %v, with address %q", isReady(p), p.Status.PodIP)
	}
	if events := w.events.all(); len(events) != 0 {
		t.Errorf("events: %v", events)
	}
}

func TestTwin(t *testing.T) {
	w := up(t)
	ctx := context.Background()
	got, err := w.r.Twin(ctx, "shop", "p", "uid-1")
	if err != nil || got.Namespace != twinNamespace || got.Pod != "p" || !slices.Equal(got.Containers, []string{"app"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, tc := range map[string]struct{ namespace, pod, uid string }{
		"another pod": {"shop", "q", ""}, "another UID": {"shop", "p", "uid-0"}, "another namespace": {"else", "p", ""},
	} {
		if _, err := w.r.Twin(ctx, tc.namespace, tc.pod, tc.uid); !errors.Is(err, api.ErrNotFound) || strings.Contains(err.Error(), tc.namespace+"/"+tc.pod) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.peer.set(func(s *peer.State) { s.Connected = false })
	if _, err := w.r.Twin(ctx, "shop", "p", ""); !errors.Is(err, api.ErrNotConnected) {
		t.Errorf("without connection: %v", err)
	}
	w.peer.set(func(s *peer.State) {
		s.Connected, s.Reason, s.Message = true, peer.ReasonRevoked, "it has taken our rights back"
	})
	w.leave()
	if _, err := w.r.Twin(ctx, "shop", "p", ""); !errors.Is(err, api.ErrNotConnected) || !strings.Contains(err.Error(), "taken our rights back") {
		t.Errorf("without rights, and without the twin: %v", err)
	}
	w.setMapping(Mapping{Known: true})
	if _, err := w.r.Twin(ctx, "shop", "p", ""); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("not offloaded: %v", err)
	}
	if n := len(w.r.Pods()); n != 1 || !w.r.Informed() {
		t.Errorf("%d pods", n)
	}
	w.setMapping(Mapping{})
	if _, err := w.r.Twin(ctx, "shop", "p", ""); !errors.Is(err, api.ErrStandsBy) {
		t.Errorf("before the namespaces are known: %v", err)
	}
}

func TestAStaleNamespaceMapGivesNothingUp(t *testing.T) {
	w := up(t)
	w.calm()
	w.r.options.Confirm = func(context.Context, string) (bool, error) { return true, nil }
	before := w.count()
	w.setMapping(Mapping{Known: true})
	w.calm()
	w.terminate()
	w.calm()
	if w.count() != before || w.pod("p").Status.Phase != corev1.PodRunning {
		t.Errorf("writes: %v", w.writes[before:])
	}
}
