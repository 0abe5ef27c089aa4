package pod

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

func (w *world) revoke() { w.peer.set(func(s *peer.State) { s.Reason = peer.ReasonRevoked }) }

func (w *world) grant() { w.peer.set(func(s *peer.State) { s.Reason = peer.ReasonConnected }) }

// leave has the provider say that it removes the twin.
func (w *world) leave() {
	w.setMapping(Mapping{Known: true, Desired: map[string]string{"shop": twinNamespace}, Leaving: map[string]bool{"shop": true}})
}

// take has the provider remove the pod and what it was made of.
func (w *world) take() {
	w.t.Helper()
	if err := w.dyn.Tracker().Delete(shadowpods.Resource, twinNamespace, "p"); err != nil {
		w.t.Fatal(err)
	}
	// The one that plays the provider may have been faster.
	if err := w.kube.Tracker().Delete(podResource, twinNamespace, "p"); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

// why is the reason for which a pod failed or is not ready.
func why(p *corev1.Pod) string {
	if p.Status.Phase == corev1.PodFailed {
		return p.Status.Reason
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	return ""
}

func TestWhatAPodShowsWhoseProviderTookTheRightsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		happens []func(*world)
		phase   corev1.PodPhase
	}{
		"it may still run there":                            {[]func(*world){(*world).revoke}, corev1.PodRunning},
		"it was seen to go":                                 {[]func(*world){(*world).revoke, (*world).take}, corev1.PodFailed},
		"its namespace was seen to leave, and then it":      {[]func(*world){(*world).revoke, (*world).leave, (*world).take}, corev1.PodFailed},
		"it was seen to go before the rights":               {[]func(*world){(*world).leave, (*world).take, (*world).revoke}, corev1.PodFailed},
		"its namespace was seen to leave, it was not so":    {[]func(*world){(*world).leave, (*world).revoke}, corev1.PodRunning},
		"nothing was watched when it may have been removed": {[]func(*world){(*world).lose, (*world).take, (*world).revoked}, corev1.PodRunning},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t)
			for _, happens := range tc.happens {
				w.calm()
				happens(w)
			}
			w.eventually("the pod shows it", func() bool {
				p := w.pod("p")
				return p.Status.Phase == tc.phase && why(p) == offloadingv1beta1.ReasonRightsRevoked
			})
			w.eventually("it is told", func() bool {
				return strings.Count(strings.Join(w.events.all(), "\n"), offloadingv1beta1.ReasonRightsRevoked+":") == 1
			})
			before := w.count()
			w.calm()
			if p := w.pod("p"); p.Status.Phase != tc.phase || w.count() != before {
				t.Errorf("it does not stay so: %+v, %v", p.Status, w.writes[before:])
			}
		})
	}
}

func (w *world) lose() {
	w.peer.set(func(s *peer.State) { s.Connected, s.Reason = false, peer.ReasonUnreachable })
}

// revoked has the provider answer again, without our rights.
func (w *world) revoked() {
	w.peer.set(func(s *peer.State) { s.Connected, s.Reason = true, peer.ReasonRevoked })
}

func TestAProcessThatStartsWithoutRightsConcludesNothing(t *testing.T) {
	for name, mapped := range map[string]func(*world){"the twin is there": (*world).offload, "the twin is gone": (*world).leave} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.revoke()
			w.add(newPod("p", "uid-1", func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}))
			w.start()
			mapped(w)
			shown := func() bool {
				p := w.pod("p")
				return p.Status.Phase == corev1.PodRunning && why(p) == offloadingv1beta1.ReasonRightsRevoked
			}
			w.eventually("the pod is not ready", shown)
			w.calm()
			if !shown() {
				t.Errorf("it does not stay so: %+v", w.pod("p").Status)
			}
		})
	}
}

func TestAPodRunsOnWhenTheRightsAreBack(t *testing.T) {
	w := up(t)
	before, _ := w.r.Place(key{Namespace: "shop", Name: "p"})
	w.revoke()
	w.eventually("the pod is not ready", func() bool { return !isReady(w.pod("p")) })
	w.grant()
	w.eventually("the pod is ready again", func() bool { return isReady(w.pod("p")) })
	if w.ran != 1 {
		t.Errorf("there were %d remote pods", w.ran)
	}
	// Watches of others that were refused meanwhile would be tried again up to a minute later: they are begun anew, as those here.
	if place, _ := w.r.Place(key{Namespace: "shop", Name: "p"}); place.Epoch != before.Epoch+1 {
		t.Errorf("watches at the place are of period %d, and were of %d", place.Epoch, before.Epoch)
	}
}

