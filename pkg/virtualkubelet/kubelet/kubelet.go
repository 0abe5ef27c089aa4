package kubelet

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/credential"
	"liqo.io/liqo/pkg/virtualkubelet/flags"
	"liqo.io/liqo/pkg/virtualkubelet/mirroring"
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
	// Peer is the provider, Network what is known of the way there.
	Peer    *peer.Peer
	Network *network.Network
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
	// Reflection is told what pods use.
	Reflection *mirroring.Reflection
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

	mu       sync.Mutex
	reporter *node.Reporter
	pods     *pod.Reconciler
	tokens   *token.Keeper
	settings settings.Settings
	mapping  pod.Mapping
}

// New takes the options. Nothing happens before Prepare.
func New(o Options) *Kubelet {
	return &Kubelet{options: o, renewed: signal.New(), settings: o.Flags.Reflectors.Settings(nil, nil)}
}

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
		select {
		case <-n.options.Network.Known():
		case <-ctx.Done():
			return nil
		}
		if err := n.build(ctx, local, beside); err != nil {
			return err
		}
		if err := n.measure(); err != nil {
			return err
		}
		group.Go(func() error { return n.reporter.Run(ctx) })
		group.Go(func() error { return n.followPeer(ctx) })
		group.Go(func() error { return n.pods.Run(ctx) })
		group.Go(func() error { n.giveSigns(ctx); return nil })
		if n.tokens != nil {
			group.Go(func() error { return n.tokens.Run(ctx) })
		}
		return nil
	})
	return group.Wait()
}

// build makes the parts, and tells them what is known already.
func (n *Kubelet) build(ctx context.Context, local kubernetes.Interface, beside Beside) error {
	o, f, address := n.options, n.options.Flags, n.options.Address.String()
	var now settings.Settings
	n.change(func() { now = n.settings })
	events := o.Recorder(ctx, local)
	reporter, err := node.New(node.Options{
		Client: local, Node: f.Node, Address: address, Port: f.Port, Cluster: f.Provider.ID,
		LeaseDuration: f.NodeLease, Interval: f.NodeLeaseInterval(), Recorder: events, Renewed: n.renewed.Raise,
	})
	if err != nil {
		return err
	}
	pods, err := pod.New(pod.Options{
		Home: f.Home, Remote: f.Provider.ID, Node: f.Node, NodeIP: address,
		Local: local, Account: o.Account, Peer: o.Peer, Recorder: events, Workers: max(1, now.Workers(settings.Pods)), Registerer: o.Metrics,
		Confirm: o.Offloaded, UsesChanged: beside.Reflection.UsesChanged, HideAddresses: f.Reflectors.HideAddresses,
		API:  func() reflection.HomeAPI { return f.Tokens.API().At(o.Network.APIServer) },
		Host: reporter.Host, Placed: n.placed, Claims: beside.Claims, Budget: o.Budget, Removals: o.Removals.Guard,
	})
	if err != nil {
		return err
	}
	tokens, err := n.tokenKeeper(local, events, pods, now.Workers(settings.Tokens))
	if err != nil {
		return err
	}
	if err := pods.Bound(beside.Crossed); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reporter, n.pods, n.tokens = reporter, pods, tokens
	beside.Reflection.SetPods(pods)
	n.tell(ctx)
	return nil
}

// tell passes on what the VirtualNode and the NamespaceMap say. The caller locks.
func (n *Kubelet) tell(ctx context.Context) {
	if n.pods == nil {
		return
	}
	n.pods.SetWorkers(n.settings.Workers(settings.Pods))
	if n.tokens != nil {
		n.tokens.SetWorkers(n.settings.Workers(settings.Tokens))
	}
	if vn := n.settings.Node; vn != nil {
		tunnel := n.options.Network.State(vn)
		of := n.settings.OfPods(ctx, n.options.Flags.PodRanges)
		n.options.Network.Apply(&of)
		of.NetworkDown, of.NetworkWatched = tunnel.Watched && tunnel.Down, tunnel.Watched
		n.pods.SetSettings(of)
		n.tellConnection("")
		n.tellNode(vn)
	}
	if n.mapping.Known {
		n.pods.SetMapping(n.mapping)
	}
}

// tellNode tells the Node what this cluster says of it. The caller locks.
func (n *Kubelet) tellNode(vn *offloadingv1beta1.VirtualNode) {
	n.reporter.Tell(node.Said{
		Capacity: vn.Spec.ResourceQuota.Hard, Images: vn.Spec.Images, Nodes: vn.Spec.ProviderNodes,
		Held: n.options.Removals.Said(), Over: n.settings.OverCommitted(), Network: n.options.Network.State(vn),
	})
}

// Configure takes what is in force.
func (n *Kubelet) Configure(ctx context.Context, s settings.Settings) {
	n.change(func() {
		n.settings = s
		n.tell(ctx)
	})
}

// NetworkChanged has the pods shown anew.
func (n *Kubelet) NetworkChanged(ctx context.Context) { n.change(func() { n.tell(ctx) }) }

// SetMapping takes which namespaces are offloaded.
func (n *Kubelet) SetMapping(m pod.Mapping) {
	n.change(func() {
		n.mapping = m
		if n.pods != nil {
			n.pods.SetMapping(m)
		}
	})
}

// RemovalsChanged has the Node say which removals are held.
func (n *Kubelet) RemovalsChanged() {
	n.change(func() {
		if vn := n.settings.Node; vn != nil && n.reporter != nil {
			n.tellNode(vn)
		}
	})
}

// change does something under the lock, if there is a Node.
func (n *Kubelet) change(do func()) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

// Pods is what runs the pods; nil without a Node, or before there is an identity.
func (n *Kubelet) Pods() (pods *pod.Reconciler) {
	n.change(func() { pods = n.pods })
	return pods
}

// Alive tells whether all loops gave a sign since then; before there is an identity there are none.
func (n *Kubelet) Alive(since time.Time) bool {
	alive := true
	n.change(func() { alive = n.pods == nil || n.reporter.Alive(since) && n.pods.Alive(since) })
	return alive
}

// tokenKeeper makes what keeps the pods' tokens; nil if they have none.
func (n *Kubelet) tokenKeeper(local kubernetes.Interface, events token.Recorder, pods *pod.Reconciler, workers int) (*token.Keeper, error) {
	f := n.options.Flags
	if !f.Tokens.API().Enabled {
		return nil, nil
	}
	return token.New(token.Options{
		Home: f.Home, Remote: f.Provider.ID, Node: f.Node, Local: local, API: f.Tokens.API(), APIAddress: n.options.Network.APIServer,
		MaxLifetime: f.Tokens.MaxLifetime, Workers: workers,
		Recorder: events, Registerer: n.options.Metrics,
		Place: func(name types.NamespacedName) (token.Place, bool) {
			place, there := pods.Place(name)
			return token.Place(place), there
		},
	})
}

// placed tells the keeper of tokens that a pod came, moved or went.
func (n *Kubelet) placed(name types.NamespacedName) {
	if n.tokens != nil {
		n.tokens.Enqueue(name)
	}
}
