package gateway

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/pkg/networking/inputs"
)

// Options are what an agent works with.
type Options struct {
	Cluster *agent.Cluster
	// Kernel is the network namespace of the gateway's pod.
	Kernel *netlink.Kernel
	// Health is told how the agent is.
	Health *agent.Health
	// Namespace and Name are those of the gateway's object, Peer is the cluster at the other end.
	Namespace, Name, Peer string
	// Pod is what the gateway knows of itself from the start: neither MTU, nor Wish, nor Endpoint.
	Pod inputs.GatewayPod
	// Interval is how often the other end is asked; 0 is as often as usual.
	Interval time.Duration
}

// Agent is the agent of a gateway.
type Agent struct {
	Options
	changed       agent.Signal
	side          side
	configuration *agent.Objects[networkingv1beta1.Configuration]
	key           *agent.Objects[networkingv1beta1.PublicKey]
	fabric        *agent.Objects[networkingv1beta1.InternalFabric]
	connection    *agent.Objects[networkingv1beta1.Connection]
	nodes         *agent.Objects[networkingv1beta1.InternalNode]
	ips           *agent.Objects[ipamv1alpha1.IP]
}

// New makes an agent.
func New(o Options) *Agent {
	a := &Agent{Options: o, changed: agent.NewSignal()}
	version, changed := networkingv1beta1.GroupVersion, a.changed.Raise
	a.side = follow(o, changed)
	a.configuration = agent.Follow[networkingv1beta1.Configuration](o.Cluster, version.WithResource("configurations"), o.Namespace, o.Peer, changed)
	a.key = agent.Follow[networkingv1beta1.PublicKey](o.Cluster, version.WithResource("publickeies"), o.Namespace, o.Peer, changed)
	a.fabric = agent.Follow[networkingv1beta1.InternalFabric](o.Cluster, version.WithResource("internalfabrics"), o.Namespace, o.Name, changed)
	a.connection = agent.Follow[networkingv1beta1.Connection](o.Cluster, version.WithResource("connections"), o.Namespace, o.Name, changed)
	a.nodes = agent.Follow[networkingv1beta1.InternalNode](o.Cluster, version.WithResource("internalnodes"), "", "", changed)
	a.ips = agent.Follow[ipamv1alpha1.IP](o.Cluster, ipamv1alpha1.GroupVersion.WithResource("ips"), "", "", changed)
	return a
}

func (a *Agent) followers() []agent.Follower {
	return []agent.Follower{a.side, a.configuration, a.key, a.fabric, a.connection, a.nodes, a.ips}
}

// wanted says what is wanted of a pod. It fails if something is missing for that.
func (a *Agent) wanted(pod inputs.GatewayPod) (dataplane.State, []dataplane.Problem, error) {
	input, problems, err := inputs.Gateway(inputs.GatewayObjects{
		Configuration: a.configuration.One(), PublicKey: a.key.One(), Fabric: a.fabric.One(), Nodes: a.nodes.All(), IPs: a.ips.All(), Pod: pod,
	})
	if err != nil {
		return dataplane.State{}, problems, err
	}
	state, more := dataplane.Gateway(input)
	return state, append(problems, more...), nil
}

// describe adds what the pod's devices and the gateway's object tell of the pod.
func (a *Agent) describe(o own, endpoint endpoints) (inputs.GatewayPod, error) {
	pod := a.Pod
	host, err := a.Kernel.HostAddresses()
	if err != nil {
		return pod, err
	}
	for _, h := range host {
		if h.Address == pod.Address {
			pod.MTU = h.MTU
		}
	}
	if pod.MTU == 0 {
		return pod, fmt.Errorf("no device has the pod's address %s", pod.Address)
	}
	pod.Wish, pod.Endpoint = o.mtu, endpoint.current()
	return pod, nil
}

// Run works until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if err := agent.Sync(ctx, group, a.followers()...); err != nil {
		return err
	}
	here, there := dataplane.TunnelEnds(a.Pod.Server)
	l := &loop{
		Agent: a, keeper: agent.NewKeeper(), echo: newEcho(here, there), resolver: newResolver(), connections: newConnections(a.Cluster),
		live: newLiveness(time.Now()),
	}
	group.Go(func() error { return l.keeper.Run(ctx, a.Kernel) })
	group.Go(func() error { l.resolver.run(ctx); return nil })
	group.Go(func() error { l.connections.run(ctx); return nil })
	group.Go(func() error { return l.run(ctx) })
	return group.Wait()
}

