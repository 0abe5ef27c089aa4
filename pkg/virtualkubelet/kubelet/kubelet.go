package kubelet

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/credential"
	"liqo.io/liqo/pkg/virtualkubelet/flags"
	"liqo.io/liqo/pkg/virtualkubelet/network"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
	"liqo.io/liqo/pkg/virtualkubelet/removal"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
	"liqo.io/liqo/pkg/virtualkubelet/token"
)

// servingPatience is how long a replica that stands by waits for its endpoint to answer, with a serving certificate, before it calls itself
// ready; servingRetry is how often it looks.
const (
	servingPatience = 30 * time.Second
	servingRetry    = 100 * time.Millisecond
)

// Options of a Kubelet. All must be given.
type Options struct {
	Flags *flags.Flags
	// Address of the pod, which is the node's.
	Address netip.Addr
	// Identity is who the node is for this cluster.
	Identity credential.Identity
	// Account is this cluster, with the reflection account; CAFile holds the CA of its API server.
	Account kubernetes.Interface
	CAFile  string
	// Peer is the provider, Network what is known of the way there, Settings what this cluster says.
	Peer     *peer.Peer
	Network  *latest.Value[network.View]
	Settings *latest.Value[settings.View]
	// Offloaded asks, past all caches, whether a namespace is still to be offloaded.
	Offloaded func(ctx context.Context, namespace string) (bool, error)
	// Budget bounds what is held of the provider, Removals what is removed there at once.
	Budget   *replica.Budget
	Removals *removal.Held
	// Recorder makes what writes Events with a client until the context ends.
	Recorder func(context.Context, kubernetes.Interface) record.EventRecorder
	Metrics  ctrlmetrics.RegistererGatherer
}

// Beside is what runs beside the pods and knows of them, or they of it.
type Beside struct {
	// UsesChanged is told when pods use other objects, or when it becomes known what they use.
	UsesChanged func(namespace, kind, name string)
	// Crossed is told that something of a namespace is at the provider.
	Crossed func(namespace string)
	// Claims tells which claims at the provider stand for those of pods; nil means those of the same names.
	Claims func(ctx context.Context, namespace, name string, owner types.UID) (remote string, refused *reflection.Skip, err error)
}

// Kubelet is what runs with the node's own identity: the Node, its pods and its endpoint. A nil one does nothing: without a
// Node only reflection runs. Make it with New.
type Kubelet struct {
	options Options
	// answering is whether the node's endpoint does.
	answering atomic.Bool
	// renewed tells that the node's Lease was renewed.
	renewed signal.Signal
	// parts are there once there is an identity.
	parts atomic.Pointer[parts]
}

// parts are what runs with the node's identity; there are no tokens if pods have none.
type parts struct {
	reporter *node.Reporter
	pods     *pod.Reconciler
	tokens   *token.Keeper
}

// New takes the options. Nothing happens before Prepare.
func New(o Options) *Kubelet { return &Kubelet{options: o, renewed: signal.New()} }

// Prepare keeps the node's certificates until the context ends, and closes ready once they are there and the endpoint answers, so that it
// does already when the Node gets this replica's address. That the serving certificate is signed is up to the cluster: it is not waited for
// for ever. Metrics are served, too, which tell something of a replica that stands by.
func (n *Kubelet) Prepare(ctx context.Context, ready chan<- struct{}) error {
	if n == nil {
		close(ready)
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.options.Identity.Run(ctx) })
	group.Go(func() error {
		local, err := n.options.Identity.Client(ctx)
		if err != nil {
			return err
		}
		group.Go(func() error { return n.serve(ctx, local) })
		// What an attempt ends with does not matter: it is the time that counts.
		_ = wait.PollUntilContextTimeout(ctx, servingRetry, servingPatience, true, func(context.Context) (bool, error) {
			_, err := n.options.Identity.ServingCertificate(nil)
			return err == nil && n.answering.Load(), nil
		})
		close(ready)
		if n.options.Flags.Metrics.Enabled {
			return n.serveMetrics(ctx)
		}
		return nil
	})
	return group.Wait()
}

// Run runs everything that needs the node's identity, once there is one.
func (n *Kubelet) Run(ctx context.Context, beside Beside) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		local, err := n.options.Identity.Client(ctx)
		if err != nil {
			return err
		}
		// Pods that were told of no API server would keep that.
		if !n.options.Network.Until(ctx, network.View.Known) {
			return nil
		}
		made, err := n.build(ctx, local, beside)
		if err != nil {
			return err
		}
		if err := n.measure(); err != nil {
			return err
		}
		group.Go(func() error { return made.reporter.Run(ctx) })
		group.Go(func() error { return n.followPeer(ctx, made.reporter) })
		group.Go(func() error { return made.pods.Run(ctx) })
		group.Go(func() error { n.giveSigns(ctx, made.pods); return nil })
		if made.tokens != nil {
			group.Go(func() error { return made.tokens.Run(ctx) })
		}
		return nil
	})
	return group.Wait()
}

