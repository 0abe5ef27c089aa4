package mirroring

import (
	"context"
	"errors"
	"fmt"
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
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/network"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// The terms of the Lease by which one of a provider's virtual nodes reflects.
const (
	mirrorDuration = 30 * time.Second
	mirrorRenew    = 20 * time.Second
	mirrorRetry    = 10 * time.Second
)

// Engine is a reflection engine as far as it is asked things. It follows what is wanted by itself.
type Engine interface {
	Run(ctx context.Context) error
	Reconsider(kind, namespace string, names ...string) error
	Reflected(kind, namespace, name string) (reflection.Object, bool)
	Crossed(namespace string) bool
}

// Options of a Reflection. All but Pods must be given.
type Options struct {
	// Build makes an engine, which follows Wanted; an engine runs once.
	Build func() (Engine, error)
	// Wanted is what is to be reflected.
	Wanted *latest.Value[mirror.Wanted]
	// Siblings knows the pods of the other virtual nodes.
	Siblings Siblings
	// Nodeless says that there is no own Node, so that it has no pods, which use nothing.
	Nodeless bool
	// Pods returns who knows those of the own Node, nil before there is somebody. Nil means that there never is.
	Pods func() Uses
	// Client of this cluster, where the Lease is in the Namespace.
	Client    kubernetes.Interface
	Namespace string
	// Node is the virtual node that this process runs, Provider its provider's ID.
	Node, Provider string
	// Network is what is known of the networks: what is sent without them would take away what was sent with them.
	Network *latest.Value[network.View]
}

// Reflection is that to one provider. Make it with New.
type Reflection struct {
	// Leads says whether this virtual node is the one of its provider that reflects.
	Leads   latest.Value[bool]
	options Options
	current atomic.Pointer[Engine]
	// attending is held while it is said whose pods matter: what is said last is the latest.
	attending sync.Mutex
	// term is held as long as an engine runs.
	term sync.Mutex
}

// New makes a reflection.
func New(o Options) *Reflection {
	m := &Reflection{options: o}
	// Engines follow later, and hear later.
	o.Wanted.Follow(func(_, _ mirror.Wanted) { m.attend() })
	return m
}

// Wanted is what is to be reflected by a virtual node to its provider, as this cluster says.
func Wanted(node, provider string, v settings.View, n network.View) mirror.Wanted {
	wanted := mirror.Wanted{Mapping: v.Mapping.Effective, Kinds: v.Kinds, NotReflected: v.NotReflected, Skipped: v.Skipped}
	if i := slices.IndexFunc(v.VirtualNodes, func(vn *offloadingv1beta1.VirtualNode) bool { return vn.Name == node }); i >= 0 {
		wanted.Provider = providerOf(v.VirtualNodes[i], v.VirtualNodes, provider)
	}
	n.Tell(&wanted.Provider)
	return wanted
}

// reconsider has objects of a kind, which must be one of the table, looked at again.
func (m *Reflection) reconsider(kind, namespace string, names ...string) {
	m.ask(func(e Engine) { _ = e.Reconsider(kind, namespace, names...) }) // It fails for kinds that are not in the table only.
}

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
	if engine := m.current.Load(); engine != nil {
		ask(*engine)
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
	if now := m.options.Wanted.Get(); !known(now) || !m.options.Network.Get().Known() {
		klog.FromContext(ctx).Info("Nothing is reflected before it was read", "virtualNodes", known(now), "networks", m.options.Network.Get().Known())
	}
	if !m.options.Wanted.Until(ctx, known) || !m.options.Network.Until(ctx, network.View.Known) {
		return nil
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

// known tells whether the provider's virtual nodes are known, crowded whether there are several.
func known(now mirror.Wanted) bool   { return len(now.Provider.Nodes) > 0 }
func crowded(now mirror.Wanted) bool { return len(now.Provider.Nodes) > 1 }

// alone reflects without Lease until there is another virtual node of the provider.
func (m *Reflection) alone(ctx context.Context) error {
	if crowded(m.options.Wanted.Get()) {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		m.options.Wanted.Until(ctx, crowded)
		stop()
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
	m.turn(&e)
	defer m.turn(nil)
	return e.Run(ctx)
}

// turn has an engine be the one that runs, or none.
func (m *Reflection) turn(e *Engine) {
	m.current.Store(e)
	m.attend()
	m.Leads.Set(e != nil)
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
