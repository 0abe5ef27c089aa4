package mirroring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// The terms of the Lease by which one of a provider's virtual nodes reflects.
const (
	mirrorDuration = 30 * time.Second
	mirrorRenew    = 20 * time.Second
	mirrorRetry    = 10 * time.Second
)

// Engine is a reflection engine as far as it is told things.
type Engine interface {
	Run(ctx context.Context) error
	SetMapping(mapping map[string]string)
	SetNotReflected(not reflection.NotReflected)
	SetProvider(provider reflection.Provider)
	SetConfig(kind string, config offloadingv1beta1.ReflectorConfig) error
	Reconsider(kind, namespace string, names ...string) error
	RefreshNamespaces()
	Reflected(kind, namespace, name string) (reflection.Object, bool)
	Crossed(namespace string) bool
}

// Options of a Reflection. All but Leads must be given.
type Options struct {
	// Build makes an engine; an engine runs once.
	Build func() (Engine, error)
	// Siblings knows the pods of the other virtual nodes.
	Siblings Siblings
	// Nodeless says that there is no own Node, so that it has no pods, which use nothing.
	Nodeless bool
	// Leads is called, at first and whenever it changes, with whether this virtual node is the one of its provider that reflects. It does
	// not block. Nil means that nobody wants to know.
	Leads func(bool)
	// Client of this cluster, where the Lease is in the Namespace.
	Client    kubernetes.Interface
	Namespace string
	// Node is the virtual node that this process runs, Provider its provider's ID.
	Node, Provider string
	// Networked is closed once the networks are known: what is sent without them would take away what was sent with them.
	Networked <-chan struct{}
}

// Reflection is that to one provider. Make it with New.
type Reflection struct {
	options Options
	// known is closed when the provider's virtual nodes are known, crowded when there are several.
	known, crowded     chan struct{}
	onKnown, onCrowded sync.Once
	// pods knows those of the own Node.
	pods atomic.Pointer[Uses]

	mu        sync.Mutex
	current   Engine
	mapping   map[string]string
	settings  settings.Settings
	provider  reflection.Provider
	peers     translation.Peers
	externals translation.Externals
	// ranges are how the provider calls ranges, as last known.
	ranges func(netip.Prefix) (netip.Prefix, bool)
	// term is held as long as an engine runs.
	term sync.Mutex
}

// New makes a reflection with the settings that are in force before any are read.
func New(o Options, s settings.Settings) *Reflection {
	if o.Leads == nil {
		o.Leads = func(bool) {}
	}
	o.Leads(false)
	return &Reflection{options: o, settings: s, known: make(chan struct{}), crowded: make(chan struct{})}
}

// SetMapping takes which namespaces have which twins.
func (m *Reflection) SetMapping(mapping map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mapping = maps.Clone(mapping)
	m.attend()
	if m.current != nil {
		m.current.SetMapping(m.mapping)
	}
}

// SetVirtualNodes takes all virtual nodes. Without the own one nothing is concluded from the others.
func (m *Reflection) SetVirtualNodes(all []*offloadingv1beta1.VirtualNode) {
	i := slices.IndexFunc(all, func(vn *offloadingv1beta1.VirtualNode) bool { return vn.Name == m.options.Node })
	if i < 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.provider = providerOf(all[i], all, m.options.Provider)
	m.attend()
	m.tellProvider()
	// In this order: who knows the virtual nodes must not take the own one for the only one.
	if len(m.provider.Nodes) > 1 {
		m.onCrowded.Do(func() { close(m.crowded) })
	}
	m.onKnown.Do(func() { close(m.known) })
}

// SetAddresses takes how this cluster sees its peers, which tells whose the pods at other providers are, and by which addresses peers reach
// what is no pod.
func (m *Reflection) SetAddresses(peers translation.Peers, externals translation.Externals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peers, m.externals = peers, externals
	m.tellProvider()
}

// tellProvider tells what is known of the provider, once its virtual nodes are. The caller locks.
func (m *Reflection) tellProvider() {
	m.provider.Addresses, m.provider.Elsewhere = m.externals.Translate, m.peers.Home
	if p := m.peers[m.options.Provider]; m.ranges == nil || !p.Known || len(p.Seen) > 0 {
		m.ranges = p.Range
	}
	m.provider.Ranges = m.ranges
	m.provider.AddressPlan = m.externals.String() + "; " + m.peers.String()
	if m.current != nil {
		m.current.SetProvider(m.provider)
	}
}

// Configure takes what is in force.
func (m *Reflection) Configure(s settings.Settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = s
	m.attend()
	if m.current != nil {
		m.configure(m.current)
	}
}

