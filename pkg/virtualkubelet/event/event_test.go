package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

const (
	warning = corev1.EventTypeWarning
	normal  = corev1.EventTypeNormal
)

func (w *world) equal(what string, want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestWarningComesBackAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.live().Add(event("1", warning, "FailedMount", "no such volume"))
		w.equal("writes", []string{"create"}, w.took())
		got := w.all()[0]
		w.equal("the Event", []string{"local-web", "FailedMount", "[cluster milan] no such volume", "kubelet"},
			[]string{string(got.InvolvedObject.UID), got.Reason, got.Message, got.Source.Component})
	})
}

func TestHealthyPodCostsOneEvent(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		for i, reason := range []string{"Pulling", "Pulled", "Started"} {
			w.live().Add(event(fmt.Sprint(i), normal, reason, reason+" it"))
			w.pass(time.Second)
		}
		w.equal("writes while it starts", []string(nil), w.took())
		w.pass(calm)
		w.equal("writes", []string{"create"}, w.took())
		w.equal("reason", "Started", w.all()[0].Reason)
		w.pass(time.Hour)
		w.equal("later writes", []string(nil), w.took())
	})
}

func TestSlowPullIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.live().Add(event("1", normal, "Pulling", "a large image"))
		w.pass(calm)
		w.equal("reason", "Pulling", w.all()[0].Reason)
	})
}

func TestRepeatsRaiseTheCount(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		first := event("1", warning, "BackOff", "again and again")
		w.live().Add(first)
		w.took()
		for i := range 100 {
			again := event("1", warning, "BackOff", "again and again")
			again.Count = int32(i + 2)
			w.live().Modify(again)
			w.pass(100 * time.Millisecond)
		}
		w.pass(calm)
		if writes := w.took(); len(writes) == 0 || len(writes) > 3 || slices.Contains(writes, "create") {
			w.Errorf("100 repeats in ten seconds made the writes %v", writes)
		}
		w.equal("number of Events", 1, len(w.all()))
		if count := w.all()[0].Count; count < 25 {
			w.Errorf("the count is %d", count)
		}
	})
}

func TestRestartReplaysNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.live().Add(event("1", warning, "BackOff", "again"))
		w.took()
		w.stop()
		w.mu.Lock()
		w.version = "471100000"
		w.mu.Unlock()
		w.start()
		w.pass(time.Minute)
		w.equal("writes of the restart", []string(nil), w.took())
		w.equal("where the watch begins", "471100000", w.live().from)
		again := event("1", warning, "BackOff", "again")
		again.Count = 2
		w.live().Modify(again)
		w.equal("writes of a repeat", []string{"patch"}, w.took())
		w.equal("count", int32(2), w.all()[0].Count)
		w.equal("number of Events", 1, len(w.all()))
	})
}

func TestExpiredEventIsMadeAnew(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.live().Modify(event("1", warning, "BackOff", "again"))
		w.equal("writes", []string{"patch", "create"}, w.took())
	})
}

func TestWatchGoesOnWhereItBrokeOff(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		e := event("1", warning, "BackOff", "again")
		w.live().Add(e)
		w.mu.Lock()
		w.version = "471100000"
		w.mu.Unlock()
		w.peer.set(false, 1)
		w.pass(time.Hour)
		w.equal("watches while cut off", 1, len(w.opened()))
		w.peer.set(true, 1)
		w.equal("where the watch goes on", e.ResourceVersion, w.live().from)
		w.equal("watches", 2, len(w.opened()))

		w.live().Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		w.pass(maxBackOff)
		w.equal("where the watch begins when the provider has forgotten", "471100000", w.live().from)

		w.mu.Lock()
		w.version = "5"
		w.mu.Unlock()
		w.peer.set(true, 2)
		w.equal("where the watch begins when the provider was set back", "5", w.live().from)
	})
}

func TestWatchOpensWithTheFirstObject(t *testing.T) {
	inBubble(t, func(w *world) {
		w.locals.objects = map[string]reflection.Object{}
		w.start()
		w.pass(time.Hour)
		w.equal("watches of an empty namespace", 0, len(w.opened()))
		w.equal("lists of an empty namespace", 0, w.lists)
		w.locals.add("Pod", localPod("web"))
		w.carrier.Crossed("elsewhere")
		w.equal("watches when something of another namespace crossed", 0, len(w.opened()))
		w.carrier.Crossed(here)
		w.equal("watches", 1, len(w.opened()))
	})
}

func TestProviderThatNamesNoVersionIsNotWatched(t *testing.T) {
	inBubble(t, func(w *world) {
		w.version = "0"
		w.start()
		w.pass(10 * time.Minute)
		w.equal("watches, which would bring back all there is", 0, len(w.opened()))
		if w.lists > 20 {
			w.Errorf("asked %d times in ten minutes", w.lists)
		}
	})
}

