package dataplane

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A peer that is isolated reaches no pod but those that are shared with it, whatever the ranges, and the others reach nothing there that answers.
// What is shared works as it does without isolation.
func TestAnIsolatedPeerReachesSharedPodsAlone(t *testing.T) {
	passed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all := anyWorld(t)
		for _, c := range all {
			for _, p := range c.peers {
				shared := rapid.SliceOfDistinct(rapid.SampledFrom(c.allPods()), func(a netip.Addr) netip.Addr { return a }).Draw(t, "shared")
				p.isolation = Isolation{On: rapid.Bool().Draw(t, "isolated"), Pods: shared}
			}
		}
		w := newWalker(worldOf(t, all...))
		for _, from := range all {
			for _, p := range from.peers {
				source := rapid.SampledFrom(from.allPods()).Draw(t, "source")
				for _, pod := range some(t, p.with.allPods()) {
					to, _ := p.seenAs(pod)
					trip := w.walk(from.place(source), Packet{Protocol: UDP, Source: source, Destination: to, SourcePort: 1000, DestinationPort: 80, Size: 60})
					back := p.with.peer(from)
					reaches := func(i Isolation, pod netip.Addr) bool { return !i.On || slices.Contains(i.Pods, pod) }
					last, arrived := Arrived(trip.There)
					_, answered := Arrived(trip.Back)
					if want := reaches(back.isolation, pod); arrived != want || arrived && last.Place != p.with.place(pod) {
						t.Fatalf("%s of %s reaches %s of %s: %t, not %t\n%s", source, from.name, pod, p.with.name, arrived, want, trip)
					}
					if want := arrived && reaches(p.isolation, source); answered != want {
						t.Fatalf("%s of %s is answered by %s of %s: %t, not %t\n%s", source, from.name, pod, p.with.name, answered, want, trip)
					}
					if !arrived {
						refused++
						if why := trip.There[len(trip.There)-1].Why; !strings.Contains(why, "as "+counterIsolated) {
							t.Fatalf("%s is dropped for another reason: %s\n%s", to, why, trip)
						}
					} else {
						passed++
					}
				}
			}
		}
	})
	if passed == 0 || refused == 0 {
		t.Errorf("%d pass, %d do not", passed, refused)
	}
}

// Nothing of it is there where it is off, so that nothing is written or looked up per pod.
func TestNothingIsIsolatedUnlessAsked(t *testing.T) {
	a, _ := twins()
	input := a.gatewayInput(a.peers[0])
	input.Isolation.Pods = a.allPods()
	if state, _ := Gateway(input); strings.Contains(state.String(), setShared) || strings.Contains(state.String(), counterIsolated) {
		t.Errorf("isolation is off, and there is\n%s", state)
	}
	input.Isolation.On = true
	state, problems := Gateway(input)
	golden(t, "gateway-isolated.txt", state.String())
	if len(problems) > 0 {
		t.Error(problems)
	}
}
