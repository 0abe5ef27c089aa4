package pod

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/test/fakeapi"
)

// asked are the reads at the provider, by verb and resource.
func (w *world) asked(verb string) (resources []string) {
	for _, action := range slices.Concat(w.dyn.Actions(), w.kube.Actions()) {
		if action.GetVerb() == verb {
			resources = append(resources, action.GetResource().Resource)
		}
	}
	return resources
}

func (w *world) watched(what string, want ...string) {
	w.t.Helper()
	if got := w.asked("watch"); !slices.Equal(got, want) {
		w.t.Errorf("%s: watches of %v", what, got)
	}
}

func TestTwinsAreWatchedOnceThereIsAPod(t *testing.T) {
	w := newWorld(t)
	w.provider()
	w.start()
	w.offload()
	w.eventually("the twin is surveyed", func() bool { return slices.Contains(w.asked("list"), "shadowpods") })
	w.calm()
	w.watched("no pod")
	w.add(newPod("p", "uid-1"))
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.watched("a pod", "shadowpods", "pods")
	w.force()
	w.eventually("the ShadowPod is gone", func() bool { return w.shadow("p") == nil })
	// Something may still be on its way to the provider.
	w.peer.set(func(s *peer.State) { s.Epoch++ })
	w.eventually("the twin is watched anew", func() bool { return len(w.asked("watch")) == 4 })
}

func TestWhatWasLeftInATwinGoes(t *testing.T) {
	w := newWorld(t)
	var refusals atomic.Int32
	fakeapi.React(&w.dyn.Fake, "list", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refusals.Add(1) <= 3 {
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	w.addShadow("gone")
	w.start()
	w.offload()
	w.eventually("the ShadowPod that no pod stands behind is gone", func() bool { return w.shadow("p") == nil })
	if n := refusals.Load(); n < 4 {
		t.Errorf("the twin was asked for %d times", n)
	}
}

// A namespace that left the mapping, and comes back, is looked at again.
func TestANamespaceThatComesBackIsSurveyedAgain(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.offload()
	surveys := func() int { return len(w.asked("list")) }
	w.eventually("the twin is surveyed", func() bool { return surveys() == 1 })
	w.setMapping(Mapping{Known: true})
	w.eventually("the survey is forgotten", func() bool {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		return len(w.r.link.surveyed) == 0
	})
	w.addShadow("gone")
	w.offload()
	w.eventually("the ShadowPod that no pod stands behind is gone", func() bool { return w.shadow("p") == nil })
}
