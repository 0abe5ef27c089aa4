package external

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/addressing"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// +kubebuilder:rbac:groups=ipam.liqo.io,resources=networks;ips,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=internalnodes;internalfabrics,verbs=get;list;watch

// pending is how long to wait for the external range, which takes a few calls.
const pending = 2 * time.Second

// Kind is what an object that has an address is.
type Kind string

// The kinds of objects that have addresses.
const (
	IP             Kind = "IP"
	InternalNode   Kind = "InternalNode"
	InternalFabric Kind = "InternalFabric"
)

// Holder is an object that has an address, or is to get one.
type Holder struct {
	Kind Kind
	types.NamespacedName
}

// Range returns this cluster's external range, and how many addresses at its beginning are given to nobody. The error says what is waited for
// as long as there is none.
func Range(ctx context.Context, reader client.Reader, namespace string) (netip.Prefix, int, error) {
	network, key := &ipamv1alpha1.Network{}, types.NamespacedName{Namespace: namespace, Name: ipamv1alpha1.NetworkTypeExternal}
	err := reader.Get(ctx, key, network)
	if client.IgnoreNotFound(err) != nil {
		return netip.Prefix{}, 0, fmt.Errorf("reading Network %s: %w", key, err)
	}
	prefix, invalid := network.Status.CIDR.Prefix()
	if apierrors.IsNotFound(err) || invalid != nil {
		return netip.Prefix{}, 0, reconcile.Wait(ipamv1alpha1.ReasonExternalRangePending, fmt.Sprintf("waiting for Network %s, the external range", key), pending)
	}
	return prefix, max(1, int(network.Spec.PreAllocated)), nil
}

// Ledger gives the addresses. Its zero value is not usable: see New.
type Ledger struct {
	live      client.Reader
	namespace string

	mu        sync.Mutex
	loaded    bool
	holders   map[netip.Addr]Holder
	addresses map[Holder]netip.Addr
}

// New makes a Ledger, which reads past the cache, for the external range of Liqo in a namespace.
func New(live client.Reader, namespace string) *Ledger {
	return &Ledger{live: live, namespace: namespace, holders: map[netip.Addr]Holder{}, addresses: map[Holder]netip.Addr{}}
}

// Give returns the address of a holder: the one that it has, the one that it claims to have if nobody else has it, or else a free one from its
// end of the range. The error is of class Waiting as long as there is no range.
func (l *Ledger) Give(ctx context.Context, holder Holder, claimed networkingv1beta1.IP) (netip.Addr, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(ctx); err != nil {
		return netip.Addr{}, err
	}
	if address, ok := l.addresses[holder]; ok {
		return address, nil
	}
	if address, err := claimed.Addr(); err == nil && l.note(holder, address) {
		return address, nil
	}
	prefix, first, err := Range(ctx, l.live, l.namespace)
	if err != nil {
		return netip.Addr{}, err
	}
	address, ok := free(prefix, first, holder.Kind != IP, func(a netip.Addr) bool { _, taken := l.holders[a]; return taken })
	if !ok {
		return netip.Addr{}, reconcile.Refuse(ipamv1alpha1.ReasonPoolExhausted,
			fmt.Errorf("the external range %s is full: %d addresses are given", prefix, len(l.holders)))
	}
	l.note(holder, address)
	return address, nil
}

// Release makes the address of a holder free again. The caller has seen, live, that the holder is gone.
func (l *Ledger) Release(holder Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if address, ok := l.addresses[holder]; ok {
		delete(l.addresses, holder)
		delete(l.holders, address)
	}
}

// note writes down who has an address; false if somebody else has it.
func (l *Ledger) note(holder Holder, address netip.Addr) bool {
	if other, taken := l.holders[address]; taken {
		return other == holder
	}
	l.holders[address], l.addresses[holder] = holder, address
	return true
}

// holding is an object that says that it has an address.
type holding struct {
	holder  Holder
	address networkingv1beta1.IP
	since   metav1.Time
	uid     types.UID
}

// load reads, once, who has which address.
func (l *Ledger) load(ctx context.Context) error {
	if l.loaded {
		return nil
	}
	ips, nodes, fabrics := &ipamv1alpha1.IPList{}, &networkingv1beta1.InternalNodeList{}, &networkingv1beta1.InternalFabricList{}
	for _, list := range []client.ObjectList{ips, nodes, fabrics} {
		if err := l.live.List(ctx, list); err != nil {
			return fmt.Errorf("listing who has addresses of the external range: %w", err)
		}
	}
	var all []holding
	add := func(kind Kind, object client.Object, address networkingv1beta1.IP) {
		all = append(all, holding{Holder{kind, client.ObjectKeyFromObject(object)}, address, object.GetCreationTimestamp(), object.GetUID()})
	}
	for i := range ips.Items {
		add(IP, &ips.Items[i], ips.Items[i].Status.IP)
	}
	for i := range nodes.Items {
		add(InternalNode, &nodes.Items[i], nodes.Items[i].Spec.Interface.Node.IP)
	}
	for i := range fabrics.Items {
		add(InternalFabric, &fabrics.Items[i], fabrics.Items[i].Spec.Interface.Gateway.IP)
	}
	slices.SortFunc(all, func(a, b holding) int {
		return cmp.Or(a.since.Compare(b.since.Time), cmp.Compare(a.uid, b.uid))
	})
	for _, one := range all {
		if address, err := one.address.Addr(); err == nil {
			l.note(one.holder, address)
		}
	}
	l.loaded = true
	return nil
}

// free finds the lowest or the highest free address of a range. The addresses before the first, and the last one, which is the broadcast
// address where there is one, are nobody's.
func free(prefix netip.Prefix, first int, fromTop bool, taken func(netip.Addr) bool) (netip.Addr, bool) {
	lowest := prefix.Masked().Addr()
	for range first {
		lowest = lowest.Next()
	}
	highest := addressing.Last(prefix).Prev()
	from, next := lowest, netip.Addr.Next
	if fromTop {
		from, next = highest, netip.Addr.Prev
	}
	for address := from; prefix.Contains(address) && address.Compare(lowest) >= 0 && address.Compare(highest) <= 0; address = next(address) {
		if !taken(address) {
			return address, true
		}
	}
	return netip.Addr{}, false
}
