package gateway

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

const (
	// maxEndpoints is how many addresses are tried.
	maxEndpoints = 64
	// resolving is how long names may take.
	resolving = 5 * time.Second
)

// endpoints are the addresses of the other end, one of which is used.
type endpoints struct {
	all  []netip.AddrPort
	used int
}

// current is the one that is used; none if there are none.
func (e *endpoints) current() netip.AddrPort {
	if len(e.all) == 0 {
		return netip.AddrPort{}
	}
	return e.all[e.used]
}

// next goes to the next one.
func (e *endpoints) next() {
	if len(e.all) > 0 {
		e.used = (e.used + 1) % len(e.all)
	}
}

// take takes addresses over. The one that is used stays it, if it is among them. Names that have no addresses take none away.
func (e *endpoints) take(all []netip.AddrPort) {
	if len(all) == 0 {
		return
	}
	used := max(slices.Index(all, e.current()), 0)
	e.all, e.used = all, used
}

// target is where a client was told to go.
type target struct {
	hosts []networkingv1beta1.Host
	port  uint16
}

func (t target) same(other target) bool {
	return t.port == other.port && slices.Equal(t.hosts, other.hosts)
}

// resolve finds the addresses of a target, in its order, those of IPv4 of a name first. A peer says where its gateway is: what is no host's
// address is left out.
func resolve(ctx context.Context, t target, lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)) []netip.AddrPort {
	ctx, cancel := context.WithTimeout(ctx, resolving)
	defer cancel()
	var all []netip.AddrPort
	for _, host := range t.hosts {
		found := []netip.Addr{}
		if address, err := netip.ParseAddr(string(host)); err == nil {
			found = append(found, address)
		} else if found, err = lookup(ctx, "ip", string(host)); err != nil {
			continue
		}
		slices.SortFunc(found, func(a, b netip.Addr) int { return a.Unmap().Compare(b.Unmap()) })
		for _, address := range found {
			endpoint := netip.AddrPortFrom(address.Unmap(), t.port)
			if endpoint.Addr().IsGlobalUnicast() && endpoint.Addr().Zone() == "" && !slices.Contains(all, endpoint) {
				all = append(all, endpoint)
			}
		}
	}
	return all[:min(len(all), maxEndpoints)]
}

// resolver resolves names one after the other, while others work.
type resolver struct {
	asked chan target
	found chan []netip.AddrPort
}

func newResolver() *resolver { return &resolver{make(chan target, 1), make(chan []netip.AddrPort, 1)} }

// ask has a target resolved, instead of what waits for it.
func (r *resolver) ask(t target) {
	select {
	case <-r.asked:
	default:
	}
	r.asked <- t
}

// run resolves until the context ends.
func (r *resolver) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-r.asked:
			select {
			case r.found <- resolve(ctx, t, net.DefaultResolver.LookupNetIP):
			case <-ctx.Done():
			}
		}
	}
}
