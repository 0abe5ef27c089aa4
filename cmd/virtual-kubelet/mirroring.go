package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/reflection"
)

// The terms of the Lease by which one of a provider's virtual nodes reflects.
const (
	mirrorDuration = 30 * time.Second
	mirrorRenew    = 20 * time.Second
	mirrorRetry    = 10 * time.Second
)

// engine is a reflection engine as far as it is told things.
type engine interface {
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

// mirroring runs the reflection to a provider. Of several virtual nodes of one provider only one does it at a time: the one
// that holds the provider's Lease. A virtual node that is its provider's only one needs none.
type mirroring struct {
	// build makes an engine; an engine runs once.
	build func() (engine, error)
	// known is closed when the provider's virtual nodes are known, crowded when there are several.
	known, crowded chan struct{}
	// siblings knows the pods of the other virtual nodes; nil where they do not matter.
	siblings siblings

	mu           sync.Mutex
	own          string
	current      engine
	mapping      map[string]string
	notReflected reflection.NotReflected
	configs      map[string]offloadingv1beta1.ReflectorConfig
	provider     reflection.Provider
	peers        translation.Peers
	externals    translation.Externals
	// leads is told whether this virtual node reflects; nil as long as nobody wants to know.
	leads func(bool)
	// term is held as long as an engine runs.
	term sync.Mutex
}

func newMirroring(build func() (engine, error)) *mirroring {
	return &mirroring{build: build, configs: map[string]offloadingv1beta1.ReflectorConfig{}, known: make(chan struct{}), crowded: make(chan struct{})}
}

func (m *mirroring) setMapping(mapping map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mapping = maps.Clone(mapping)
	m.attend()
	if m.current != nil {
		m.current.SetMapping(m.mapping)
	}
}

// setVirtualNodes takes the virtual nodes of the provider; own is the one that this process runs. Without it nothing is
// concluded from the others.
func (m *mirroring) setVirtualNodes(own string, all []*offloadingv1beta1.VirtualNode, cluster string) {
	i := slices.IndexFunc(all, func(vn *offloadingv1beta1.VirtualNode) bool { return vn.Name == own })
	if i < 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own, m.provider = own, providerOf(all[i], all, cluster)
	m.attend()
	m.tellProvider()
	// In this order: who knows the virtual nodes must not take the own one for the only one.
	if len(m.provider.Nodes) > 1 {
		closeOnce(m.crowded)
	}
	closeOnce(m.known)
}

// setPeers takes how this cluster sees its peers, which tells whose the pods at other providers are.
func (m *mirroring) setPeers(peers translation.Peers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peers = peers
	m.tellProvider()
}

// setExternals takes by which addresses peers reach what is no pod.
func (m *mirroring) setExternals(externals translation.Externals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.externals = externals
	m.tellProvider()
}

// tellProvider tells what is known of the provider, once its virtual nodes are. The caller locks.
func (m *mirroring) tellProvider() {
	m.provider.Addresses, m.provider.Elsewhere = m.externals.Translate, m.peers.Home
	m.provider.AddressPlan = m.externals.String() + "; " + m.peers.String()
	if m.current != nil {
		m.current.SetProvider(m.provider)
	}
}

// setLeads has f called, now and whenever it changes, with whether this virtual node is the one of its provider that reflects. It
// does not block.
func (m *mirroring) setLeads(f func(bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leads = f
	m.lead()
}

// lead tells who wants to know whether an engine runs. The caller locks.
func (m *mirroring) lead() {
	if m.leads != nil {
		m.leads(m.current != nil)
	}
}

func (m *mirroring) setNotReflected(not reflection.NotReflected) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notReflected = not
	if m.current != nil {
		m.current.SetNotReflected(not)
	}
}

// setConfig takes the configuration of a kind, which must be one of the table.
func (m *mirroring) setConfig(kind string, config offloadingv1beta1.ReflectorConfig) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configs[kind] = config
	m.attend()
	if m.current != nil {
		_ = m.current.SetConfig(kind, config) // It fails for kinds that are not in the table only.
	}
}

// reconsider has objects of a kind, which must be one of the table, looked at again.
func (m *mirroring) reconsider(kind, namespace string, names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		_ = m.current.Reconsider(kind, namespace, names...) // It fails for kinds that are not in the table only.
	}
}

// refreshNamespaces has the annotations of all namespaces read again. An engine that starts later reads them anyway.
func (m *mirroring) refreshNamespaces() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		m.current.RefreshNamespaces()
	}
}

// Reflected returns the local object behind a remote one, as far as this process reflects.
func (m *mirroring) Reflected(kind, namespace, name string) (reflection.Object, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil {
		return nil, false
	}
	return m.current.Reflected(kind, namespace, name)
}

// Crossed tells whether this process knows of anything of a namespace at the provider.
func (m *mirroring) Crossed(namespace string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current != nil && m.current.Crossed(namespace)
}

// closeOnce closes a channel that may be closed; its callers lock.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
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

// run reflects until the context ends, once the provider's virtual nodes are known and networked is closed, which says that the networks are: what
// is sent without them would take away what was sent with them.
func (m *mirroring) run(ctx context.Context, c kubernetes.Interface, f flags, networked <-chan struct{}) error {
	for what, known := range map[string]<-chan struct{}{"virtual nodes": m.known, "networks": networked} {
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
		if err := m.compete(ctx, c, f); err != nil {
			return err
		}
	}
	return nil
}

// alone reflects without Lease until there is another virtual node of the provider.
func (m *mirroring) alone(ctx context.Context) error {
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
func (m *mirroring) reflect(ctx context.Context) error {
	m.term.Lock()
	defer m.term.Unlock()
	select {
	case <-ctx.Done():
		return nil
	default:
	}
	e, err := m.build()
	if err != nil {
		return err
	}
	m.mu.Lock()
	for kind, config := range m.configs {
		_ = e.SetConfig(kind, config) // It fails for kinds that are not in the table only.
	}
	e.SetNotReflected(m.notReflected)
	e.SetProvider(m.provider)
	e.SetMapping(m.mapping)
	m.current = e
	m.attend()
	m.lead()
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.current = nil
		m.attend()
		m.lead()
	}()
	return e.Run(ctx)
}

// compete tries to get the provider's Lease and reflects while it holds it. It returns when the Lease is lost.
func (m *mirroring) compete(ctx context.Context, c kubernetes.Interface, f flags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: mirrorLease(f.foreignCluster), Namespace: f.tenantNamespace},
			Client:    c.CoordinationV1(),
			// The virtual node is who leads: after a restart it still does.
			LockConfig: resourcelock.ResourceLockConfig{Identity: f.node},
		},
		Name: mirrorLease(f.foreignCluster), ReleaseOnCancel: true,
		LeaseDuration: mirrorDuration, RenewDeadline: mirrorRenew, RetryPeriod: mirrorRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if err := m.reflect(ctx); err != nil {
					cancel(fmt.Errorf("reflecting to cluster %q: %w", f.foreignCluster, err))
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

// mirrorLease names the Lease of a provider; cluster IDs are short enough for it.
func mirrorLease(cluster string) string { return "mirror-" + cluster }