// loop is what one goroutine knows and decides.
type loop struct {
	*Agent
	keeper      *agent.Keeper
	echo        *echo
	resolver    *resolver
	connections *connections

	live      *liveness
	endpoints endpoints
	// target is what the endpoints are resolved from; resolved tells that this has been tried.
	target    target
	resolved  bool
	placement agent.Placement
	// pod, problems and missing are what was known when something was last made of it.
	pod      inputs.GatewayPod
	problems []dataplane.Problem
	missing  error
	// kept is what the kernel was told to have; nil if nothing yet, or if it is to be told again.
	kept *dataplane.State
}

func (l *loop) run(ctx context.Context) error {
	settled := agent.Settled(ctx, l.changed)
	ticker := time.NewTicker(cmp.Or(l.Interval, interval))
	defer ticker.Stop()
	for {
		if l.kept == nil || l.missing != nil {
			l.program()
		}
		l.tell()
		select {
		case <-ctx.Done():
			return nil
		case <-settled:
			l.program()
		case <-ticker.C:
			l.ask(ctx)
		case a := <-l.echo.answers:
			l.live.answer(a.number, a.at)
		case found := <-l.resolver.found:
			l.endpoints.take(found)
			l.resolved = true
			l.program()
		case r := <-l.keeper.Reports:
			l.placement.See(ctx, r, time.Now())
		}
	}
}

// ask asks the other end, once there is a tunnel. A client that has no answers tries something else.
func (l *loop) ask(ctx context.Context) {
	if l.kept == nil || !l.placement.Placed {
		return
	}
	now := time.Now()
	if err := l.echo.ask(ctx, l.live.ask(now), now); err != nil {
		klog.FromContext(ctx).V(2).Info("The other end cannot be asked", "err", err)
	}
	session, next := l.live.retry()
	if !session || l.Pod.Server {
		return
	}
	l.resolver.ask(l.target)
	if next {
		l.endpoints.next()
	}
	if err := l.Kernel.Forget(dataplane.TunnelDevice); err != nil {
		klog.FromContext(ctx).Error(err, "Beginning another session")
	}
	l.kept = nil
}

// program has the kernel get what is wanted.
func (l *loop) program() {
	o, ok := l.side.own()
	if !ok {
		return
	}
	if !o.target.same(l.target) {
		l.target = o.target
		l.resolver.ask(o.target)
	}
	if l.pod, l.missing = l.describe(o, l.endpoints); l.missing != nil {
		return
	}
	var state dataplane.State
	state, l.problems, l.missing = l.wanted(l.pod)
	if l.missing == nil && (l.kept == nil || !reflect.DeepEqual(*l.kept, state)) {
		l.kept, l.placement.Placed = &state, false
		l.Health.Want(state)
		l.keeper.Want(state)
	}
}

// tell tells how the tunnel is.
func (l *loop) tell() {
	switch {
	case l.placement.Err != nil:
		l.Health.Set(l.placement.Err)
	case l.kept == nil || l.placement.Placed:
		// Whoever waits for others is as well as can be: they wait for a gateway that is ready.
		l.Health.Set(nil)
	}
	o, ok := l.side.own()
	if !ok || l.pod.MTU == 0 {
		return
	}
	now := time.Now()
	lives, known := l.live.lives()
	seen := observation{
		keyless: l.key.One() == nil, missing: l.missing, problems: l.problems, placement: l.placement, server: l.pod.Server,
		unresolved: l.resolved && !l.pod.Endpoint.IsValid(), endpoint: l.pod.Endpoint, userSpace: l.Kernel.InUserSpace(),
		lives: lives, known: known, latency: l.live.latency, mtu: l.pod.TunnelMTU(),
	}
	wanted, there := connectionOf(o, l.Name, l.Peer), l.connection.One()
	generation := int64(1)
	if there != nil {
		wanted.Status, generation = there.Status, there.Generation
	}
	wanted.Status = statusOf(seen, wanted.Status, generation, now)
	l.connections.want(wanted, there, now)
}
