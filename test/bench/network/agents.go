package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/test/integration/fixture"
)

// agents is a world whose agents are the real programs, which real API servers tell what to do. Nobody else is there: what the controllers of the
// network would write is written by this program.
type agents struct {
	*world
	ctx      context.Context
	options  options
	env      fixture.Environment
	out      io.Writer
	report   *report
	programs map[string]string
	// sides are the two clusters, gates and nodes their agents.
	sides        []*side
	server, pods *child
}

// side is one cluster with its API server and its agents.
type side struct {
	*cluster
	api  *fixture.Cluster
	peer string
	// gate, first and second are the agents.
	gate, first, second *child
}

// agentsWorld is the name of the world of agents.
const agentsWorld = "agents"

// patience is how long anything may take that is waited for.
const patience = time.Minute

// measureAgents looks at the programs: what they take, how fast they follow, and what becomes of packets when they end.
func measureAgents(ctx context.Context, o options, r *report, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := build(agentsWorld)
	if err != nil {
		return err
	}
	a := &agents{world: w, ctx: ctx, options: o, out: out, report: r}
	defer func() { err = errors.Join(err, a.env.Close()) }()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"building the programs", a.compile}, {"starting two control planes", a.open}, {"writing what controllers would", a.write},
		{"starting the agents", a.start}, {"waiting for packets to pass", a.passes},
		{"memory of the agents", func() error { return a.memory("1 peer") }},
		{"from objects to the kernel", a.follow}, {"killing gateways", a.kill},
		{"many peers, nodes and pods", a.grow},
	} {
		fmt.Fprintln(out, time.Now().Format(time.TimeOnly), step.name)
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// compile builds the programs as they are for the images: stripped, and without C.
func (a *agents) compile() error {
	a.programs = map[string]string{}
	for _, name := range []string{"liqo-gateway", "liqo-fabric"} {
		path := filepath.Join(a.options.folder, name)
		command := exec.CommandContext(a.ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags=netgo,osusergo", "-ldflags=-s -w", "-o", path, "liqo.io/liqo/cmd/"+name)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w: %s", name, err, out)
		}
		a.programs[name] = path
	}
	return nil
}

func (a *agents) open() error {
	if err := a.env.Open(fixture.Options{Nodes: 1}); err != nil {
		return err
	}
	a.sides = []*side{{cluster: a.here, api: a.env.Rome, peer: a.env.Milan.ID}, {cluster: a.there, api: a.env.Milan, peer: a.env.Rome.ID}}
	log, err := os.Create(filepath.Join(a.options.folder, "agents.log"))
	if err != nil {
		return err
	}
	for _, s := range a.sides {
		for _, at := range []*space{s.cluster.gate, s.cluster.first, s.cluster.second} {
			at.log = log
			if err := at.reach(a.ctx, s.api.Config.Host); err != nil {
				return err
			}
		}
	}
	return nil
}

// reach has an API server that listens on the machine's loopback address answer on that of a namespace, too.
func (s *space) reach(ctx context.Context, host string) error {
	at, err := url.Parse(host)
	if err != nil {
		return err
	}
	var listener net.Listener
	if err := s.in(func() error {
		listener, err = net.Listen("tcp4", at.Host)
		return err
	}); err != nil {
		return fmt.Errorf("listening in a namespace: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				server, err := net.Dial("tcp4", at.Host)
				if err != nil {
					return
				}
				defer server.Close()
				go func() { _, _ = io.Copy(server, conn); _ = server.Close() }()
				_, _ = io.Copy(conn, server)
			}()
		}
	}()
	return nil
}

// start starts the agents of both clusters, and what sends and receives.
func (a *agents) start() (err error) {
	for _, s := range a.sides {
		if err := s.startGate(a); err != nil {
			return err
		}
		for _, node := range []struct {
			at   *space
			name string
			into **child
		}{{s.cluster.first, firstNode, &s.first}, {s.cluster.second, secondNode, &s.second}} {
			if *node.into, err = node.at.start(a.ctx, nil, a.programs["liqo-fabric"], "--kubeconfig="+s.api.Kubeconfig, "--node-name="+node.name,
				"--overlay-port="+strconv.Itoa(overlay)); err != nil {
				return err
			}
		}
	}
	if a.server, err = a.there.pod.again(a.ctx, roleServe); err != nil {
		return err
	}
	a.pods, err = a.here.pod.again(a.ctx, roleDrive)
	return err
}

// startGate starts the gateway of a side, in the pod that it had, as the kubelet does with a container that ended.
func (s *side) startGate(a *agents) (err error) {
	keys := filepath.Join(a.options.folder, "keys-"+s.name)
	if err := os.MkdirAll(keys, 0o700); err != nil {
		return err
	}
	private := tunnelOf(agentsWorld, s.name).own
	if err := os.WriteFile(filepath.Join(keys, "privateKey"), private[:], 0o600); err != nil {
		return err
	}
	mode := map[string]string{here: "client", there: "server"}[s.name]
	s.gate, err = s.cluster.gate.start(a.ctx, []string{
		"POD_IP=" + s.gateAddress.String(), "HOST_IP=" + s.firstAddress.String(), "NODE_NAME=" + firstNode,
	}, a.programs["liqo-gateway"], "--kubeconfig="+s.api.Kubeconfig, "--name="+s.peer, "--namespace="+s.tenant(), "--remote-cluster-id="+s.peer,
		"--mode="+mode, "--keys="+keys, "--listen-port="+strconv.Itoa(tunnelPort), "--overlay-port="+strconv.Itoa(overlay))
	return err
}

