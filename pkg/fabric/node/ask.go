package node

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/kube/signal"
)

const (
	// askEvery is how often gateways are asked, askAgain how soon once one did not answer, and silentAfter after how many questions in a row
	// without an answer it is told.
	askEvery, askAgain, silentAfter = 10 * time.Second, 2 * time.Second, 3
	// askedAtOnce is how many are asked at a time.
	askedAtOnce = 16
)

// gateway is a gateway of this cluster: to a peer, in the pod with an address. Its own address towards peers is where it is asked, as that is
// reached through the overlay alone.
type gateway struct {
	peer          string
	pod, external netip.Addr
}

// NewSilent makes the metric of how many do not answer.
func NewSilent() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "liqo_network_silent_gateways", Help: "Gateways of this cluster that do not answer this node through the overlay.",
	})
}

// gatewaysOf are the gateways that a node has a way to, and that would answer it.
func gatewaysOf(fabrics []networkingv1beta1.InternalFabric, usable []dataplane.InternalFabric) (all []gateway) {
	for i := range fabrics {
		pod, _ := fabrics[i].Spec.GatewayIP.Addr()
		used := slices.IndexFunc(usable, func(u dataplane.InternalFabric) bool {
			return u.Gateway.IsValid() && u.Gateway == pod && u.External.Is4() && u.External.String() == string(fabrics[i].Spec.Interface.Gateway.IP)
		})
		if used >= 0 && !fabrics[i].Spec.Waiting {
			all = append(all, gateway{cmp.Or(fabrics[i].Labels[corev1beta1.RemoteClusterIDLabel], fabrics[i].Name), pod, usable[used].External})
		}
	}
	return all
}

// asker asks the gateways of this cluster whether they hear the node.
type asker struct {
	// ask fails if an address does not answer.
	ask func(context.Context, netip.Addr) error
	// changed is told when others are silent than before; count, if it is given, how many are.
	changed signal.Signal
	count   prometheus.Gauge
	now     signal.Signal

	mu sync.Mutex
	// missed is, of those that are to be asked, how many questions in a row had no answer.
	missed map[gateway]int
}

// want says which gateways are to be asked. A pod that takes another one's place is asked at once.
func (a *asker) want(gateways []gateway) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.missed
	a.missed = map[gateway]int{}
	for _, g := range gateways {
		missed, known := before[g]
		a.missed[g] = missed
		if !known {
			a.now.Raise()
		}
	}
}

// silent are the gateways that do not answer, in order.
func (a *asker) silent() (all []gateway) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for g, missed := range a.missed {
		if missed >= silentAfter {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b gateway) int { return a.external.Compare(b.external) })
	return all
}

// run asks until the context ends.
func (a *asker) run(ctx context.Context) {
	next := time.NewTimer(askEvery)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.now:
		case <-next.C:
		}
		before := a.silent()
		next.Reset(a.round(ctx))
		after := a.silent()
		if a.count != nil {
			a.count.Set(float64(len(after)))
		}
		if !slices.Equal(before, after) {
			a.changed.Raise()
		}
	}
}

// round asks each gateway once, and says how soon to ask again.
func (a *asker) round(ctx context.Context) time.Duration {
	a.mu.Lock()
	asked := slices.Collect(maps.Keys(a.missed))
	a.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for _, g := range asked {
		group.Go(func() error {
			a.heard(g, a.ask(ctx, g.external) == nil)
			return nil
		})
	}
	_ = group.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, missed := range a.missed {
		if missed > 0 {
			return askAgain
		}
	}
	return askEvery
}

// heard notes what a question came to, if the gateway is still to be asked.
func (a *asker) heard(g gateway, answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if missed, wanted := a.missed[g]; wanted {
		a.missed[g] = missed + 1
		if answered {
			a.missed[g] = 0
		}
	}
}
