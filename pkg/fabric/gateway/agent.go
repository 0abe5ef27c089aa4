package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/kube/signal"
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
	// Liqo is the namespace of Liqo, where administrators ask all gateways for something; "" if nobody does.
	Liqo string
	// Pod is what the gateway knows of itself from the start: neither MTU, nor Wish, nor Endpoint.
	Pod inputs.GatewayPod
	// Interval is how often the other end is asked; 0 is as often as usual.
	Interval time.Duration
	// Work and Tunnel are told what there is to count; nil for nobody.
	Work   *agent.Metrics
	Tunnel *Metrics
}

// Agent is the agent of a gateway.
type Agent struct {
	Options
	changed signal.Signal
	side    side
	// configurations and keys are all of the tenant namespace: which of them counts, inputs.OfPeer says.
	configurations *agent.Objects[networkingv1beta1.Configuration]
	keys           *agent.Objects[networkingv1beta1.PublicKey]
	fabrics        *agent.Objects[networkingv1beta1.InternalFabric]
	connection     *agent.Objects[networkingv1beta1.Connection]
	nodes          *agent.Objects[networkingv1beta1.InternalNode]
	ips            *agent.Objects[ipamv1alpha1.IP]
	// administrators ask for more than the gateway needs.
	administrators *agent.Administrators
}

// New makes an agent.
func New(o Options) *Agent {
	a := &Agent{Options: o, changed: signal.New()}
	version, changed := networkingv1beta1.GroupVersion, a.changed.Raise
	a.side = follow(o, changed)
	a.configurations = agent.Follow[networkingv1beta1.Configuration](o.Cluster, version.WithResource("configurations"), o.Namespace, "", changed)
	a.keys = agent.Follow[networkingv1beta1.PublicKey](o.Cluster, version.WithResource("publickeies"), o.Namespace, "", changed)
	a.fabrics = agent.Follow[networkingv1beta1.InternalFabric](o.Cluster, version.WithResource("internalfabrics"), "", "", changed)
	a.connection = agent.Follow[networkingv1beta1.Connection](o.Cluster, version.WithResource("connections"), o.Namespace, o.Name, changed)
	a.nodes = agent.Follow[networkingv1beta1.InternalNode](o.Cluster, version.WithResource("internalnodes"), "", "", changed)
	a.ips = agent.Follow[ipamv1alpha1.IP](o.Cluster, ipamv1alpha1.GroupVersion.WithResource("ips"), "", "", changed)
	a.administrators = agent.NewAdministrators(o.Cluster, inputs.Host{
		Category: networkingv1beta1.CategoryGateway, Unique: o.Peer, Namespace: o.Liqo, Own: o.Namespace,
	}, o.Namespace+":"+networkingv1beta1.GatewayPrefix+o.Name, a.changed)
	return a
}

func (a *Agent) followers() []agent.Follower {
	return []agent.Follower{a.side, a.configurations, a.keys, a.fabrics, a.connection, a.nodes, a.ips}
}

// configuration says how the two clusters see each other; nil if nothing does.
func (a *Agent) configuration() *networkingv1beta1.Configuration {
	return inputs.OfPeer(a.configurations.All(), a.Peer)
}

// key is that of the other end; nil if it is not known.
func (a *Agent) key() *networkingv1beta1.PublicKey { return inputs.OfPeer(a.keys.All(), a.Peer) }

// wanted says what is wanted of a pod. It fails if something is missing for that.
func (a *Agent) wanted(pod inputs.GatewayPod) (dataplane.State, []dataplane.Problem, error) {
	objects := inputs.GatewayObjects{
		Peer: a.Peer, Configuration: a.configuration(), PublicKey: a.key(), Fabrics: a.fabrics.All(), Nodes: a.nodes.All(), IPs: a.ips.All(), Pod: pod,
	}
	for i := range objects.Fabrics {
		if fabric := &objects.Fabrics[i]; fabric.Namespace == a.Namespace && fabric.Name == a.Name {
			objects.Fabric = fabric
		}
	}
	input, problems, err := inputs.Gateway(objects)
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
	a.administrators.Run(ctx, group)
	here, there := dataplane.TunnelEnds(a.Pod.Server)
	l := &loop{
		Agent: a, keeper: agent.NewKeeper(), echo: newEcho(here, there), resolver: newResolver(), connections: newConnections(a.write),
		live: newLiveness(time.Now()),
	}
	group.Go(func() error { return l.keeper.Run(ctx, a.Kernel) })
	group.Go(func() error { l.resolver.run(ctx); return nil })
	group.Go(func() error { l.connections.Run(ctx); return nil })
	group.Go(func() error { return l.run(ctx) })
	return group.Wait()
}

// loop is what one goroutine knows and decides.
type loop struct {
	*Agent
	keeper      *agent.Keeper
	echo        *echo
	resolver    *resolver
	connections connections

	live *liveness
	// lived tells whether the other end answered when it was last asked.
	lived     bool
	sizes     sizes
	endpoints endpoints
	// target is what the endpoints are resolved from; resolved tells that this has been tried.
	target    target
	resolved  bool
	placement agent.Placement
	// pod, problems, requests and missing are what was known when something was last made of it.
	pod      inputs.GatewayPod
	problems []dataplane.Problem
	requests []inputs.Request
	missing  error
	// announced is what the other end is told of the clusters that it reaches through this one, transit what it tells of those behind it.
	announced []netip.Prefix
	transit   transit
	// kept is what the kernel was told to have; nil if nothing yet, or if it is to be told again.
	kept *dataplane.State
}

