package pod

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

// asked starts a virtual kubelet whose first creation of a ShadowPod is answered by that.
func asked(t *testing.T, answer func(*world, clienttesting.Action) error) *world {
	t.Helper()
	w := newWorld(t)
	fakeapi.React(&w.dyn.Fake, "create", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := answer(w, action)
		return err != nil, nil, err
	})
	w.start()
	w.offload()
	w.calm()
	w.add(newPod("p", "uid-1"))
	return w
}

// gone waits for the end of the pod, or makes sure that it stays.
func (w *world) gone(want bool) {
	w.t.Helper()
	if want {
		w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
		return
	}
	w.calm()
	if w.pod("p") == nil {
		w.t.Fatal("the pod is gone, although the provider may run it: its successor would run beside it")
	}
}

func (w *world) again() {
	w.stop()
	w.start()
	w.offload()
	w.calm()
}

// A creation whose answer is lost may have been made. As on any node that cannot be reached, the pod is not gone before somebody knows.
func TestAPodThatTheProviderWasAskedForIsNotTakenForOneThatNeverWas(t *testing.T) {
	for name, restart := range map[string]bool{"by the same process": false, "by the next process": true} {
		t.Run(name, func(t *testing.T) {
			w := asked(t, func(w *world, action clienttesting.Action) error {
				_ = w.dyn.Tracker().Create(shadowpods.Resource, action.(clienttesting.CreateAction).GetObject(), twinNamespace)
				w.lose()
				return apierrors.NewTimeoutError("the answer is lost", 1)
			})
			w.eventually("the provider does not answer", func() bool { return w.shadow("p") != nil })
			if restart {
				w.again()
			}
			w.terminate()
			w.gone(false)
			w.peer.set(func(s *peer.State) { s.Connected, s.Reason = true, peer.ReasonConnected })
			w.gone(true)
			if w.shadow("p") != nil {
				t.Error("its ShadowPod is left")
			}
		})
	}
}

// What is known of a pod that waits outlives the process, until the provider is asked for it.
func TestAPodThatWaitsSaysThatNobodyAskedForIt(t *testing.T) {
	waits := func(t *testing.T) *world {
		w := newWorld(t)
		w.lose()
		w.start()
		w.offload()
		w.calm()
		w.add(newPod("p", "uid-1"))
		w.eventually("the pod says so", func() bool {
			status := w.pod("p").Status
			return reflection.NotRequested(&status) && status.Reason == offloadingv1beta1.ReasonRemoteUnavailable
		})
		return w
	}
	t.Run("it goes", func(t *testing.T) {
		w := waits(t)
		w.again()
		w.terminate()
		w.gone(true)
	})
	t.Run("it is asked for", func(t *testing.T) {
		w := waits(t)
		w.again()
		w.provider()
		w.peer.set(func(s *peer.State) { s.Connected, s.Reason = true, peer.ReasonConnected })
		w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
		if status := w.pod("p").Status; reflection.NotRequested(&status) {
			t.Error("it still says that it was never asked for")
		}
	})
	t.Run("it is asked for, and the process ends", func(t *testing.T) {
		w := waits(t)
		w.mu.Lock()
		w.fail = func(n int, before bool) bool { return !before && w.writes[n-1] == "remote create shadowpods/" }
		w.mu.Unlock()
		w.peer.set(func(s *peer.State) { s.Connected, s.Reason = true, peer.ReasonConnected })
		w.eventually("the ShadowPod is made", func() bool { return w.shadow("p") != nil })
		w.lose()
		w.again()
		w.terminate()
		w.gone(false)
	})
	t.Run("an earlier process may have asked for it", func(t *testing.T) {
		w := newWorld(t)
		w.lose()
		w.add(newPod("p", "uid-1"))
		w.start()
		w.offload()
		w.calm()
		w.terminate()
		w.gone(false)
	})
}

// What the provider refused was not made.
func TestAPodThatTheProviderRefusedMayGoWithoutIt(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		goes   bool
	}{
		"refused":      {apierrors.NewForbidden(shadowpods.Resource.GroupResource(), "p", nil), true},
		"no namespace": {apierrors.NewNotFound(corev1.Resource("namespaces"), twinNamespace), true},
		"an error":     {apierrors.NewInternalError(http.ErrHandlerTimeout), false},
		"a timeout":    {&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan struct{}, 100)
			w := asked(t, func(*world, clienttesting.Action) error {
				answered <- struct{}{}
				return tc.answer
			})
			<-answered
			w.calm()
			w.lose()
			w.terminate()
			w.gone(tc.goes)
		})
	}
}

// What was written down is taken back before the provider is asked, also while the cache does not show it yet; where nothing has to wait,
// nothing is written.
func TestWhatIsWrittenIsTakenBackFirst(t *testing.T) {
	w := up(t)
	w.calm()
	if w.mu.Lock(); slices.Contains(w.writes[:1], "local patch pods/status") || len(w.writes) != 2 {
		t.Errorf("the writes of a pod that has nothing to wait for: %v", w.writes)
	}
	w.mu.Unlock()
	u, asked := w.r.memory.unasked, 0
	ask := func(pod *corev1.Pod) error {
		_, err := u.ask(t.Context(), pod, func() (types.UID, error) { asked++; return "shadow", nil })
		return err
	}
	w.add(newPod("q", "uid-2", func(p *corev1.Pod) { p.Namespace = "other" }))
	w.eventually("the pod waits", func() bool {
		object, err := w.local.Tracker().Get(podResource, "other", "q")
		return err == nil && reflection.NotRequested(&object.(*corev1.Pod).Status)
	})
	w.calm()
	object, err := w.local.Tracker().Get(podResource, "other", "q")
	if err != nil {
		t.Fatal(err)
	}
	now := object.(*corev1.Pod)
	past := now.DeepCopy()
	past.Status = corev1.PodStatus{Phase: corev1.PodPending}
	another := past.DeepCopy()
	another.UID = "uid-3"
	u.put("uid-3", true)
	if err := ask(another); err == nil || asked != 0 || !u.has("uid-3") {
		t.Errorf("of a pod that is gone: error %v, asked %d times", err, asked)
	}
	if err := ask(past); err != nil || asked != 1 || u.has("uid-2") {
		t.Errorf("error %v, asked %d times", err, asked)
	}
	object, err = w.local.Tracker().Get(podResource, "other", "q")
	if err != nil || reflection.NotRequested(&object.(*corev1.Pod).Status) {
		t.Errorf("the pod still says that it was not asked for: %v", err)
	}
}
