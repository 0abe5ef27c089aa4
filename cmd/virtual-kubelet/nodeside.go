package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"liqo.io/liqo/pkg/kube/caller"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/api"
	"liqo.io/liqo/pkg/virtualkubelet/flags"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
	"liqo.io/liqo/pkg/virtualkubelet/token"
	"liqo.io/liqo/pkg/virtualkubelet/usage"
)

// clientCARetry is the wait between two tries to read the CA of the cluster's clients.
const clientCARetry = 2 * time.Second

// servingPatience is how long a replica that stands by waits for its endpoint to answer, with a serving certificate, before it calls itself
// ready; servingRetry is how often it looks.
const (
	servingPatience = 30 * time.Second
	servingRetry    = 100 * time.Millisecond
)

// nodeSide is what runs with the node's own identity: the Node, its pods and its endpoint. A nil one does nothing: without a
// Node only reflection runs.
type nodeSide struct {
	k        *kubelet
	identity nodeIdentity
	// answering is whether the node's endpoint does.
	answering atomic.Bool
	// renewed tells that the node's Lease was renewed.
	renewed chan struct{}

	mu       sync.Mutex
	reporter *node.Reporter
	pods     *pod.Reconciler
	tokens   *token.Keeper
	settings settings.Settings
	mapping  pod.Mapping
}

func newNodeSide(k *kubelet) *nodeSide {
	return &nodeSide{k: k, renewed: make(chan struct{}, 1), settings: k.flags.Reflectors.Settings(nil, nil)}
}

// prepare keeps the node's certificates until the context ends, and closes ready once they are there and the endpoint answers, so that it
// does already when the Node gets this replica's address. That the serving certificate is signed is up to the cluster: it is not waited for
// for ever. Metrics are served, too, which tell something of a replica that stands by.
func (n *nodeSide) prepare(ctx context.Context, ready chan<- struct{}) error {
	if n == nil {
		close(ready)
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.identity.Run(ctx) })
	group.Go(func() error {
		if _, err := n.identity.Client(ctx); err != nil {
			return err
		}
		// What an attempt ends with does not matter: it is the time that counts.
		_ = wait.PollUntilContextTimeout(ctx, servingRetry, servingPatience, true, func(context.Context) (bool, error) {
			_, err := n.identity.ServingCertificate(nil)
			return err == nil && n.answering.Load(), nil
		})
		close(ready)
		if n.k.flags.Metrics.Enabled {
			return serveMetrics(ctx, n.k.flags.Metrics, n.identity)
		}
		return nil
	})
	group.Go(func() error {
		local, err := n.identity.Client(ctx)
		if err != nil {
			return err
		}
		return n.serve(ctx, local, n.identity)
	})
	return group.Wait()
}

// run runs everything that needs the node's identity, once there is one.
func (n *nodeSide) run(ctx context.Context) error {
	store := n.identity
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		local, err := store.Client(ctx)
		if err != nil {
			return err
		}
		// Pods that were told of no API server would keep that.
		select {
		case <-n.k.network.Known():
		case <-ctx.Done():
			return nil
		}
		if err := n.build(ctx, local); err != nil {
			return err
		}
		if err := n.measure(store); err != nil {
			return err
		}
		group.Go(func() error { return n.reporter.Run(ctx) })
		group.Go(func() error { return followPeer(ctx, n.k.peer, n.reporter) })
		group.Go(func() error { return n.pods.Run(ctx) })
		group.Go(func() error { giveSigns(ctx, n.renewed, n.pods.Signs); return nil })
		if n.tokens != nil {
			group.Go(func() error { return n.tokens.Run(ctx) })
		}
		return nil
	})
	return group.Wait()
}

// build makes the parts, and tells them what is known already.
func (n *nodeSide) build(ctx context.Context, local kubernetes.Interface) error {
	f, around := n.k.flags, n.k.around
	events := recorder(ctx, local)
	reporter, err := node.New(node.Options{
		Client: local, Node: f.Node, Address: around.Address.String(), Port: f.Port, Cluster: f.Provider.ID,
		LeaseDuration: f.NodeLease, Interval: f.NodeLeaseInterval(), Recorder: events, Renewed: wake(n.renewed),
	})
	if err != nil {
		return err
	}
	pods, err := pod.New(pod.Options{
		Home: f.Home, Remote: f.Provider.ID, Node: f.Node, NodeIP: around.Address.String(),
		Local: local, Account: n.k.account, Peer: n.k.peer, Recorder: events, Workers: max(1, n.settings.Workers(settings.Pods)), Registerer: n.k.metrics,
		Confirm: n.k.settings.Offloaded, UsesChanged: n.k.uses.Changed, HideAddresses: f.Reflectors.HideAddresses,
		API: func() reflection.HomeAPI { return f.Tokens.API().At(n.k.network.APIServer) }, Host: reporter.Host, Placed: n.placed, Claims: n.k.resolveClaim(), Budget: n.k.budget, Removals: n.k.removals.guard,
	})
	if err != nil {
		return err
	}
	tokens, err := n.tokenKeeper(local, events, pods)
	if err != nil {
		return err
	}
	if err := pods.Bound(n.k.events.Crossed); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reporter, n.pods, n.tokens = reporter, pods, tokens
	n.k.uses.SetPods(pods)
	n.tell(ctx)
	return nil
}

