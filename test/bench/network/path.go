package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

// way is something that packets are sent over.
type way struct {
	name   string
	world  *world
	drive  *child
	target netip.AddrPort
	// processes are all whose processor time is that of the way.
	processes []int
}

// Ways that are compared.
const (
	// tunnelOnly is the tunnel from gateway to gateway, without the nodes and pods of the bare way.
	tunnelOnly = "tunnel alone"
)

// sample is what one turn on one way came to.
type sample struct {
	Megabits         float64 `json:"megabitsPerSecond"`
	SecondsPerGB     float64 `json:"cpuSecondsPerGB"`
	Requests         float64 `json:"requestsPerSecond"`
	MicrosPerRequest float64 `json:"cpuMicrosPerRequest"`
	Connects         float64 `json:"connectsPerSecond"`
	MicrosPerConnect float64 `json:"cpuMicrosPerConnect"`
	Median           float64 `json:"latencyMicros"`
	// Memory is what of the larger gateway's memory is its own after all that, in MB.
	Memory float64 `json:"gatewayOwnMB"`
}

// measurePath compares what the agents make with a bare tunnel.
func measurePath(ctx context.Context, o options, r *report, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ways []*way
	for _, name := range []string{bare, liqo, large} {
		s := scale{}
		if name == large {
			s = scale{o.peers, o.nodes, o.podsPerNode}
		}
		made, err := lay(ctx, name, s)
		if err != nil {
			return fmt.Errorf("making the world %s: %w", name, err)
		}
		ways = append(ways, made...)
	}
	r.Samples = map[string][]sample{}
	for round := range o.rounds {
		turns := slices.Clone(ways)
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, w := range turns {
			s, err := w.measure(o)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", w.name, round+1, err)
			}
			r.Samples[w.name] = append(r.Samples[w.name], s)
			fmt.Fprintf(out, "round %d, %s: %+v\n", round+1, w.name, s)
		}
	}
	return nil
}

// lay makes a world and the ways in it.
func lay(ctx context.Context, name string, s scale) ([]*way, error) {
	w, err := build(name)
	if err != nil {
		return nil, err
	}
	gates, err := w.inhabit(ctx, s)
	if err != nil {
		return nil, err
	}
	var ways []*way
	add := func(name string, from, to *space, target netip.AddrPort) error {
		server, err := to.again(ctx, roleServe)
		if err != nil {
			return err
		}
		driver, err := from.again(ctx, roleDrive)
		if err != nil {
			return err
		}
		ways = append(ways, &way{
			name: name, world: w, drive: driver, target: target,
			processes: []int{gates[0].pid(), gates[1].pid(), server.pid(), driver.pid()},
		})
		return nil
	}
	if err := add(name, w.here.pod, w.there.pod, w.target()); err != nil {
		return nil, err
	}
	if name == bare {
		_, far := netip.Addr{}, netip.MustParseAddr("169.254.18.1")
		if err := add(tunnelOnly, w.here.gate, w.there.gate, netip.AddrPortFrom(far, trafficPort)); err != nil {
			return nil, err
		}
	}
	return ways, nil
}

// measure takes one turn.
func (w *way) measure(o options) (s sample, err error) {
	turn := func(what byte, width int) (outcome, float64) {
		if err != nil {
			return outcome{}, 0
		}
		before := cpuOf(w.processes)
		var result outcome
		result, err = w.drive.do(job{Address: w.target.String(), What: what, Width: width, Span: o.span})
		return result, cpuOf(w.processes) - before
	}
	turn(requests, 1) // The tunnel greets, and processors wake up.
	sent, used := turn(bulk, 1)
	s.Megabits, s.SecondsPerGB = sent.Count*8/1e6/sent.Seconds, used/(sent.Count/1e9)
	answered, used := turn(requests, o.connections)
	s.Requests, s.MicrosPerRequest = answered.Count/answered.Seconds, used*1e6/answered.Count
	connected, used := turn(connects, o.newcomers)
	s.Connects, s.MicrosPerConnect = connected.Count/connected.Seconds, used*1e6/connected.Count
	alone, _ := turn(requests, 1)
	s.Median = alone.Median
	for _, pid := range w.processes[:2] {
		s.Memory = max(s.Memory, status(pid, "RssAnon"))
	}
	return s, err
}
