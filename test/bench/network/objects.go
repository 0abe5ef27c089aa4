package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// external is the external range of both clusters.
const external = "10.70.0.0/16"

func (s *side) tenant() string { return corev1beta1.TenantNamespacePrefix + s.peer }

func (s *side) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.tenant(), Name: name, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: s.peer}}
}

// create creates an object, with its status.
func (s *side) create(ctx context.Context, o client.Object, status func()) error {
	if err := s.api.Client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	if status == nil {
		return nil
	}
	status()
	if err := s.api.Client.Status().Update(ctx, o); err != nil {
		return fmt.Errorf("writing the status of %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

func cidrs(prefixes ...netip.Prefix) (all []networkingv1beta1.CIDR) {
	for _, p := range prefixes {
		all = append(all, networkingv1beta1.CIDR(p.String()))
	}
	return all
}

// write makes the objects of the peering, in both clusters.
func (a *agents) write() error {
	for _, s := range a.sides {
		if err := s.create(a.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.tenant()}}, nil); err != nil {
			return err
		}
		own := networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
			Pod: cidrs(s.cluster.pods), External: cidrs(netip.MustParsePrefix(external)),
		}}
		configuration := &networkingv1beta1.Configuration{ObjectMeta: s.named(s.peer), Spec: networkingv1beta1.ConfigurationSpec{Local: &own, Remote: own}}
		far := tunnelOf(agentsWorld, s.name).other.Public()
		err := errors.Join(
			s.create(a.ctx, configuration, func() {
				configuration.Status.Remote = &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
					Pod: cidrs(seen[s.name].Seen), External: cidrs(netip.MustParsePrefix("10.71.0.0/16")),
				}}
			}),
			s.create(a.ctx, &networkingv1beta1.PublicKey{ObjectMeta: s.named(s.peer), Spec: networkingv1beta1.PublicKeySpec{PublicKey: far[:]}}, nil),
			s.create(a.ctx, s.gatewayObject(), nil),
			s.fabricNamed(a.ctx, s.peer, s.fabrics(scale{})[0]),
		)
		if err != nil {
			return err
		}
		for i, node := range s.nodes(scale{}) {
			if err := s.node(a.ctx, []string{firstNode, secondNode}[i], node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *side) gatewayObject() client.Object {
	if s.name == there {
		return &networkingv1beta1.GatewayServer{ObjectMeta: s.named(s.peer), Spec: networkingv1beta1.GatewayServerSpec{
			Endpoint: networkingv1beta1.Endpoint{Port: tunnelPort},
		}}
	}
	endpoint := tunnelOf(agentsWorld, s.name).endpoint
	return &networkingv1beta1.GatewayClient{ObjectMeta: s.named(s.peer), Spec: networkingv1beta1.GatewayClientSpec{
		Endpoint: networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{networkingv1beta1.Host(endpoint.Addr().String())}, Port: networkingv1beta1.Port(endpoint.Port())},
	}}
}

// fabric makes the object of a gateway to another peer.
func (s *side) fabric(ctx context.Context, f dataplane.InternalFabric) error {
	return s.fabricNamed(ctx, "peer-"+strings.ReplaceAll(f.Gateway.String(), ".", "-"), f)
}

func (s *side) fabricNamed(ctx context.Context, name string, f dataplane.InternalFabric) error {
	o := &networkingv1beta1.InternalFabric{ObjectMeta: s.named(name)}
	o.Spec.GatewayIP = networkingv1beta1.IP(f.Gateway.String())
	o.Spec.Interface.Gateway.IP = "10.70.255.252"
	o.Spec.RemoteCIDRs, o.Spec.MTU = cidrs(f.Remote...), networkingv1beta1.MTU(f.MTU)
	return s.create(ctx, o, nil)
}

// node makes the object of a node, as the controller of nodes does in two steps.
func (s *side) node(ctx context.Context, name string, n dataplane.InternalNode) error {
	o := &networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.Interface.Node.IP = networkingv1beta1.IP(n.External.String())
	return s.create(ctx, o, func() {
		address := networkingv1beta1.IP(n.VTEP.String())
		o.Status.NodeIP = networkingv1beta1.InternalNodeStatusNodeIP{Local: &address, Remote: &address}
		o.Status.PodRanges = cidrs(n.Pods...)
	})
}

func (s *side) ip(ctx context.Context, name string, external, address netip.Addr) error {
	o := &ipamv1alpha1.IP{ObjectMeta: metav1.ObjectMeta{Namespace: s.tenant(), Name: name}, Spec: ipamv1alpha1.IPSpec{IP: networkingv1beta1.IP(address.String())}}
	return s.create(ctx, o, func() { o.Status.IP = networkingv1beta1.IP(external.String()) })
}

// holds tells whether a set of our firewall in a namespace has an address. The firewall is what agents change last when something is added.
func (s *side) holds(at *space, set string, address netip.Addr) func() (bool, error) {
	return func() (bool, error) {
		conn, err := nftables.New(nftables.WithNetNSFd(int(at.file.Fd())))
		if err != nil {
			return false, err
		}
		table := &nftables.Table{Name: dataplane.FirewallTable, Family: nftables.TableFamilyIPv4}
		found, err := conn.GetSetByName(table, set)
		if err != nil {
			return false, err
		}
		elements, err := conn.GetSetElements(found)
		is := func(e nftables.SetElement) bool { return string(e.Key) == string(address.AsSlice()) && !e.IntervalEnd }
		return slices.ContainsFunc(elements, is), errors.Join(err, fmt.Errorf("set %s has no %s", set, address))
	}
}
