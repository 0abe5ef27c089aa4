package main

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/kube/watching"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// unmapped is the plan of addresses that mean nothing here.
const unmapped = "none"

// defaultAPIPort is that of Service default/kubernetes.
const defaultAPIPort = 443

// network is what the network module knows of the provider: how this cluster sees its pods, and where they find this cluster's API server.
// Without the module it knows nothing, and addresses are what they are.
type network struct {
	// changed is called when pods are to be shown anew.
	changed func(context.Context)
	// known is closed once it was read what there is.
	known chan struct{}

	mu sync.Mutex
	// peer is the last that was known; waiting says that it never was although there is a Configuration.
	peer    translation.Peer
	waiting bool
	// configured says that the Configurations were read, addressed that the IP resources were.
	configured, addressed bool
	server                netip.AddrPort
	// tunnel is what the gateway tells of the tunnel to the provider.
	tunnel node.Network
}

func newNetwork(enabled bool, changed func(context.Context)) *network {
	n := &network{changed: changed, known: make(chan struct{})}
	if !enabled {
		close(n.known)
	}
	return n
}

// followNetwork keeps what is known of the network until the context ends.
func (k *kubelet) followNetwork(ctx context.Context) {
	if !k.flags.networking {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		watching.All(ctx, k.watching, &networkingv1beta1.Configuration{}, &networkingv1beta1.ConfigurationList{}, metav1.NamespaceAll,
			func(all []*networkingv1beta1.Configuration) {
				k.mirror.setPeers(translation.PeersOf(all))
				k.network.setConfigurations(ctx, all, k.flags.foreignCluster)
			})
	})
	group.Go(func() {
		watching.All(ctx, k.watching, &networkingv1beta1.Connection{}, &networkingv1beta1.ConnectionList{}, k.flags.tenantNamespace,
			func(all []*networkingv1beta1.Connection) { k.network.setConnections(ctx, all, k.flags.foreignCluster) })
	})
	watching.All(ctx, k.watching, &ipamv1alpha1.IP{}, &ipamv1alpha1.IPList{}, metav1.NamespaceAll, k.setIPs)
}

// setIPs takes the IP resources of all namespaces. Where the API server is, those of Liqo's namespace alone say.
func (k *kubelet) setIPs(all []*ipamv1alpha1.IP) {
	every := make([]ipamv1alpha1.IP, 0, len(all))
	for _, ip := range all {
		every = append(every, *ip)
	}
	k.mirror.setExternals(translation.ExternalsOf(every, k.own))
	k.network.setIPs(slices.DeleteFunc(all, func(ip *ipamv1alpha1.IP) bool { return ip.Namespace != k.flags.liqoNamespace }))
}

// setConfigurations takes the Configurations of all peers. While that of the provider does not say how it is seen, what was known before stays.
func (n *network) setConfigurations(ctx context.Context, all []*networkingv1beta1.Configuration, provider string) {
	peer, err := translation.Of(translation.Choose(all, provider))
	n.mu.Lock()
	if err != nil {
		klog.FromContext(ctx).Info("It is not known how this cluster sees the provider's addresses", "reason", err.Error())
		n.waiting = n.waiting || !n.configured
	} else {
		n.peer, n.waiting = peer, false
	}
	n.configured = true
	n.inform()
	n.mu.Unlock()
	n.changed(ctx)
}

// setConnections takes the Connections of the tenant namespace. One that works is enough.
func (n *network) setConnections(ctx context.Context, all []*networkingv1beta1.Connection, provider string) {
	tunnel := node.Network{Watched: true, Message: "the gateway has not told of its tunnel to the provider yet: there is no Connection"}
	all = slices.DeleteFunc(slices.Clone(all), func(c *networkingv1beta1.Connection) bool {
		return c.Labels[corev1beta1.RemoteClusterIDLabel] != provider
	})
	tunnel.Down = len(all) > 0
	for _, c := range all {
		tunnel.Connected = tunnel.Connected || c.Status.Value == networkingv1beta1.Connected
		tunnel.Down = tunnel.Down && c.Status.Value == networkingv1beta1.ConnectionError
		tunnel.Message = "the tunnel to the provider does not work"
		if ready := meta.FindStatusCondition(c.Status.Conditions, corev1beta1.ConditionReady); ready != nil && ready.Message != "" {
			tunnel.Message += ": " + ready.Message
		}
	}
	n.mu.Lock()
	n.tunnel = tunnel
	n.mu.Unlock()
	n.changed(ctx)
}

// state is that of the network, for the Node. It is not watched over where the two clusters' ranges were not exchanged, or a VirtualNode
// does not want it.
func (n *network) state(vn *offloadingv1beta1.VirtualNode) node.Network {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.peer.Known && !n.waiting || ptr.Deref(vn.Spec.DisableNetworkCheck, false) {
		return node.Network{}
	}
	return n.tunnel
}

// setIPs takes the IP resources of Liqo's namespace. The first one that is the API server's and has an address counts; that it has none for
// a while changes nothing.
func (n *network) setIPs(all []*ipamv1alpha1.IP) {
	servers := slices.DeleteFunc(slices.Clone(all), func(ip *ipamv1alpha1.IP) bool {
		return ip.Labels[ipamv1alpha1.IPTypeLabel] != ipamv1alpha1.IPTypeAPIServer || ip.Status.IP == ""
	})
	slices.SortFunc(servers, func(a, b *ipamv1alpha1.IP) int { return cmp.Compare(a.Name, b.Name) })
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, ip := range servers {
		if address, err := ip.Status.IP.Addr(); err == nil {
			n.server = netip.AddrPortFrom(address, portOf(ip))
			break
		}
	}
	n.addressed = true
	n.inform()
}

// portOf is where an API server answers.
func portOf(ip *ipamv1alpha1.IP) uint16 {
	if len(ip.Spec.Ports) > 0 {
		return uint16(ip.Spec.Ports[0].Port) //nolint:gosec // the schema bounds it
	}
	return defaultAPIPort
}

// inform says that all is known, once it is. The caller locks.
func (n *network) inform() {
	if n.configured && n.addressed {
		closeOnce(n.known)
	}
}

// apply has settings show addresses as this cluster sees them. What the provider announced itself does not count where a Configuration
// says which ranges are its pods'.
func (n *network) apply(s *pod.Settings) {
	n.mu.Lock()
	defer n.mu.Unlock()
	peer := n.peer
	s.Addresses = peer.Translate
	switch {
	case n.waiting:
		s.Addresses = func(netip.Addr) (netip.Addr, bool) { return netip.Addr{}, false }
		s.AddressPlan = unmapped
	case peer.Known:
		s.PodPrefixes, s.AddressPlan = peer.Pods, peer.String()
	}
}

// apiServer is the address that pods at the provider are told for this cluster's API server, as this cluster knows it: the provider
// translates it. It is invalid where no network leads there.
func (n *network) apiServer() netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.peer.Known {
		return netip.AddrPort{}
	}
	return n.server
}