func (l *loop) run(ctx context.Context) error {
	settled := agent.Settled(ctx, l.changed)
	usual, asked := cmp.Or(l.Interval, interval), time.Now()
	next := time.NewTimer(usual)
	defer next.Stop()
	for {
		next.Reset(time.Until(asked.Add(l.live.pause(usual))))
		if l.kept == nil || l.missing != nil {
			l.program()
		}
		l.tell()
		select {
		case <-ctx.Done():
			return nil
		case <-settled:
			l.program()
		case <-next.C:
			asked = time.Now()
			l.ask(ctx)
		case a := <-l.echo.answers:
			if !l.sizes.answer(a.number, a.length) {
				l.live.answer(a.number, a.at)
			}
		case ranges := <-l.echo.announced:
			l.transit.hear(ranges, time.Now())
		case found := <-l.resolver.found:
			l.found(ctx, found)
		case r := <-l.keeper.Reports:
			l.placement.See(ctx, r, time.Now())
			l.Work.See(r, time.Now())
		case <-l.Health.Repair:
			l.kept = nil
		}
	}
}

// found takes over where the other end is.
func (l *loop) found(ctx context.Context, all []netip.AddrPort) {
	l.endpoints.take(all)
	l.resolved = true
	if l.kept != nil && !l.pod.Endpoint.IsValid() && l.endpoints.current().IsValid() {
		l.anew(ctx)
	}
	l.program()
}

// ask asks the other end, once there is a tunnel. A client that has no answers tries something else.
func (l *loop) ask(ctx context.Context) {
	if l.kept == nil || !l.placement.Placed {
		return
	}
	now := time.Now()
	if err := l.echo.ask(ctx, l.live.ask(now), now, l.announced); err != nil {
		klog.FromContext(ctx).V(2).Info("The other end cannot be asked", "err", err)
	}
	l.measure(ctx, now)
	session, next := l.live.retry()
	if !session || l.Pod.Server {
		return
	}
	l.resolver.ask(l.target)
	if next {
		l.endpoints.next()
	}
	l.anew(ctx)
}

// anew has the tunnel's end greet the other one at once, when the kernel is next told what is wanted. WireGuard that has tried, though it did not
// know where, waits for five seconds otherwise.
func (l *loop) anew(ctx context.Context) {
	if err := l.Kernel.Forget(dataplane.TunnelDevice); err != nil {
		klog.FromContext(ctx).Error(err, "Beginning another session")
	}
	l.kept = nil
}

// measure asks the other end in packets of several sizes, as long as it answers at all. What gets through is what is wanted from then on.
func (l *loop) measure(ctx context.Context, now time.Time) {
	lives, _ := l.live.lives()
	if lives && !l.lived {
		l.sizes.measure()
	}
	l.lived = lives
	if !lives || l.live.missed > 0 {
		l.sizes.lost()
		return
	}
	for _, size := range l.sizes.next() {
		// One that does not even fit the device gets no answer either.
		_ = l.echo.probe(ctx, l.sizes.number(size), now, size)
	}
	if l.sizes.used != l.pod.PathMTU {
		klog.FromContext(ctx).Info("Packets may have another size", "before", l.pod.PathMTU, "mtu", l.sizes.used, "most", l.sizes.most)
		l.program()
	}
}

// program has the kernel get what is wanted.
func (l *loop) program() {
	o, ok := l.side.own()
	if !ok {
		return
	}
	if o.isAnothers(l.Pod.Address) {
		// Without these nothing is asked, told, or told to the kernel; what stands by is ready to take over.
		l.kept, l.pod = nil, inputs.GatewayPod{}
		return
	}
	if !o.target.same(l.target) {
		l.target = o.target
		l.resolver.ask(o.target)
	}
	if !l.Pod.Server && !l.resolved {
		return // Without the address, WireGuard would only try in vain.
	}
	if l.pod, l.missing = l.describe(o, l.endpoints); l.missing != nil {
		return
	}
	l.sizes.bound(l.pod.TunnelMTU(), l.told())
	l.pod.PathMTU = l.sizes.used
	var state dataplane.State
	state, l.problems, l.missing = l.wanted(l.pod)
	asked, requests := l.administrators.Wanted()
	state, l.requests = state.With(asked), requests
	if c := l.configuration(); c != nil && l.missing == nil {
		l.announced, l.transit.unwanted = announcementOf(c), !c.Spec.Transit
	}
	if l.missing == nil && (l.kept == nil || !reflect.DeepEqual(*l.kept, state)) {
		l.kept, l.placement.Placed = &state, false
		l.Health.Want(state)
		l.Work.Want(time.Now())
		l.keeper.Want(state)
	}
}

// told is the MTU that was told last; 0 if none was.
func (l *loop) told() int {
	if c := l.connection.One(); c != nil {
		return int(c.Status.MTU)
	}
	return 0
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
	if l.kept != nil && l.missing == nil {
		l.administrators.Tell(l.requests, l.placement, now)
	}
	lives, known := answers(l.live, l.placement, now)
	seen := observation{
		peer: l.Peer, keyless: l.key() == nil, missing: l.missing, problems: l.problems, placement: l.placement, server: l.pod.Server,
		unresolved: l.resolved && !l.pod.Endpoint.IsValid(), endpoint: l.pod.Endpoint, userSpace: l.Kernel.InUserSpace(),
		lives: lives, known: known, latency: l.live.latency, mtu: l.pod.PathMTU, most: l.sizes.most, wished: o.mtu > 0, blocked: l.sizes.blocked,
		transit: l.transit,
	}
	l.Tunnel.tell(tunnelState{lives, l.live.latency, l.pod.PathMTU})
	wanted, there := connectionOf(o, l.Name, l.Peer), l.connection.One()
	generation := int64(1)
	if there != nil {
		wanted.Status, generation = there.Status, there.Generation
	}
	wanted.Status = statusOf(seen, wanted.Status, generation, now)
	l.connections.want(wanted, there, now)
}