// passes waits until packets pass.
func (a *agents) passes() error {
	return await(a.ctx, "packets to pass", func() (bool, error) {
		_, err := a.pods.do(job{Address: a.target().String(), What: connects, Width: 1, Span: time.Millisecond})
		return err == nil, err
	})
}

// await waits until something is so.
func await(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := so()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s; last seen: %w", patience, what, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// rest lets time pass.
func (a *agents) rest(span time.Duration) error {
	select {
	case <-a.ctx.Done():
		return a.ctx.Err()
	case <-time.After(span):
		return nil
	}
}

// memory is read when the agents have carried packets, and rest.
func (a *agents) memory(what string) error {
	if _, err := a.pods.do(job{Address: a.target().String(), What: bulk, Width: 4, Span: a.options.span}); err != nil {
		return err
	}
	if err := a.rest(10 * time.Second); err != nil {
		return err
	}
	for _, s := range a.sides {
		for _, p := range []struct {
			name  string
			child *child
		}{{"gateway", s.gate}, {"node agent", s.second}} {
			m := held{What: what, Process: p.name, Resident: status(p.child.pid(), "VmRSS"), Own: status(p.child.pid(), "RssAnon"), Peak: status(p.child.pid(), "VmHWM")}
			a.report.Memory = append(a.report.Memory, m)
			fmt.Fprintf(a.out, "%s: %+v\n", s.name, m)
		}
	}
	return nil
}

// kill ends gateways as a crash does, and starts them again, while connections are open that ask a hundred times a second.
func (a *agents) kill() error {
	for turn := range 2 * a.options.restarts {
		s := a.sides[turn%2]
		done := make(chan struct{})
		var result outcome
		var failed error
		go func() {
			defer close(done)
			result, failed = a.pods.do(job{Address: a.target().String(), What: requests, Width: 8, Span: 12 * time.Second, Every: 10 * time.Millisecond})
		}()
		// By then all connections are open, and steady.
		if err := a.rest(2 * time.Second); err != nil {
			return err
		}
		s.gate.kill()
		if err := s.startGate(a); err != nil {
			return err
		}
		<-done
		if failed != nil {
			return failed
		}
		k := killed{End: map[string]string{here: "client", there: "server"}[s.name], Silence: result.Longest / 1e6, Lost: result.Failed}
		a.report.Kills = append(a.report.Kills, k)
		fmt.Fprintf(a.out, "%+v %s\n", k, result.Error)
	}
	return nil
}

// grow makes the clusters large, and reads what that takes.
func (a *agents) grow() error {
	size := scale{a.options.peers, a.options.nodes, a.options.podsPerNode}
	for _, s := range a.sides {
		for _, f := range s.fabrics(size)[1:] {
			if err := s.fabric(a.ctx, f); err != nil {
				return err
			}
		}
		nodes := s.nodes(size)
		for i, node := range nodes[2:] {
			if err := s.node(a.ctx, "many-"+strconv.Itoa(i), node); err != nil {
				return err
			}
		}
		last := nodes[len(nodes)-1].VTEP
		if err := await(a.ctx, "the last node to be known to the gateway", s.holds(s.cluster.gate, "nodes", last)); err != nil {
			return err
		}
	}
	if err := a.passes(); err != nil {
		return err
	}
	return a.memory(fmt.Sprintf("%d peers, %d nodes, %d pods", size.peers, size.nodes, size.nodes*size.pods))
}

// follow creates objects one after the other, each when the one before is in the kernel.
func (a *agents) follow() error {
	s := a.sides[0]
	for _, kind := range []struct {
		name string
		make func(i int) (create func() error, in func() (bool, error))
	}{
		{"InternalFabric, at a node", func(i int) (func() error, func() (bool, error)) {
			f := dataplane.InternalFabric{Gateway: netip.AddrFrom4([4]byte{10, 244, 40, byte(i + 1)}), MTU: tunnelMTU, Remote: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{13, byte(i), 0, 0}), 16)}}
			return func() error { return s.fabric(a.ctx, f) }, s.holds(s.cluster.second, "peers", f.Remote[0].Addr())
		}},
		{"InternalNode, at a gateway", func(i int) (func() error, func() (bool, error)) {
			node := dataplane.InternalNode{VTEP: netip.AddrFrom4([4]byte{172, 31, 50, byte(i + 1)}), External: netip.AddrFrom4([4]byte{10, 70, 253, byte(i + 1)}), Pods: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(150 + i), 0}), 24)}}
			return func() error { return s.node(a.ctx, "node-"+strconv.Itoa(i), node) }, s.holds(s.cluster.gate, "nodes", node.VTEP)
		}},
		{"IP, at a gateway", func(i int) (func() error, func() (bool, error)) {
			external := netip.AddrFrom4([4]byte{10, 70, 1, byte(i + 1)})
			return func() error {
					return s.ip(a.ctx, "ip-"+strconv.Itoa(i), external, netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}))
				},
				s.holds(s.cluster.gate, "in_ips", external)
		}},
	} {
		var all []float64
		for i := range min(a.options.objects, 100) {
			create, in := kind.make(i)
			begun := time.Now()
			if err := create(); err != nil {
				return fmt.Errorf("creating %s: %w", kind.name, err)
			}
			if err := await(a.ctx, kind.name+" to be in the kernel", in); err != nil {
				return err
			}
			all = append(all, time.Since(begun).Seconds()*1000)
		}
		slices.Sort(all)
		f := followed{Object: kind.name, Count: len(all), Median: median(all), P99: all[(len(all)*99+99)/100-1]}
		a.report.Followed = append(a.report.Followed, f)
		fmt.Fprintf(a.out, "%+v\n", f)
	}
	return nil
}
