package spec

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
)

const (
	// maxRealNodes bounds the addresses that one lab takes from its /24.
	maxRealNodes = 64
	// A routed lab's /24 has a /27 for each cluster, and one for the host.
	maxRoutedClusters = 7
	maxRoutedNodes    = 28
)

var (
	labName     = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)
	podSecurity = []string{"", "privileged", "baseline", "restricted"}
	networks    = []CNI{PTP, Flannel}
	proxyModes  = []ProxyMode{NFTables, IPTables}
)

// Validate returns every mistake of the declaration, one sentence each, joined.
// It expects a lab that went through Complete.
func (l Lab) Validate() error {
	var errs []error
	if !labName.MatchString(l.Name) {
		errs = append(errs, fmt.Errorf("lab name %q is not valid: use at most 20 lower-case letters, digits and dashes, starting with a letter", l.Name))
	}
	if len(l.Clusters) == 0 {
		errs = append(errs, errors.New("the lab has no cluster: declare at least one under clusters"))
	}
	names, real := map[string]bool{}, 0
	for _, c := range l.Clusters {
		if names[c.Name] {
			errs = append(errs, fmt.Errorf("two clusters are called %q: give each a name of its own", c.Name))
		}
		names[c.Name] = true
		errs = append(errs, c.validate()...)
		real += len(c.NodesOf(Real))
	}
	if real > maxRealNodes {
		errs = append(errs, fmt.Errorf("the lab has %d real nodes: at most %d fit on one machine's lab network", real, maxRealNodes))
	}
	if l.Flat {
		errs = append(errs, l.validateFlat()...)
	}
	if l.Routed {
		errs = append(errs, l.validateRouted()...)
	}
	if l.FlatServices {
		errs = append(errs, l.validateFlatServices()...)
	}
	return errors.Join(errs...)
}

func (l Lab) validateFlat() []error {
	var errs []error
	for i, a := range l.Clusters {
		if a.CNI == Flannel {
			errs = append(errs, fmt.Errorf("cluster %s: flat mode cannot route pods of flannel, which hides their addresses: use ptp or turn flat mode off", a.Name))
		}
		for _, b := range l.Clusters[i+1:] {
			if overlap(a.PodCIDR, b.PodCIDR) {
				errs = append(errs, fmt.Errorf(
					"flat mode cannot route the pods of %s (%s) and %s (%s) to each other because their ranges overlap: give them different pod CIDRs or turn flat mode off",
					a.Name, a.PodCIDR, b.Name, b.PodCIDR))
			}
		}
	}
	return errs
}

func (l Lab) validateRouted() []error {
	var errs []error
	if l.Flat {
		errs = append(errs, errors.New("routed and flat mode exclude each other: a router that knows pods is flat mode"))
	}
	if l.Simulated() {
		errs = append(errs, errors.New("routed mode needs real nodes: a simulated lab has no network"))
	}
	if len(l.Clusters) > maxRoutedClusters {
		errs = append(errs, fmt.Errorf("the lab has %d clusters: at most %d fit on a routed lab's network", len(l.Clusters), maxRoutedClusters))
	}
	for _, c := range l.Clusters {
		if nodes := len(c.NodesOf(Real)); nodes > maxRoutedNodes {
			errs = append(errs, fmt.Errorf("cluster %s: %d real nodes: at most %d fit on a routed lab's network", c.Name, nodes, maxRoutedNodes))
		}
	}
	return errs
}

func (l Lab) validateFlatServices() []error {
	if !l.Flat {
		return []error{errors.New("flatServices needs flat mode: a Service leads to pods")}
	}
	var errs []error
	for _, a := range l.Clusters {
		for _, b := range l.Clusters {
			if a.Name != b.Name && (overlap(a.ServiceCIDR, b.PodCIDR) || a.Name < b.Name && overlap(a.ServiceCIDR, b.ServiceCIDR)) {
				errs = append(errs, fmt.Errorf("flatServices cannot route the Services of %s (%s): the range overlaps with one of %s (%s, %s)",
					a.Name, a.ServiceCIDR, b.Name, b.PodCIDR, b.ServiceCIDR))
			}
		}
	}
	return errs
}

// overlap tells it of ranges that are given: that one is missing is said elsewhere.
func overlap(a, b netip.Prefix) bool { return a.IsValid() && b.IsValid() && a.Overlaps(b) }

