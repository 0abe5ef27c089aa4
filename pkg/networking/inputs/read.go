package inputs

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/addressing"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// ErrIncomplete is what fails as long as something is not known without which nothing can be said.
var ErrIncomplete = errors.New("not known yet")

func incomplete(format string, args ...any) error {
	return fmt.Errorf(format+" is %w", append(args, ErrIncomplete)...)
}

// Seen returns the ranges of a peer and, in the same places, those under which this cluster sees them. While the peer changes its ranges these are
// the last ones that all had a place. It fails as long as there are none.
func Seen(configuration *networkingv1beta1.Configuration) (own, seen networkingv1beta1.ClusterConfigCIDR, err error) {
	switch status := configuration.Status; {
	case status.Remote != nil && status.Announced != nil:
		return status.Announced.CIDR, status.Remote.CIDR, nil
	case status.Remote != nil && current(configuration):
		return configuration.Spec.Remote.CIDR, status.Remote.CIDR, nil
	default:
		return own, seen, incomplete("how this cluster sees %s (Configuration)", configuration.Name)
	}
}

// current tells whether a status that does not say what it stands for, as an older version wrote it, is of the ranges that are announced now.
func current(configuration *networkingv1beta1.Configuration) bool {
	c := meta.FindStatusCondition(configuration.Status.Conditions, networkingv1beta1.NetworkCIDRsConfigured)
	return c == nil || c.Status == metav1.ConditionTrue && c.ObservedGeneration == configuration.Generation
}

// Mapping translates a peer's own addresses into those by which this cluster sees them. It fails as long as a range has no counterpart.
func Mapping(configuration *networkingv1beta1.Configuration) (addressing.Mapping, error) {
	own, seen, err := Seen(configuration)
	if err != nil {
		return addressing.Mapping{}, err
	}
	announced, err := own.Prefixes()
	if err != nil {
		return addressing.Mapping{}, err
	}
	given, err := seen.Prefixes()
	if err != nil {
		return addressing.Mapping{}, err
	}
	return addressing.Remap(announced, given)
}

// problems collects what is left out.
type problems []dataplane.Problem

func (p *problems) add(format string, args ...any) {
	*p = append(*p, dataplane.Problem{Kind: dataplane.ProblemInvalid, Message: fmt.Sprintf(format, args...)})
}

// address reads one that is given; false if it is left out.
func (p *problems) address(of string, text networkingv1beta1.IP) (netip.Addr, bool) {
	address, err := text.Addr()
	if err != nil {
		p.add("%s: %v", of, err)
	}
	return address, err == nil
}

// host reads the address of a node or a gateway; false if it is left out. Nothing reserved is one: the kernel
// refuses a route by most of them, and with it the whole pass.
func (p *problems) host(of string, text networkingv1beta1.IP) (netip.Addr, bool) {
	address, ok := p.address(of, text)
	if ok && addressing.Reserved(address) {
		p.add("%s: %s is no address of a node or a gateway", of, address)
		return netip.Addr{}, false
	}
	return address, ok
}

// accepted reads ranges that are, or are to be, a peer's.
func (p *problems) accepted(of string, ranges []networkingv1beta1.CIDR, protected addressing.Protected) []netip.Prefix {
	texts := make([]string, 0, len(ranges))
	for _, text := range ranges {
		texts = append(texts, string(text))
	}
	kept, refused := addressing.Accept(texts, protected)
	for _, why := range refused {
		p.add("%s: range %s", of, why)
	}
	return kept
}

// node reads an InternalNode; false if it has no address yet, or none that can be used.
func (p *problems) node(object *networkingv1beta1.InternalNode) (node dataplane.InternalNode, ok bool) {
	of := "InternalNode " + object.Name
	if object.Status.NodeIP.Remote == nil {
		return node, false
	}
	if node.VTEP, ok = p.host(of, *object.Status.NodeIP.Remote); !ok {
		return node, false
	}
	if node.External, ok = p.host(of, object.Spec.Interface.Node.IP); !ok {
		return node, false
	}
	for _, text := range object.Status.Addresses {
		if address, ok := p.host(of, text); ok {
			node.Addresses = append(node.Addresses, address)
		}
	}
	for _, text := range object.Status.PodRanges {
		prefix, err := text.Prefix()
		if err == nil && prefix.Bits() == 0 {
			err = fmt.Errorf("range %s is everything", prefix)
		}
		if err != nil {
			p.add("%s: %v", of, err)
			continue
		}
		node.Pods = append(node.Pods, prefix)
	}
	return node, true
}

// IPs are the IP resources by which peers reach something: of several for one address, the one that agents take.
func IPs(objects []ipamv1alpha1.IP) []dataplane.IP {
	var left problems
	return dataplane.UsableIPs(left.ips(objects))
}

// ips reads the IP resources that have an address.
func (p *problems) ips(objects []ipamv1alpha1.IP) (all []dataplane.IP) {
	for i := range objects {
		object := &objects[i]
		if object.Status.IP == "" {
			continue
		}
		of := fmt.Sprintf("IP %s/%s", object.Namespace, object.Name)
		address, ok := p.address(of, object.Spec.IP)
		if !ok {
			continue
		}
		external, ok := p.address(of, object.Status.IP)
		if !ok {
			continue
		}
		if addressing.Reserved(address) || addressing.Reserved(external) {
			p.add("%s: %s is no address that peers may reach as %s", of, address, external)
			continue
		}
		ip := dataplane.IP{Address: address, External: external, Masquerade: object.Spec.Masquerade != nil && *object.Spec.Masquerade}
		for _, port := range object.Spec.Ports {
			protocol := dataplane.TCP
			if port.Protocol == corev1.ProtocolUDP {
				protocol = dataplane.UDP
			}
			ip.Ports = append(ip.Ports, dataplane.Port{Protocol: protocol, Number: uint16(port.Port)}) //nolint:gosec // the schema bounds it
		}
		all = append(all, ip)
	}
	return all
}