func TestNothingComesBackWhenTurnedOff(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.wanted.Change(func(now *Wanted) { now.Config = offloadingv1beta1.ReflectorConfig{} })
		synctest.Wait()
		if !w.live().IsStopped() {
			w.Error("the watch stays open")
		}
		w.wanted.Change(func(now *Wanted) {
			now.Config = offloadingv1beta1.ReflectorConfig{NumWorkers: 1, Type: offloadingv1beta1.AllowList}
		})
		w.equal("watches", 2, len(w.opened()))
		w.live().Add(event("1", warning, "BackOff", "again"))
		w.equal("writes of an object that is not on the list", []string(nil), w.took())
	})
}

func TestEventWaitsForItsObject(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		about := func(e *corev1.Event) { e.InvolvedObject.Name = "late" }
		w.live().Add(event("1", warning, "FailedScheduling", "no room", about))
		w.equal("writes while nothing is known", []string(nil), w.took())
		w.locals.add("Pod", localPod("late"))
		w.pass(2 * time.Second)
		w.equal("writes", []string{"create"}, w.took())
		w.live().Add(event("2", warning, "FailedScheduling", "no room", func(e *corev1.Event) { e.InvolvedObject.Name = "never" }))
		w.pass(time.Hour)
		w.equal("writes about an object that is not ours", []string(nil), w.took())
	})
}

func TestFailedWriteIsTriedAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		failures := 2
		w.fail = func(string) error {
			if failures--; failures >= 0 {
				return errors.New("no route to host")
			}
			return nil
		}
		w.start()
		w.live().Add(event("1", warning, "BackOff", "again"))
		w.pass(time.Minute)
		w.equal("writes", []string{"create", "create", "create"}, w.took())
		w.equal("number of Events", 1, len(w.all()))
	})
}

// W4: a hostile provider puts nothing on an object that is not behind the Event, and changes no Event but its own.
func TestW4PoisonedEvents(t *testing.T) {
	foreign := func(change func(*corev1.Event)) *corev1.Event {
		return event("poison", warning, "Poison", "poison", change)
	}
	poison := map[string]*corev1.Event{
		"an object of kube-system":   foreign(func(e *corev1.Event) { e.InvolvedObject.Namespace = "kube-system" }),
		"an Event of kube-system":    foreign(func(e *corev1.Event) { e.Namespace, e.InvolvedObject.Namespace = "kube-system", "kube-system" }),
		"the local namespace's name": foreign(func(e *corev1.Event) { e.InvolvedObject.Namespace = here }),
		"a Node":                     foreign(func(e *corev1.Event) { e.InvolvedObject.Kind = "Node" }),
		"a Namespace":                foreign(func(e *corev1.Event) { e.InvolvedObject.Kind = "Namespace" }),
		"a Deployment":               foreign(func(e *corev1.Event) { e.InvolvedObject.Kind, e.InvolvedObject.APIVersion = "Deployment", "apps/v1" }),
		"a ServiceAccount":           foreign(func(e *corev1.Event) { e.InvolvedObject.Kind = "ServiceAccount" }),
		"a Pod of another group":     foreign(func(e *corev1.Event) { e.InvolvedObject.APIVersion = "evil.example/v1" }),
		"no version at all":          foreign(func(e *corev1.Event) { e.InvolvedObject.APIVersion = "a/b/c" }),
		"a pod that did not cross":   foreign(func(e *corev1.Event) { e.InvolvedObject.Name = "private" }),
		"a Secret that stays home":   foreign(func(e *corev1.Event) { e.InvolvedObject.Kind, e.InvolvedObject.Name = "Secret", "private" }),
		"a name with slashes":        foreign(func(e *corev1.Event) { e.InvolvedObject.Name = "../../web" }),
		"a name of 10 kB":            foreign(func(e *corev1.Event) { e.InvolvedObject.Name = strings.Repeat("a", 10_000) }),
		"no name":                    foreign(func(e *corev1.Event) { e.InvolvedObject.Name = "" }),
		"no UID":                     foreign(func(e *corev1.Event) { e.UID = "" }),
		"no type":                    foreign(func(e *corev1.Event) { e.Type = "" }),
		"another type":               foreign(func(e *corev1.Event) { e.Type = "Critical" }),
		"no reason":                  foreign(func(e *corev1.Event) { e.Reason = "" }),
		"a reason with a newline":    foreign(func(e *corev1.Event) { e.Reason = "All\nWell" }),
		"a reason of 1 MB":           foreign(func(e *corev1.Event) { e.Reason = strings.Repeat("A", 1<<20) }),
		"an Event of last year":      foreign(func(e *corev1.Event) { e.FirstTimestamp, e.LastTimestamp = old, old }),
		"an Event without time":      foreign(func(e *corev1.Event) { e.FirstTimestamp, e.LastTimestamp = metav1.Time{}, metav1.Time{} }),
		"our own success":            foreign(func(e *corev1.Event) { e.Type, e.Source.Component = normal, "liqo-shadowpod" }),
	}
	inBubble(t, func(w *world) {
		w.start()
		for _, e := range poison {
			w.live().Add(e)
		}
		w.pass(time.Minute)
		w.equal("number of Events that came of the poison", 0, len(w.all()))
		w.equal("writes", []string(nil), w.took())

		// What is about a pod of ours comes back bounded.
		w.live().Add(event("big", warning, "Failed", strings.Repeat("\x1b[31mx\x00", 100_000), func(e *corev1.Event) {
			e.Count, e.LastTimestamp = 1<<31-1, metav1.NewTime(time.Now().Add(1000*time.Hour))
			e.Related = &corev1.ObjectReference{Kind: "Secret", Namespace: "kube-system", Name: "admin"}
			e.Source.Component = strings.Repeat("c", 1<<20)
			e.Labels = map[string]string{"a": "b"}
		}))
		got := w.all()[0]
		if len(got.Message) > 1024 || strings.ContainsAny(got.Message, "\x1b\x00") || got.Related != nil || got.Labels != nil ||
			got.LastTimestamp.After(time.Now()) || got.Count > 100_000 || len(got.Source.Component) > 80 {
			w.Errorf("not bounded: %.300v", got)
		}

		// An Event of somebody else that has the name of ours is left alone.
		name := reflection.EventName("web", provider, "squatted")
		squatted := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{UID: "another"}, Message: "mine"}
		w.mu.Lock()
		w.events[name] = squatted.DeepCopy()
		w.mu.Unlock()
		w.live().Modify(event("squatted", warning, "Failed", "yours"))
		w.pass(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.equal("the Event of somebody else", squatted, w.events[name])
	})
}