// configure tells an engine what is in force. The caller locks.
func (m *Reflection) configure(e Engine) {
	e.SetNotReflected(m.settings.NotReflected)
	for _, kind := range reflection.Kinds() {
		if config, there := m.settings.Kinds[kind.Name]; there {
			_ = e.SetConfig(kind.Name, config) // It fails for kinds that are not in the table only.
		}
	}
}

// reconsider has objects of a kind, which must be one of the table, looked at again.
func (m *Reflection) reconsider(kind, namespace string, names ...string) {
	m.ask(func(e Engine) { _ = e.Reconsider(kind, namespace, names...) }) // It fails for kinds that are not in the table only.
}

// RefreshNamespaces has the annotations of all namespaces read again. An engine that starts later reads them anyway.
func (m *Reflection) RefreshNamespaces() { m.ask(Engine.RefreshNamespaces) }

// Reflected returns the local object behind a remote one, as far as this process reflects.
func (m *Reflection) Reflected(kind, namespace, name string) (local reflection.Object, known bool) {
	m.ask(func(e Engine) { local, known = e.Reflected(kind, namespace, name) })
	return local, known
}

// Crossed tells whether this process knows of anything of a namespace at the provider.
func (m *Reflection) Crossed(namespace string) (crossed bool) {
	m.ask(func(e Engine) { crossed = e.Crossed(namespace) })
	return crossed
}

// ask asks the engine that runs something, if one does.
func (m *Reflection) ask(ask func(Engine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		ask(m.current)
	}
}

// providerOf is what this cluster knows of a provider; own is the virtual node whose offers are taken.
func providerOf(own *offloadingv1beta1.VirtualNode, all []*offloadingv1beta1.VirtualNode, cluster string) reflection.Provider {
	provider := reflection.ProviderOf(own)
	provider.Nodes = map[string]bool{}
	for _, vn := range all {
		if string(vn.Spec.ClusterID) == cluster {
			provider.Nodes[vn.Name] = true
		}
	}
	return provider
}

// Run reflects until the context ends, once the provider's virtual nodes and the networks are known.
func (m *Reflection) Run(ctx context.Context) error {
	for what, known := range map[string]<-chan struct{}{"virtual nodes": m.known, "networks": m.options.Networked} {
		select {
		case <-known:
			continue
		default:
			klog.FromContext(ctx).Info("Nothing is reflected before it was read", "what", what)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-known:
		}
	}
	if err := m.alone(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := m.compete(ctx); err != nil {
			return err
		}
	}
	return nil
}

// alone reflects without Lease until there is another virtual node of the provider.
func (m *Reflection) alone(ctx context.Context) error {
	select {
	case <-m.crowded:
		return nil
	default:
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-m.crowded:
			stop()
		case <-ctx.Done():
		}
	}()
	return m.reflect(ctx)
}

// reflect runs one engine until the context ends.
func (m *Reflection) reflect(ctx context.Context) error {
	m.term.Lock()
	defer m.term.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	e, err := m.options.Build()
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.configure(e)
	e.SetProvider(m.provider)
	e.SetMapping(m.mapping)
	m.turn(e)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.turn(nil)
	}()
	return e.Run(ctx)
}

// turn has an engine be the one that runs, or none. The caller locks.
func (m *Reflection) turn(e Engine) {
	m.current = e
	m.attend()
	m.options.Leads(e != nil)
}

// compete tries to get the provider's Lease and reflects while it holds it. It returns when the Lease is lost.
func (m *Reflection) compete(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: leaseOf(m.options.Provider), Namespace: m.options.Namespace},
			Client:    m.options.Client.CoordinationV1(),
			// The virtual node is who leads: after a restart it still does.
			LockConfig: resourcelock.ResourceLockConfig{Identity: m.options.Node},
		},
		Name: leaseOf(m.options.Provider), ReleaseOnCancel: true,
		LeaseDuration: mirrorDuration, RenewDeadline: mirrorRenew, RetryPeriod: mirrorRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if err := m.reflect(ctx); err != nil {
					cancel(fmt.Errorf("reflecting to cluster %q: %w", m.options.Provider, err))
				}
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				klog.FromContext(ctx).Info("One virtual node of the provider reflects", "leader", leader)
			},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the choice of the virtual node that reflects: %w", err)
	}
	elector.Run(ctx)
	// The engine of this term has to end before there can be another one.
	cancel(nil)
	m.term.Lock()
	defer m.term.Unlock()
	if failure := context.Cause(ctx); !errors.Is(failure, context.Canceled) {
		return failure
	}
	return nil
}

// leaseOf names the Lease of a provider; cluster IDs are short enough for it.
func leaseOf(cluster string) string { return "mirror-" + cluster }