// tell passes on what the VirtualNode and the NamespaceMap say. The caller locks.
func (n *nodeSide) tell(ctx context.Context) {
	if n.pods == nil {
		return
	}
	n.pods.SetWorkers(n.settings.Workers(settings.Pods))
	if n.tokens != nil {
		n.tokens.SetWorkers(n.settings.Workers(settings.Tokens))
	}
	if vn := n.settings.Node; vn != nil {
		network := n.k.network.State(vn)
		of := n.settings.OfPods(ctx, n.k.flags.PodRanges)
		n.k.network.Apply(&of)
		of.NetworkDown, of.NetworkWatched = network.Watched && network.Down, network.Watched
		n.pods.SetSettings(of)
		tellConnection(n.k.peer, n.reporter, "")
		n.reporter.SetHeld(n.k.removals.said())
		n.reporter.SetOverCommitted(n.settings.OverCommitted())
		n.reporter.SetNetwork(network)
		n.reporter.SetCapacity(vn.Spec.ResourceQuota.Hard, vn.Spec.Images, vn.Spec.ProviderNodes)
	}
	if n.mapping.Known {
		n.pods.SetMapping(n.mapping)
	}
}

// configure takes what is in force.
func (n *nodeSide) configure(ctx context.Context, s settings.Settings) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settings = s
	n.tell(ctx)
}

// networkChanged has the pods shown anew.
func (n *nodeSide) networkChanged(ctx context.Context) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell(ctx)
}

func (n *nodeSide) setMapping(m pod.Mapping) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mapping = m
	if n.pods != nil {
		n.pods.SetMapping(m)
	}
}

// alive tells whether all loops gave a sign since then; before there is an identity there are none.
func (n *nodeSide) alive(since time.Time) bool {
	if n == nil {
		return true
	}
	n.mu.Lock()
	reporter, pods := n.reporter, n.pods
	n.mu.Unlock()
	return pods == nil || reporter.Alive(since) && pods.Alive(since)
}

// serve runs the kubelet endpoint.
func (n *nodeSide) serve(ctx context.Context, local kubernetes.Interface, store nodeIdentity) error {
	ca, err := n.clientCA(ctx, local)
	if err != nil {
		return err
	}
	server, err := api.New(api.Options{
		Remote: n, LocalClient: local, ClientCA: ca, GetCertificate: store.ServingCertificate,
		Address: ":" + strconv.Itoa(int(n.k.flags.Port)), NodeName: n.k.flags.Node,
		Serving:  func() { n.answering.Store(true) },
		Working:  func() bool { pods := n.running(); return pods != nil && pods.Informed() },
		Pods:     n.allPods,
		Usage:    usage.New(usage.Options{Node: n.k.flags.Node, Pods: n.allPods, Twins: n, Provider: n.k.provider}),
		Gatherer: n.k.metrics, Registerer: n.k.metrics,
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// allPods are the local pods, once there is who knows.
func (n *nodeSide) allPods() []*corev1.Pod { return n.running().Pods() }

// Twin tells the endpoint where a pod runs, once there is who knows.
func (n *nodeSide) Twin(ctx context.Context, namespace, name, uid string) (api.Target, error) {
	return n.running().Twin(ctx, namespace, name, uid)
}

// clientCA reads the CA of the cluster's clients, again and again until it is told.
func (n *nodeSide) clientCA(ctx context.Context, local kubernetes.Interface) (dynamiccertificates.CAContentProvider, error) {
	for {
		ca, err := api.ClientCA(ctx, local, n.k.home.CAFile)
		if err == nil {
			return ca, nil
		}
		klog.FromContext(ctx).Error(err, "The CA of the cluster's clients cannot be read")
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(clientCARetry):
		}
	}
}

// serveMetrics serves the metrics to whom this cluster authorizes, or to everybody.
func serveMetrics(ctx context.Context, f flags.Metrics, store nodeIdentity) error {
	config := store.Config()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making the client that authorizes readers of metrics: %w", err)
	}
	options := caller.Serving(f.Address, f.Plain, func(c *tls.Config) { c.GetCertificate = store.ServingCertificate })
	server, err := metricsserver.NewServer(options, config, httpClient)
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	if err := server.Start(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// tokenKeeper makes what keeps the pods' tokens; nil if they have none.
func (n *nodeSide) tokenKeeper(local kubernetes.Interface, events token.Recorder, pods *pod.Reconciler) (*token.Keeper, error) {
	f := n.k.flags
	if !f.Tokens.API().Enabled {
		return nil, nil
	}
	return token.New(token.Options{
		Home: f.Home, Remote: f.Provider.ID, Node: f.Node, Local: local, API: f.Tokens.API(), APIAddress: n.k.network.APIServer,
		MaxLifetime: f.Tokens.MaxLifetime, Workers: n.settings.Workers(settings.Tokens),
		Recorder: events, Registerer: n.k.metrics,
		Place: func(name types.NamespacedName) (token.Place, bool) {
			place, there := pods.Place(name)
			return token.Place(place), there
		},
	})
}

// placed tells the keeper of tokens that a pod came, moved or went.
func (n *nodeSide) placed(name types.NamespacedName) {
	if n.tokens != nil {
		n.tokens.Enqueue(name)
	}
}
