package pod

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

// shown is what somebody sees of a pod who watches it.
type shown struct {
	Phase corev1.PodPhase
	Ready bool
	// Exit is the exit code of the container, -1 while it runs; Reason that of its end.
	Exit   int32
	Reason string
}

// watchers follows what the pod shows until it is gone.
type watchers struct {
	mu   sync.Mutex
	list []shown
}

func (w *world) follow() *watchers {
	w.t.Helper()
	seen := &watchers{}
	watcher, err := w.local.Tracker().Watch(podResource, "shop")
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			now := shown{Phase: pod.Status.Phase, Ready: isReady(pod), Exit: -1}
			if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Terminated != nil {
				now.Exit, now.Reason = pod.Status.ContainerStatuses[0].State.Terminated.ExitCode, pod.Status.ContainerStatuses[0].State.Terminated.Reason
			}
			seen.mu.Lock()
			seen.list = append(seen.list, now)
			seen.mu.Unlock()
		}
	}()
	w.t.Cleanup(func() { watcher.Stop(); <-done })
	return seen
}

// all lists what was seen, each once.
func (s *watchers) all() []shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Clone(s.list))
}

// stops is what a kubelet says of a pod that it stopped.
func stops(phase corev1.PodPhase, exit int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
		p.Status.Phase = phase
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Pod" + string(phase)}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exit, Reason: "Stopped"}}}}
	}
}

// unready is a pod that does not answer its probes while it stops.
func unready(p *corev1.Pod) {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	p.Status.ContainerStatuses[0].Ready = false
}

// The end of a deleted pod is shown before the pod goes: by the state that its kubelet writes, be it in an event of its own or in that of
// the deletion, in one write.
func TestTheEndOfADeletedPodIsShown(t *testing.T) {
	running, leaving := shown{Phase: corev1.PodRunning, Ready: true, Exit: -1}, shown{Phase: corev1.PodRunning, Exit: -1}
	unknown := shown{Phase: corev1.PodFailed, Exit: 137, Reason: "ContainerStatusUnknown"}
	for name, tc := range map[string]struct {
		policy corev1.RestartPolicy
		// news are what the provider's kubelet writes before the remote pod goes.
		news []func(*corev1.Pod)
		// lastOnly keeps its end out of all events but the deletion.
		lastOnly bool
		want     []shown
	}{
		"a server": {corev1.RestartPolicyAlways, []func(*corev1.Pod){stops(corev1.PodFailed, 143)}, false,
			[]shown{running, {Phase: corev1.PodFailed, Exit: 143, Reason: "Stopped"}}},
		"a server that obeys": {corev1.RestartPolicyAlways, []func(*corev1.Pod){stops(corev1.PodSucceeded, 0)}, false,
			[]shown{running, {Phase: corev1.PodSucceeded, Reason: "Stopped"}}},
		"a job's pod": {corev1.RestartPolicyNever, []func(*corev1.Pod){stops(corev1.PodFailed, 42)}, false,
			[]shown{running, {Phase: corev1.PodFailed, Exit: 42, Reason: "Stopped"}}},
		"one that may fail": {corev1.RestartPolicyOnFailure, []func(*corev1.Pod){stops(corev1.PodFailed, 42)}, false,
			[]shown{running, {Phase: corev1.PodFailed, Exit: 42, Reason: "Stopped"}}},
		"its end is in the event of its deletion only": {corev1.RestartPolicyNever, []func(*corev1.Pod){stops(corev1.PodFailed, 42)}, true,
			[]shown{running, {Phase: corev1.PodFailed, Exit: 42, Reason: "Stopped"}}},
		"it is not ready while it stops": {corev1.RestartPolicyAlways, []func(*corev1.Pod){unready, stops(corev1.PodFailed, 143)}, false,
			[]shown{running, leaving, {Phase: corev1.PodFailed, Exit: 143, Reason: "Stopped"}}},
		"it goes without a word": {corev1.RestartPolicyAlways, nil, false, []shown{running, unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.lastOnly {
				without := w.kube.WatchReactionChain[0]
				w.kube.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
					_, events, err := without.React(action)
					if err != nil {
						return true, nil, err
					}
					return true, watch.Filter(events, func(e watch.Event) (watch.Event, bool) { return e, e.Type != watch.Modified }), nil
				})
			}
			w.stopRemote = func() {
				for _, change := range tc.news {
					w.updateRemote(change)
					if !tc.lastOnly {
						now := w.remote("p")
						w.eventually("what the kubelet writes is shown", func() bool {
							pod := w.pod("p")
							return pod == nil || pod.Status.Phase == now.Status.Phase && isReady(pod) == isReady(now)
						})
					}
				}
			}
			w.provider()
			w.add(newPod("p", "uid-1", func(p *corev1.Pod) { p.Spec.RestartPolicy = tc.policy }))
			w.start()
			w.offload()
			w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
			w.calm()
			seen, before := w.follow(), w.count()
			w.terminate()
			w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
			w.calm()
			if diff := cmp.Diff(tc.want, seen.all()); diff != "" {
				t.Errorf("what was shown: %s", diff)
			}
			// The ShadowPod's deletion, one for each state that is shown beside the first, and the last deletion. Both queues work at a
			// time: on a busy machine one may come when the other has removed the pod already, and is told so.
			if writes := w.count() - before - w.late; writes != len(tc.want)+1 {
				t.Errorf("%d writes for %d states: %v", writes, len(tc.want), w.writes[before:])
			}
		})
	}
}

