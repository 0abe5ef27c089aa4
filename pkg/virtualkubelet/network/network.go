// Package network is what a virtual kubelet knows of the network to its provider, by the objects of the network module: how this cluster sees the
// provider's pods, where these find this cluster's API server, and whether the tunnel works. Without the module it knows nothing, and addresses
// are what they are.
package network

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/kube/watching"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// defaultAPIPort is that of Service default/kubernetes.
const defaultAPIPort = 443

// Options of a Network.
type Options struct {
	// Enabled says that there is the network module. The rest is for where there is.
	Enabled bool
	// Client of this cluster, with the reflection account.
	Client client.WithWatch
	// Provider is the provider's ID; its Connections are in TenantNamespace. Where the API server is, the IP resources of LiqoNamespace say.
	Provider, TenantNamespace, LiqoNamespace string
	// Own are the ranges of this cluster's pods.
	Own []netip.Prefix
}

// Network is that to one provider. Make it with New.
type Network struct {
	// View is what is known.
	View    *latest.Value[View]
	options Options
}

// View is what is known of the network to a provider, as of now.
type View struct {
	// Peers are how this cluster sees its peers, Externals by which addresses peers reach what is no pod.
	Peers     translation.Peers
	Externals translation.Externals
	// peer is the last that was known of the provider; waiting says that it never was although there is a Configuration.
	peer    translation.Peer
	waiting bool
	// configured says that the Configurations were read, addressed that the IP resources were.
	configured, addressed bool
	server                netip.AddrPort
	// tunnel is what the gateway tells of the tunnel to the provider.
	tunnel node.Network
}

// New takes the options. Nothing is read before Run.
func New(o Options) *Network {
	return &Network{options: o, View: latest.New(View{configured: !o.Enabled, addressed: !o.Enabled})}
}

// Known tells whether it was read what there is.
func (v View) Known() bool { return v.configured && v.addressed }

// Run keeps what is known until the context ends.
func (n *Network) Run(ctx context.Context) {
	if !n.options.Enabled {
		return
	}
	c := n.options.Client
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		watching.All(ctx, c, &networkingv1beta1.Configuration{}, &networkingv1beta1.ConfigurationList{}, metav1.NamespaceAll,
			func(all []*networkingv1beta1.Configuration) { n.setConfigurations(ctx, all) })
	})
	group.Go(func() {
		watching.All(ctx, c, &networkingv1beta1.Connection{}, &networkingv1beta1.ConnectionList{}, n.options.TenantNamespace,
			func(all []*networkingv1beta1.Connection) { n.setConnections(all) })
	})
	watching.All(ctx, c, &ipamv1alpha1.IP{}, &ipamv1alpha1.IPList{}, metav1.NamespaceAll, n.setIPs)
}

// setConfigurations takes the Configurations of all peers. While that of the provider does not say how it is seen, what was known before stays.
func (n *Network) setConfigurations(ctx context.Context, all []*networkingv1beta1.Configuration) {
	peer, err := translation.Of(translation.Choose(all, n.options.Provider))
	if err != nil {
		klog.FromContext(ctx).Info("It is not known how this cluster sees the provider's addresses", "reason", err.Error())
	}
	n.View.Change(func(v *View) {
		v.Peers = translation.PeersOf(all)
		if err != nil {
			v.waiting = v.waiting || !v.configured
		} else {
			v.peer, v.waiting = peer, false
		}
		v.configured = true
	})
}

// setConnections takes the Connections of the tenant namespace. One that works is enough.
func (n *Network) setConnections(all []*networkingv1beta1.Connection) {
	tunnel := node.Network{Watched: true, Message: "the gateway has not told of its tunnel to the provider yet: there is no Connection"}
	all = slices.DeleteFunc(slices.Clone(all), func(c *networkingv1beta1.Connection) bool {
		return c.Labels[corev1beta1.RemoteClusterIDLabel] != n.options.Provider
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
	n.View.Change(func(v *View) { v.tunnel = tunnel })
}

// State is that of the network, for the Node. It is not watched over where the two clusters' ranges were not exchanged, or a VirtualNode
// does not want it.
func (v View) State(vn *offloadingv1beta1.VirtualNode) node.Network {
	if !v.peer.Known && !v.waiting || ptr.Deref(vn.Spec.DisableNetworkCheck, false) {
		return node.Network{}
	}
	return v.tunnel
}

// setIPs takes the IP resources of all namespaces. Of those of Liqo's namespace the first one that is the API server's and has an address
// counts; that it has none for a while changes nothing.
func (n *Network) setIPs(all []*ipamv1alpha1.IP) {
	every := make([]ipamv1alpha1.IP, 0, len(all))
	for _, ip := range all {
		every = append(every, *ip)
	}
	servers := slices.DeleteFunc(slices.Clone(all), func(ip *ipamv1alpha1.IP) bool {
		return ip.Namespace != n.options.LiqoNamespace || ip.Labels[ipamv1alpha1.IPTypeLabel] != ipamv1alpha1.IPTypeAPIServer || ip.Status.IP == ""
	})
	slices.SortFunc(servers, func(a, b *ipamv1alpha1.IP) int { return cmp.Compare(a.Name, b.Name) })
	n.View.Change(func(v *View) {
		v.Externals = translation.ExternalsOf(every, n.options.Own)
		for _, ip := range servers {
			if address, err := ip.Status.IP.Addr(); err == nil {
				v.server = netip.AddrPortFrom(address, portOf(ip))
				break
			}
		}
		v.addressed = true
	})
}

// portOf is where an API server answers.
func portOf(ip *ipamv1alpha1.IP) uint16 {
	if len(ip.Spec.Ports) > 0 {
		return uint16(ip.Spec.Ports[0].Port) //nolint:gosec // the schema bounds it
	}
	return defaultAPIPort
}

// unmapped are addresses that mean nothing here.
type unmapped struct{}

// Translate implements reflection.Addresses.
func (unmapped) Translate(netip.Addr) (netip.Addr, bool) { return netip.Addr{}, false }

// Apply has settings show addresses as this cluster sees them. What the provider announced itself does not count where a Configuration
// says which ranges are its pods'.
func (v View) Apply(s *pod.Settings) {
	s.Addresses = v.peer.Mapping
	switch {
	case v.waiting:
		s.Addresses = unmapped{}
	case v.peer.Known:
		s.PodPrefixes = v.peer.Pods
	}
}

// Tell tells how this cluster's addresses are reached from the provider, and what it calls ranges.
func (v View) Tell(p *reflection.Provider) {
	p.Addresses, p.Elsewhere, p.Ranges = v.Externals, v.Peers, v.peer
	if v.waiting {
		p.Ranges = translation.Peer{Known: true}
	}
}

// APIServer is the address that pods at the provider are told for this cluster's API server, as this cluster knows it: the provider
// translates it. It is invalid where no network leads there.
func (v View) APIServer() netip.AddrPort {
	if !v.peer.Known {
		return netip.AddrPort{}
	}
	return v.server
}
