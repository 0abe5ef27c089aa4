package dataplane_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/netlink"
)

// While nodes and gateways are changed again and again, each time by an agent that has just started, no packet is lost between pods whose ways
// stay as they are.
func TestNoPacketIsLostWhileStatesChange(t *testing.T) {
	world, changed := dataplane.ChangingLab(t)
	l := build(t, world)
	defer l.close()
	for _, place := range l.places() {
		if err := l.in(place, func() error { return echo(t) }); err != nil {
			t.Fatal(err)
		}
	}
	var all []probe
	for _, p := range l.probes(t, echoPort, answeredThroughTunnel) {
		if strings.Contains(string(p.trial.From), "pod") {
			all = append(all, p)
			if err := p.talk(1000, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop, done := make(chan struct{}), make(chan [2]int)
	for _, p := range all {
		go func() { done <- p.stream(stop) }()
	}
	changes := 0
	for range 10 {
		for _, states := range []map[dataplane.Place]dataplane.State{changed, world.Ours} {
			for place, state := range states {
				kernel, err := netlink.Open(path(l.spaces[place]))
				if err != nil {
					t.Fatal(err)
				}
				made, err := kernel.Apply(state)
				if err := errors.Join(err, kernel.Close()); err != nil {
					t.Fatal(err)
				}
				changes += len(made)
			}
		}
	}
	close(stop)
	sent, answered := 0, 0
	for range all {
		counts := <-done
		sent, answered = sent+counts[0], answered+counts[1]
	}
	t.Logf("%d changes, %d packets sent, %d answered", changes, sent, answered)
	if sent < 1000 || changes < 100 || answered != sent {
		t.Errorf("%d changes, %d packets sent, %d answered", changes, sent, answered)
	}
}

// stream sends a datagram each time that the one before was answered or is late, and counts both; late answers count too.
func (p probe) stream(stop <-chan struct{}) (counts [2]int) {
	data := make([]byte, 2000)
	for {
		select {
		case <-stop:
			return counts
		default:
		}
		if _, err := p.conn.Write(data[:1000]); err != nil {
			return [2]int{counts[0] + 1, counts[1]}
		}
		counts[0]++
		_ = p.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := p.conn.Read(data); err == nil {
			counts[1]++
		}
	}
}