func (c Cluster) validate() []error {
	var errs []error
	if !labName.MatchString(c.Name) {
		errs = append(errs, fmt.Errorf("cluster name %q is not valid: use at most 20 lower-case letters, digits and dashes, starting with a letter", c.Name))
	}
	errs = append(errs, c.validateRange("podCIDR", c.PodCIDR, 8, 24)...)
	errs = append(errs, c.validateRange("serviceCIDR", c.ServiceCIDR, 12, 26)...)
	if c.PodCIDR.IsValid() && c.ServiceCIDR.IsValid() && c.PodCIDR.Overlaps(c.ServiceCIDR) {
		errs = append(errs, fmt.Errorf("cluster %s: podCIDR %s and serviceCIDR %s overlap: choose ranges that do not", c.Name, c.PodCIDR, c.ServiceCIDR))
	}
	errs = append(errs, c.validateNodes()...)
	if !slices.Contains(podSecurity, c.APIServer.PodSecurity) {
		errs = append(errs, fmt.Errorf("cluster %s: podSecurity %q is unknown: use privileged, baseline or restricted", c.Name, c.APIServer.PodSecurity))
	}
	if slices.Contains(c.APIServer.EnableAdmission, "AlwaysPullImages") && len(c.NodesOf(Real)) > 0 {
		errs = append(errs, fmt.Errorf("cluster %s: AlwaysPullImages needs a registry and the lab has none: leave it out of enableAdmission", c.Name))
	}
	if !slices.Contains(networks, c.CNI) {
		errs = append(errs, fmt.Errorf("cluster %s: cni %q is unknown: use ptp or flannel", c.Name, c.CNI))
	}
	if c.WithoutNodeCIDRs && c.CNI == Flannel {
		errs = append(errs, fmt.Errorf("cluster %s: flannel reads the ranges of pods in Nodes: leave out withoutNodeCIDRs or use ptp", c.Name))
	}
	if !slices.Contains(proxyModes, c.ProxyMode) {
		errs = append(errs, fmt.Errorf("cluster %s: proxyMode %q is unknown: use nftables or iptables", c.Name, c.ProxyMode))
	}
	errs = append(errs, c.validateIngress()...)
	if p := c.APIServer.Port; p < 0 || p > 65535 {
		errs = append(errs, fmt.Errorf("cluster %s: port %d is not a port: use 1 to 65535, or leave it out", c.Name, p))
	}
	return errs
}

func (c Cluster) validateRange(field string, p netip.Prefix, shortest, longest int) []error {
	switch {
	case !p.IsValid():
		return []error{fmt.Errorf("cluster %s: %s is missing: give an IPv4 range such as 10.10.0.0/16", c.Name, field)}
	case !p.Addr().Is4():
		return []error{fmt.Errorf("cluster %s: %s %s is not IPv4: the lab's networks are IPv4, give a range such as 10.10.0.0/16", c.Name, field, p)}
	case p != p.Masked():
		return []error{fmt.Errorf("cluster %s: %s %s has bits set after its prefix: write %s", c.Name, field, p, p.Masked())}
	case p.Bits() < shortest || p.Bits() > longest:
		return []error{fmt.Errorf("cluster %s: %s %s has an unusable size: use /%d to /%d", c.Name, field, p, shortest, longest)}
	}
	return nil
}

func (c Cluster) validateIngress() []error {
	switch {
	case c.IngressClass == "":
		return nil
	case !labName.MatchString(c.IngressClass):
		return []error{fmt.Errorf("cluster %s: ingressClass %q is not valid: use at most 20 lower-case letters, digits and dashes, starting with a letter", c.Name, c.IngressClass)}
	case len(c.NodesOf(Real)) == 0 || c.WithoutControllerManager || c.WithoutScheduler:
		return []error{fmt.Errorf("cluster %s: ingressClass needs a real node, a controller manager and a scheduler, because the ingress controller is a pod", c.Name)}
	}
	return nil
}

func (c Cluster) validateNodes() []error {
	var errs []error
	names := map[string]bool{}
	for _, n := range c.Nodes {
		if n.Kind != Real && n.Kind != Simulated {
			errs = append(errs, fmt.Errorf("cluster %s: node kind %q is unknown: use real or simulated", c.Name, n.Kind))
		}
		if n.Count < 0 || n.Count > 1 {
			errs = append(errs, fmt.Errorf("cluster %s: node %q has a name and count %d: leave the name out to get several nodes", c.Name, n.Name, n.Count))
		}
		if names[n.Name] {
			errs = append(errs, fmt.Errorf("cluster %s: two nodes are called %q: give each a name of its own", c.Name, n.Name))
		}
		names[n.Name] = true
	}
	if c.PodCIDR.IsValid() && len(c.NodesOf(Real)) > 1<<max(0, c.NodeMask()-c.PodCIDR.Bits()) {
		errs = append(errs, fmt.Errorf("cluster %s: podCIDR %s is too small for %d nodes: use a larger range", c.Name, c.PodCIDR, len(c.NodesOf(Real))))
	}
	return errs
}