func TestNothingIsMadeWithoutRights(t *testing.T) {
	w := newWorld(t)
	w.provider()
	w.revoke()
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the pod says what it waits for", func() bool { return w.pod("p").Status.Reason == offloadingv1beta1.ReasonRightsRevoked })
	w.calm()
	if w.shadow("p") != nil {
		t.Error("a ShadowPod was made")
	}
	w.grant()
	w.eventually("the pod runs once the rights are back", func() bool { return isReady(w.pod("p")) })
}

func TestAnOutageIsToldOnceInANamespace(t *testing.T) {
	w := up(t)
	w.add(newPod("q", "uid-2"))
	w.eventually("both are ready", func() bool { return isReady(w.pod("p")) && isReady(w.pod("q")) })
	w.lose()
	w.eventually("both are not ready", func() bool { return !isReady(w.pod("p")) && !isReady(w.pod("q")) })
	w.calm() // what is told comes after what is shown
	w.peer.set(func(s *peer.State) { s.Connected, s.Reason = true, peer.ReasonConnected })
	w.eventually("both are ready again", func() bool { return isReady(w.pod("p")) && isReady(w.pod("q")) })
	w.calm()
	w.revoke()
	w.eventually("both are not ready", func() bool { return !isReady(w.pod("p")) && !isReady(w.pod("q")) })
	w.calm()
	told := map[string]int{}
	for _, line := range w.events.all() {
		reason, _, _ := strings.Cut(line, ":")
		told[reason]++
	}
	want := map[string]int{offloadingv1beta1.ReasonRemoteUnavailable: 1, offloadingv1beta1.ReasonRightsRevoked: 1, offloadingv1beta1.ReasonRemotePodExists: 1}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// Services do not send anything where no packet arrives, and nothing is done to the pods for that.
func TestPodsBehindATunnelThatIsDownAreNotReady(t *testing.T) {
	w := up(t)
	w.add(newPod("q", "uid-2"))
	both := func(ready bool) func() bool {
		return func() bool { return isReady(w.pod("p")) == ready && isReady(w.pod("q")) == ready }
	}
	w.eventually("both are ready", both(true))
	w.tunnel(false)
	w.eventually("none is ready", both(false))
	if got := why(w.pod("q")); got != offloadingv1beta1.ReasonNetworkUnavailable {
		t.Errorf("because of %s", got)
	}
	w.tunnel(true)
	w.eventually("both are ready again", both(true))
	w.calm()
	if w.ran != 2 {
		t.Errorf("there were %d remote pods", w.ran)
	}
	told := strings.Join(w.events.all(), "\n")
	if strings.Count(told, offloadingv1beta1.ReasonNetworkUnavailable+":") != 1 || strings.Count(told, `cluster "milan" is reached again`) != 1 {
		t.Errorf("what was told:\n%s", told)
	}
}

// The overlay at a node of the provider is silent: the pod there is not ready, one elsewhere is, and it is told once, of that pod.
func TestAPodOnANodeThatIsNotReachedIsNotReady(t *testing.T) {
	w := up(t)
	w.add(newPod("q", "uid-2"))
	w.eventually("both are ready", func() bool { return isReady(w.pod("p")) && isReady(w.pod("q")) })
	say := func(status corev1.ConditionStatus) {
		w.updateRemote(func(p *corev1.Pod) {
			p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == offloadingv1beta1.ReachableCondition })
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: offloadingv1beta1.ReachableCondition, Status: status})
		})
	}
	say(corev1.ConditionFalse)
	w.eventually("one is not ready", func() bool { return !isReady(w.pod("p")) })
	if got := why(w.pod("p")); got != offloadingv1beta1.ReasonNetworkUnavailable || !isReady(w.pod("q")) {
		t.Errorf("because of %s; the other is ready: %t", got, isReady(w.pod("q")))
	}
	say(corev1.ConditionTrue)
	w.eventually("it is ready again", func() bool { return isReady(w.pod("p")) })
	say(corev1.ConditionFalse)
	w.eventually("it is not ready again", func() bool { return !isReady(w.pod("p")) })
	w.calm()
	told := strings.Join(w.events.all(), "\n")
	if strings.Count(told, offloadingv1beta1.ReasonNetworkUnavailable+":") != 1 || strings.Contains(told, "is reached again") {
		t.Errorf("what was told:\n%s", told)
	}
}

func TestASecondOutageIsToldWhereAllPodsFailedInTheFirst(t *testing.T) {
	w := up(t)
	w.revoke()
	w.take()
	w.eventually("the pod failed", func() bool { return w.pod("p").Status.Phase == corev1.PodFailed })
	w.grant()
	w.add(newPod("q", "uid-2"))
	w.eventually("another one is ready", func() bool { return isReady(w.pod("q")) })
	w.revoke()
	w.eventually("it is not ready", func() bool { return !isReady(w.pod("q")) })
	w.eventually("both outages were told", func() bool {
		return strings.Count(strings.Join(w.events.all(), "\n"), offloadingv1beta1.ReasonRightsRevoked+":") == 2
	})
}
