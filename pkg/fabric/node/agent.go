package node

import (
	"context"
	"net/netip"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/pkg/networking/inputs"
)

// look is how often the host is asked for its addresses: the first pod of a node brings a device of the CNI.
const look = 15 * time.Second

// Options are what an agent works with.
type Options struct {
	Cluster *agent.Cluster
	// Kernel is the host's network namespace.
	Kernel *netlink.Kernel
	// Name is the node's.
	Name string
	// Namespace is that of Liqo, where administrators ask nodes for something; "" if nobody does.
	Namespace string
	// Port is the overlay's, of UDP.
	Port uint16
	// Health is told how the agent is.
	Health *agent.Health
	// Work is told what there is to count, Silent how many gateways do not answer; nil for nobody.
	Work   *agent.Metrics
	Silent prometheus.Gauge
	// Ask fails if an address does not answer the node; nil asks from the network that the process is in.
	Ask func(context.Context, netip.Addr) error
}

// Agent is the agent of a node.
type Agent struct {
	Options
	changed signal.Signal
	self    *agent.Objects[networkingv1beta1.InternalNode]
	fabrics *agent.Objects[networkingv1beta1.InternalFabric]
	ips     *agent.Objects[ipamv1alpha1.IP]
	// administrators ask for more than the node needs.
	administrators *agent.Administrators
	asker          *asker
}

// New makes an agent.
func New(o Options) *Agent {
	if o.Ask == nil {
		o.Ask = agent.Ask
	}
	a := &Agent{Options: o, changed: signal.New()}
	a.asker = &asker{ask: o.Ask, changed: a.changed, count: o.Silent, now: signal.New()}
	networking := networkingv1beta1.GroupVersion
	a.self = agent.Follow[networkingv1beta1.InternalNode](o.Cluster, networking.WithResource("internalnodes"), "", o.Name, a.changed.Raise)
	a.fabrics = agent.Follow[networkingv1beta1.InternalFabric](o.Cluster, networking.WithResource("internalfabrics"), "", "", a.changed.Raise)
	a.ips = agent.Follow[ipamv1alpha1.IP](o.Cluster, ipamv1alpha1.GroupVersion.WithResource("ips"), "", "", a.changed.Raise)
	a.administrators = agent.NewAdministrators(o.Cluster, inputs.Host{
		Category: networkingv1beta1.CategoryFabric, Unique: o.Name, Namespace: o.Namespace, Own: o.Namespace,
	}, o.Name, a.changed)
	return a
}

func (a *Agent) followers() []agent.Follower { return []agent.Follower{a.self, a.fabrics, a.ips} }

// wish is what is wanted of the kernel, as far as is known.
type wish struct {
	State dataplane.State
	// Problems are what was left out.
	Problems []dataplane.Problem
	// Requests are what administrators ask for.
	Requests []inputs.Request
	// Gateways are those that the node has a way to.
	Gateways []gateway
	// Host is where the node is; nil if that could not be found out.
	Host *place
}

// wanted says what is wanted. It fails if something is missing for that.
func (a *Agent) wanted() (wish, error) {
	addresses, err := a.Kernel.HostAddresses()
	if err != nil {
		return wish{}, err
	}
	objects := inputs.NodeObjects{Self: a.self.One(), Fabrics: a.fabrics.All(), IPs: a.ips.All(), Port: a.Port}
	address := addressOf(objects.Self)
	objects.MTU = networkMTU(addresses, address)
	w := wish{Host: &place{sources(addresses, address), networks(addresses)}}
	input, problems, err := inputs.Node(objects)
	w.Problems = problems
	if err != nil {
		return w, err
	}
	w.Gateways = gatewaysOf(objects.Fabrics, input.Fabrics)
	own, problems := dataplane.Node(input)
	w.Problems = append(w.Problems, problems...)
	asked, requests := a.administrators.Wanted()
	w.State, w.Requests = own.With(asked), requests
	return w, nil
}

// Run works until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if err := agent.Sync(ctx, group, a.followers()...); err != nil {
		return err
	}
	a.administrators.Run(ctx, group)
	keeper, teller := agent.NewKeeper(), agent.NewWriter(told.same, a.write)
	group.Go(func() error { return keeper.Run(ctx, a.Kernel) })
	group.Go(func() error { teller.Run(ctx); return nil })
	group.Go(func() error { a.asker.run(ctx); return nil })
	group.Go(func() error { return a.loop(ctx, keeper, teller) })
	return group.Wait()
}

// loop makes passes whenever something changes, until the context ends.
func (a *Agent) loop(ctx context.Context, keeper *agent.Keeper, teller *agent.Writer[told]) error {
	settled := agent.Settled(ctx, a.changed)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	var p pass
	for {
		a.round(keeper, teller, &p)
		select {
		case <-ctx.Done():
			return nil
		case <-settled:
		case <-ticker.C:
		case r := <-keeper.Reports:
			p.placement.See(ctx, r, time.Now())
			a.Work.See(r, time.Now())
		case <-a.Health.Repair:
			if p.kept != nil {
				keeper.Want(*p.kept)
			}
		}
	}
}

// pass is what is remembered from one round to the next.
type pass struct {
	placement agent.Placement
	// kept is what the kernel was told to have; nil if nothing yet.
	kept *dataplane.State
	// known is where the node was last.
	known *place
}

// round has the kernel get what is wanted, and tells how the node is.
func (a *Agent) round(keeper *agent.Keeper, teller *agent.Writer[told], p *pass) {
	w, err := a.wanted()
	if err == nil && (p.kept == nil || !reflect.DeepEqual(*p.kept, w.State)) {
		p.kept, p.placement.Placed = &w.State, false
		a.Health.Want(w.State)
		a.Work.Want(time.Now())
		keeper.Want(w.State)
	}
	if w.Host != nil {
		p.known = w.Host
	}
	if err == nil && p.placement.Placed {
		a.asker.want(w.Gateways)
	}
	switch {
	case p.placement.Err != nil:
		a.Health.Set(p.placement.Err)
	case err != nil || p.placement.Placed:
		// Whoever waits for others is as well as can be.
		a.Health.Set(nil)
	}
	if err == nil {
		a.administrators.Tell(w.Requests, p.placement, time.Now())
	}
	self := a.self.One()
	if self == nil || p.known == nil {
		return
	}
	now := time.Now()
	seen := observation{known: *p.known, problems: w.Problems, missing: err, placement: p.placement, silent: a.asker.silent(), port: a.Port}
	wanted := statusOf(seen, self, now)
	if wanted != nil {
		teller.Want(told{self.UID, *wanted}, now)
	}
}

// told is what is said of the node, in the InternalNode with a UID.
type told struct {
	uid    types.UID
	status status
}

func (t told) same(other told) bool { return t.uid == other.uid && t.status.same(other.status) }

func (a *Agent) write(ctx context.Context, t told) error {
	return a.Cluster.Apply(ctx, owner, agent.Object{
		Resource: networkingv1beta1.GroupVersion.WithResource("internalnodes"), Kind: "InternalNode", Name: a.Name, Part: "status",
	}, map[string]any{"uid": t.uid}, map[string]any{"status": map[string]any{
		"addresses": t.status.host.addresses, "networks": t.status.host.networks, "silent": append([]string{}, t.status.silent...),
		"conditions": []any{t.status.ready}}})
}