// What went on while nobody watched is not known; it is shown as a kubelet does that cannot find the containers.
func TestTheEndOfAPodThatNobodySaw(t *testing.T) {
	w := up(t)
	w.calm()
	w.stop()
	w.updateRemote(stops(corev1.PodFailed, 42))
	w.terminate()
	for _, remove := range []func() error{
		func() error { return w.dyn.Tracker().Delete(shadowpods.Resource, twinNamespace, "p") },
		func() error { return w.kube.Tracker().Delete(podResource, twinNamespace, "p") },
	} {
		if err := remove(); err != nil {
			// The one that plays the provider deletes the remote pod as well.
			t.Log(err)
		}
	}
	seen := w.follow()
	w.start()
	w.offload()
	w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
	if all := seen.all(); len(all) == 0 || cmp.Diff(shown{Phase: corev1.PodFailed, Exit: 137, Reason: "ContainerStatusUnknown"}, all[len(all)-1]) != "" {
		t.Errorf("what was shown: %v", all)
	}
}

// A restart between the last status and the deletion deletes the pod, and writes its status no more.
func TestARestartBeforeTheFinalDeletion(t *testing.T) {
	w := newWorld(t)
	w.provider()
	w.add(newPod("p", "uid-1", func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Now())), new(int64(30))
		p.Status.Phase = corev1.PodFailed
	}))
	w.start()
	w.offload()
	w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
	w.calm()
	if diff := cmp.Diff([]string{"local delete pods/"}, w.writes); diff != "" {
		t.Errorf("the writes: %s", diff)
	}
}

// A status that this cluster refuses to take keeps no pod for ever.
func TestAnEndThatIsRefused(t *testing.T) {
	w := up(t)
	w.calm()
	refuseStatus(w)
	w.terminate()
	w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
}

func requests(p *corev1.Pod, cpu string) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

// A pod that the node cannot take is rejected, as a kubelet does; none reaches the provider.
func TestAPodThatTheNodeCannotTake(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		reason string
	}{
		"its field":          {func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, "PodOSNotSupported"},
		"its node selector":  {func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"} }, "PodOSSelectorNodeLabelDoesNotMatch"},
		"more than there is": {func(p *corev1.Pod) { requests(p, "9") }, "OutOfcpu"},
		"all that there is":  {func(p *corev1.Pod) { requests(p, "8") }, ""},
		"the node's":         {func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Linux} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.change = func(o *Options) {
				o.Host = func() reflection.Host {
					return reflection.Host{OS: "linux", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}}
				}
			}
			w.provider()
			w.add(newPod("p", "uid-1", tc.change))
			w.start()
			w.offload()
			w.eventually("the pod runs or is rejected", func() bool { return w.pod("p").Status.Phase != corev1.PodPending })
			w.calm()
			if got := w.pod("p").Status.Reason; got != tc.reason || (w.shadow("p") == nil) != (tc.reason != "") {
				t.Errorf("reason %q, ShadowPod %v", got, w.shadow("p") != nil)
			}
			if events := w.events.all(); tc.reason != "" && (len(events) != 1 || len(w.writes) != 1) {
				t.Errorf("Events %v, writes %v", events, w.writes)
			}
		})
	}
}

// A pod says which generation of it was seen, and so do its conditions; being deleted is no reason to write.
func TestTheObservedGenerationFollows(t *testing.T) {
	w := up(t)
	w.calm()
	w.update(func(p *corev1.Pod) { p.Generation, p.Spec.ActiveDeadlineSeconds = 7, new(int64(500)) })
	w.eventually("the generation is observed", func() bool { return w.pod("p").Status.ObservedGeneration == 7 })
	for _, c := range w.pod("p").Status.Conditions {
		if c.Type == corev1.PodReady && c.ObservedGeneration != 7 {
			t.Errorf("condition %s observed generation %d", c.Type, c.ObservedGeneration)
		}
	}
}

// refuseStatus has the local API server call each status invalid.
func refuseStatus(w *world) {
	fakeapi.React(&w.local.Fake, "patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" {
			return false, nil, nil
		}
		return true, nil, invalidStatus()
	})
}

func invalidStatus() error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p", field.ErrorList{
		field.Invalid(field.NewPath("status", "containerStatuses"), nil, "may not be transitioned")})
}