// build makes the parts, which follow what is known.
func (n *Kubelet) build(ctx context.Context, local kubernetes.Interface, beside Beside) (*parts, error) {
	o, f, address := n.options, n.options.Flags, n.options.Address.String()
	made := &parts{}
	var err error
	events := o.Recorder(ctx, local)
	made.reporter, err = node.New(node.Options{
		Client: local, Node: f.Node, Address: address, Port: f.Port, Cluster: f.Provider.ID,
		LeaseDuration: f.NodeLease, Interval: f.NodeLeaseInterval(), Recorder: events, Renewed: n.renewed.Raise,
	})
	if err != nil {
		return nil, err
	}
	made.pods, err = pod.New(pod.Options{
		Home: f.Home, Remote: f.Provider.ID, Node: f.Node, NodeIP: address,
		Local: local, Account: o.Account, Peer: o.Peer, Recorder: events, Registerer: o.Metrics,
		Wanted:  latest.Join(o.Settings, o.Network, func(s settings.View, w network.View) pod.Wanted { return n.wanted(ctx, s, w) }),
		Confirm: o.Offloaded, UsesChanged: beside.UsesChanged, HideAddresses: f.Reflectors.HideAddresses,
		API:  func() reflection.HomeAPI { return f.Tokens.API().At(n.apiServer) },
		Host: made.reporter.Host, Placed: n.placed, Claims: beside.Claims, Budget: o.Budget, Removals: o.Removals.Guard,
	})
	if err != nil {
		return nil, err
	}
	if made.tokens, err = n.tokenKeeper(local, events, made.pods); err != nil {
		return nil, err
	}
	if err := made.pods.Bound(beside.Crossed); err != nil {
		return nil, err
	}
	n.parts.Store(made)
	said := func() { n.say(made.reporter) }
	o.Settings.Follow(func(_, _ settings.View) { said() })
	o.Network.Follow(func(_, _ network.View) { said() })
	o.Removals.Said.Follow(func(_, _ string) { said() })
	return made, nil
}

// wanted is which pods are to run at the provider, and how.
func (n *Kubelet) wanted(ctx context.Context, s settings.View, w network.View) pod.Wanted {
	wanted := pod.Wanted{Workers: s.Workers(settings.Pods), Mapping: s.Mapping}
	if s.Node != nil {
		wanted.Settings = s.OfPods(ctx, n.options.Flags.PodRanges)
		w.Apply(&wanted.Settings)
		tunnel := w.State(s.Node)
		wanted.NetworkDown, wanted.NetworkWatched = tunnel.Watched && tunnel.Down, tunnel.Watched
	}
	return wanted
}

// apiServer is where pods at the provider reach that of this cluster.
func (n *Kubelet) apiServer() netip.AddrPort { return n.options.Network.Get().APIServer() }

// say has the Node say what this cluster says of it, and what is known of the provider.
func (n *Kubelet) say(reporter *node.Reporter) {
	reporter.Facts.Change(func(f *node.Facts) {
		s := n.options.Settings.Get()
		if s.Node == nil {
			return
		}
		n.hear(f, "")
		f.Told, f.Said = true, node.Said{
			Capacity: s.Node.Spec.ResourceQuota.Hard, Images: s.Node.Spec.Images, Nodes: s.Node.Spec.ProviderNodes,
			Held: n.options.Removals.Said.Get(), Over: s.OverCommitted(), Network: n.options.Network.Get().State(s.Node),
		}
	})
}

// Pods is what runs the pods; nil without a Node, or before there is an identity.
func (n *Kubelet) Pods() *pod.Reconciler {
	if made := n.made(); made != nil {
		return made.pods
	}
	return nil
}

// made are the parts; nil without a Node, or before there is an identity.
func (n *Kubelet) made() *parts {
	if n == nil {
		return nil
	}
	return n.parts.Load()
}

// Alive tells whether all loops gave a sign since then; before there is an identity there are none.
func (n *Kubelet) Alive(since time.Time) bool {
	made := n.made()
	return made == nil || made.reporter.Alive(since) && made.pods.Alive(since)
}

// tokenKeeper makes what keeps the pods' tokens; nil if they have none.
func (n *Kubelet) tokenKeeper(local kubernetes.Interface, events token.Recorder, pods *pod.Reconciler) (*token.Keeper, error) {
	f := n.options.Flags
	if !f.Tokens.API().Enabled {
		return nil, nil
	}
	return token.New(token.Options{
		Home: f.Home, Remote: f.Provider.ID, Node: f.Node, Local: local, API: f.Tokens.API(), APIAddress: n.apiServer,
		MaxLifetime: f.Tokens.MaxLifetime,
		Workers:     latest.Of(n.options.Settings, func(s settings.View) int { return s.Workers(settings.Tokens) }),
		Recorder:    events, Registerer: n.options.Metrics,
		Place: func(name types.NamespacedName) (token.Place, bool) {
			place, there := pods.Place(name)
			return token.Place(place), there
		},
	})
}

// placed tells the keeper of tokens that a pod came, moved or went.
func (n *Kubelet) placed(name types.NamespacedName) {
	if made := n.made(); made != nil && made.tokens != nil {
		made.tokens.Enqueue(name)
	}
}