var old = metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))

// D13: whatever a provider sends, the writes at home are bounded, and so is what waits.
func TestD13EventStorm(t *testing.T) {
	const seconds, perSecond = 20, 1000
	for name, tc := range map[string]struct {
		about func(i int, e *corev1.Event)
		most  int
	}{
		"about one pod, the same again and again": {func(_ int, e *corev1.Event) { e.UID = "1" }, 10},
		"about one pod, all different":            {func(i int, e *corev1.Event) { e.Message = fmt.Sprint("message ", i) }, 30},
		"about one pod, of invented sources":      {func(i int, e *corev1.Event) { e.Source.Component = fmt.Sprint("source-", i) }, 30},
		"about one pod, of invented reasons":      {func(i int, e *corev1.Event) { e.Reason = fmt.Sprint("Reason", i) }, 30},
		"about a thousand pods": {func(i int, e *corev1.Event) {
			e.InvolvedObject.Name, e.Message = fmt.Sprint("pod-", i%1000), fmt.Sprint("message ", i)
		}, writeBurst + writesPerSecond*(seconds+120)},
		"about pods that do not exist": {func(i int, e *corev1.Event) { e.InvolvedObject.Name = fmt.Sprint("ghost-", i) }, 0},
		"Normal ones about one pod":    {func(i int, e *corev1.Event) { e.Type, e.Reason = normal, "Pulling"; e.Message = fmt.Sprint(i) }, 15},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				for i := range 1000 {
					w.locals.add("Pod", localPod(fmt.Sprint("pod-", i)))
				}
				w.start()
				for i := range seconds * perSecond {
					e := event(fmt.Sprint(i), warning, "BackOff", "again", func(e *corev1.Event) { tc.about(i, e) })
					// A carrier that is deaf has no watch to send over.
					if live := w.live(); !live.IsStopped() {
						live.Add(e)
					}
					if i%(perSecond/10) == 0 {
						time.Sleep(100 * time.Millisecond)
					}
					if waits := w.waiting(); waits > 2*maxHeld+maxUnknown {
						w.Fatalf("%d Events wait", waits)
					}
				}
				w.pass(2 * time.Minute)
				writes := w.took()
				if len(writes) > tc.most {
					w.Errorf("%d writes, most are to be %d", len(writes), tc.most)
				}
				if len(writes) == 0 && tc.most > 0 {
					w.Error("nothing was written at all")
				}
				// Whoever is quiet is heard afterwards.
				w.pass(time.Hour)
				w.live().Add(event("after", warning, "Failed", "after the storm", func(e *corev1.Event) { e.InvolvedObject.Name = "pod-7" }))
				heard := slices.ContainsFunc(w.all(), func(e *corev1.Event) bool { return strings.HasSuffix(e.Message, "after the storm") })
				if !heard {
					w.Error("what came after the storm was not heard")
				}
			})
		})
	}
}

func (w *world) waiting() int {
	s := w.carrier.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// A pod that crashes for a day costs what a kubelet of this cluster would write: 25 at once and one every five minutes, of
// each type.
func TestCrashLoopCostsNoMoreThanALocalOne(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		const day = 24 * time.Hour
		for i := range int(day / (5 * time.Minute)) {
			for _, e := range []*corev1.Event{
				event("pulled", normal, "Pulled", "image is there"), event("started", normal, "Started", "container started"),
				event("backoff", warning, "BackOff", "restarting failed container"),
			} {
				e.UID, e.Count = types.UID(e.Reason), int32(i+1)
				w.live().Modify(e)
			}
			w.pass(5 * time.Minute)
		}
		most := 2 * (25 + int(day/(5*time.Minute)))
		if writes := w.took(); len(writes) > most {
			w.Errorf("%d writes a day, a kubelet makes %d", len(writes), most)
		}
		if events := w.all(); len(events) > 3 {
			w.Errorf("%d Events", len(events))
		}
	})
}
