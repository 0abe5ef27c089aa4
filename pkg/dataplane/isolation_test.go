package dataplane

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A peer that is isolated reaches no pod but those that are shared with it, whatever the ranges, and the others send nothing to it. What is shared works
// as it does without isolation.
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
					if want := reaches(p.isolation, source) && reaches(back.isolation, pod); arrived != want || arrived && last.Place != p.with.place(pod) {
						t.Fatalf("%s of %s reaches %s of %s: %t, not %t\n%s", source, from.name, pod, p.with.name, arrived, want, trip)
					}
					if answered != arrived {
						t.Fatalf("%s of %s is answered by %s of %s: %t, not %t\n%s", source, from.name, pod, p.with.name, answered, arrived, trip)
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

// Where a peer is isolated, pods that are not shared with it do not send to it either. No answer comes back, but a datagram needs none: at a
// provider these are the pods of its other consumers, and the peer is a consumer that never heard of them.
func TestPodsThatAreNotSharedSendNothingToAnIsolatedPeer(t *testing.T) {
	lab := isolatedLab(t)
	for name, tc := range map[string]struct {
		from   Place
		packet Packet
		passes bool
	}{
		"a datagram of a shared pod":  {"A pod 10.244.2.2", Packet{Protocol: UDP, Source: addr("10.244.2.2"), SourcePort: 1000, DestinationPort: 514}, true},
		"a datagram of another one":   {"A pod 10.244.1.2", Packet{Protocol: UDP, Source: addr("10.244.1.2"), SourcePort: 1000, DestinationPort: 514}, false},
		"a connection of another one": {"A pod 10.244.1.2", Packet{Protocol: TCP, Source: addr("10.244.1.2"), SourcePort: 1000, DestinationPort: 80}, false},
		"an echo of another one":      {"A pod 10.244.1.2", Packet{Protocol: ICMP, Type: echoRequest, Source: addr("10.244.1.2"), SourcePort: 9, DestinationPort: 9}, false},
		"what looks like an answer":   {"A pod 10.244.1.2", Packet{Protocol: ICMP, Type: echoReply, Source: addr("10.244.1.2"), SourcePort: 9, DestinationPort: 9}, false},
		"an error of another one":     {"A pod 10.244.1.2", Packet{Protocol: ICMP, Type: unreachable, Source: addr("10.244.1.2"), Quoted: &Packet{Protocol: UDP, Source: addr("10.61.2.2"), Destination: addr("10.244.1.2"), SourcePort: 1, DestinationPort: 2}}, false},
		"a datagram of a node":        {"A1", Packet{Protocol: UDP, SourcePort: 1000, DestinationPort: 514}, true},
	} {
		tc.packet.Destination, tc.packet.Size = addr("10.61.2.2"), 100
		trip := Walk(lab.World, tc.from, tc.packet)
		if last, arrived := Arrived(trip.There); arrived != tc.passes {
			t.Errorf("%s arrives: %v, at %s as %s\n%s", name, arrived, last.Place, last.After, trip)
		}
	}
}

// What consumers of one provider reach of each other's home: where nobody isolates, pods that run at the provider are pods of the provider, whoever
// they are of, and reach whatever pods their provider reaches. Either isolation ends that: the provider's for all pods that are not shared with
// that consumer, that consumer's for all its pods that are not shared with the provider. The homes themselves do not reach each other.
func TestWalkPodsOfAnotherConsumerAtTheProvider(t *testing.T) {
	theirs, ours, private, shared := addr("10.244.1.2"), addr("10.244.2.2"), addr("10.244.2.2"), addr("10.244.1.2")
	for name, tc := range map[string]struct {
		provider, home bool // isolate
		from, to       netip.Addr
		passes         bool
	}{
		"another consumer's pod":                                          {from: theirs, to: private, passes: true},
		"another consumer's pod, isolated at the provider":                {provider: true, from: theirs, to: private},
		"the same to a shared pod":                                        {provider: true, from: theirs, to: shared},
		"another consumer's pod, isolated at home":                        {home: true, from: theirs, to: private},
		"another consumer's pod to a shared one, isolated at home alone":  {home: true, from: theirs, to: shared, passes: true},
		"the consumer's own pod, isolated at the provider":                {provider: true, from: ours, to: private, passes: true},
		"the consumer's own pod to a shared one, isolated in both places": {provider: true, home: true, from: ours, to: shared, passes: true},
	} {
		provider := newCluster("P", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
		one, other := newCluster("A", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2), newCluster("B", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
		connect(provider, one, allocated)
		connect(provider, other, allocated)
		provider.peer(one).isolation = Isolation{On: tc.provider, Pods: []netip.Addr{theirs}}
		provider.peer(other).isolation = Isolation{On: tc.provider, Pods: []netip.Addr{ours}}
		other.peer(provider).isolation = Isolation{On: tc.home, Pods: []netip.Addr{shared}}
		world := worldOf(t, provider, one, other)
		to, known := provider.peer(other).seenAs(tc.to)
		if !known {
			t.Fatalf("the provider does not see %s", tc.to)
		}
		packet := opening(tc.from, to.String()+":80")
		trip := Walk(world, provider.place(tc.from), packet)
		if last, arrived := Arrived(trip.There); arrived != tc.passes || arrived && last.Place != other.place(tc.to) {
			t.Errorf("%s arrives: %v, at %s\n%s", name, arrived, last.Place, trip)
		}
		if _, arrived := Arrived(Walk(world, one.place(tc.from), packet).There); arrived {
			t.Errorf("%s: the other consumer's own cluster reaches it as well", name)
		}
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
