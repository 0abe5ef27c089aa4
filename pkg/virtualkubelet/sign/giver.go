package sign

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/partition"
	"liqo.io/liqo/pkg/peer"
)

// timeout bounds a sign: one that is late must not be taken for a new one.
const timeout = 5 * time.Second

const fieldManager = "liqo-virtual-kubelet"

// Peer is the connection to the provider.
type Peer interface {
	// Clients returns the current clients; it fails as long as there are no credentials.
	Clients() (peer.Clients, error)
	// State tells whether the provider answers.
	State() peer.State
}

// Options of a Giver; all must be given.
type Options struct {
	// Home is the ID of this cluster, Node the virtual node.
	Home, Node string
	// Peer is the provider.
	Peer Peer
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Giver gives signs for the pods of one virtual node.
type Giver struct {
	options Options
	// asking are the pods that the provider is to stop without signs, by UID.
	asking sync.Map
	// heeded says that the provider took a sign, and so goes by them.
	heeded atomic.Bool
}

// New returns a Giver without pods.
func New(o Options) *Giver { return &Giver{options: o} }

// Came tells of a pod of the node.
func (g *Giver) Came(pod *corev1.Pod) {
	if partition.StoppedAfter(pod) > 0 {
		g.asking.Store(pod.UID, true)
	}
}

// Went tells that a pod is gone.
func (g *Giver) Went(pod types.UID) { g.asking.Delete(pod) }

func (g *Giver) asked() (asked bool) {
	g.asking.Range(func(_, _ any) bool { asked = true; return false })
	return asked
}

// Give gives a sign, if a pod asks for it. A provider that does not know the like, or has not met such a pod yet, takes none.
func (g *Giver) Give(ctx context.Context) error {
	if !g.asked() || !g.options.Peer.State().Usable() {
		return nil
	}
	clients, err := g.options.Peer.Clients()
	if err != nil || clients.User == "" {
		return err
	}
	now := metav1.NewMicroTime(g.options.Clock.Now())
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"holderIdentity": g.options.Node, "renewTime": now}})
	if err != nil {
		return fmt.Errorf("encoding a sign of life: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	namespace, name := corev1beta1.TenantNamespacePrefix+g.options.Home, offloadingv1beta1.SignOfLifePrefix+capacity.UserLabel(clients.User)
	_, err = clients.Kube.CoordinationV1().Leases(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		g.heeded.Store(false)
		return nil
	}
	if err != nil {
		return fmt.Errorf("renewing Lease %s/%s: %w", namespace, name, err)
	}
	g.heeded.Store(true)
	return nil
}

// Left tells how long it takes until the provider, which is lost, must have stopped a pod; not at all (false) unless it is lost, goes by our
// signs, and was told to.
func (g *Giver) Left(pod *corev1.Pod) (time.Duration, bool) {
	state, after := g.options.Peer.State(), partition.StoppedAfter(pod)
	return after - g.options.Clock.Since(state.Since), g.heeded.Load() && state.Lost() && after > 0
}
