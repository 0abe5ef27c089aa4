package install

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/cli/failure"
)

// Provider is who made the cluster.
type Provider string

// The providers.
const (
	// Auto finds the provider out.
	Auto Provider = ""
	// Generic is none of the others.
	Generic Provider = "generic"
	// Kubeadm runs the control plane in static pods.
	Kubeadm Provider = "kubeadm"
	// Kind runs nodes in containers; its API server is published on a loopback address.
	Kind Provider = "kind"
	// K3s runs the control plane in one process.
	K3s Provider = "k3s"
)

const (
	k3sPodCIDR     = "10.42.0.0/16"
	k3sServiceCIDR = "10.43.0.0/16"
	// Node ranges are widened to these lengths: the sizes that clusters are usually given as a whole.
	clusterBitsV4, clusterBitsV6 = 16, 56
)

// Wishes are what the user said, which is never overruled.
type Wishes struct {
	// Provider, Auto to find it out.
	Provider Provider
	// PodCIDRs, ServiceCIDR and APIServerURL; empty to find them out.
	PodCIDRs     []string
	ServiceCIDR  string
	APIServerURL string
	// NoSanityCheck lets APIServerURL differ from the kubeconfig's.
	NoSanityCheck bool
	// AddressElsewhere says that the API server's address comes from values, and need not be found out.
	AddressElsewhere bool
	// RangesElsewhere says the same of the ranges.
	PodCIDRsElsewhere, ServiceCIDRElsewhere bool
}

// Settings are what the chart has to know about the cluster.
type Settings struct {
	// Provider of the cluster.
	Provider Provider `json:"provider"`
	// PodCIDRs and ServiceCIDR of the cluster.
	PodCIDRs    []string `json:"podCIDRs"`
	ServiceCIDR string   `json:"serviceCIDR"`
	// APIServerURL by which peers reach the cluster; empty to leave it to the controller manager.
	APIServerURL string `json:"apiServerURL,omitempty"`
	// Sources say where each of the three comes from, for the user to judge: keys podCIDRs, serviceCIDR, apiServerURL.
	Sources map[string]string `json:"sources"`
}

// Detect decides the settings. An error says which flag answers what could not be found out.
func Detect(wishes Wishes, facts Facts) (Settings, error) {
	settings := Settings{Provider: wishes.Provider, Sources: map[string]string{}}
	if settings.Provider == Auto {
		settings.Provider = recognise(facts)
	}
	if err := settings.ranges(wishes, facts); err != nil {
		return settings, err
	}
	return settings, settings.address(wishes, facts)
}

// recognise tells the provider from its traces.
func recognise(facts Facts) Provider {
	for i := range facts.Nodes {
		node := &facts.Nodes[i]
		switch {
		case strings.HasPrefix(node.Spec.ProviderID, "kind://"):
			return Kind
		case strings.Contains(node.Status.NodeInfo.KubeletVersion, "+k3s"), node.Labels["node.kubernetes.io/instance-type"] == "k3s":
			return K3s
		}
	}
	if len(facts.Flags) > 0 {
		return Kubeadm
	}
	return Generic
}

func (s *Settings) ranges(wishes Wishes, facts Facts) error {
	s.PodCIDRs, s.Sources["podCIDRs"] = podCIDRs(s.Provider, wishes, facts)
	s.ServiceCIDR, s.Sources["serviceCIDR"] = serviceCIDR(s.Provider, wishes, facts)
	if len(s.PodCIDRs) == 0 && !wishes.PodCIDRsElsewhere {
		return failure.Unmet("give it with --pod-cidr, for example --pod-cidr 10.244.0.0/16", "the cluster's pod CIDR could not be detected")
	}
	if s.ServiceCIDR == "" && !wishes.ServiceCIDRElsewhere {
		return failure.Unmet("give it with --service-cidr, for example --service-cidr 10.96.0.0/12", "the cluster's service CIDR could not be detected")
	}
	return nil
}

func podCIDRs(provider Provider, wishes Wishes, facts Facts) (cidrs []string, source string) {
	if len(wishes.PodCIDRs) > 0 {
		return wishes.PodCIDRs, "--pod-cidr"
	}
	if value := flag(facts.Flags, "cluster-cidr"); value != "" {
		return strings.Split(value, ","), "kube-controller-manager"
	}
	if wide := widen(facts.Nodes); len(wide) > 0 {
		return wide, "the nodes' ranges, widened"
	}
	if provider == K3s {
		return []string{k3sPodCIDR}, "the default of k3s"
	}
	return nil, ""
}

func serviceCIDR(provider Provider, wishes Wishes, facts Facts) (cidr, source string) {
	if wishes.ServiceCIDR != "" {
		return wishes.ServiceCIDR, "--service-cidr"
	}
	if value := flag(facts.Flags, "service-cluster-ip-range"); value != "" {
		first, _, _ := strings.Cut(value, ",")
		return first, "kube-controller-manager"
	}
	if len(facts.ServiceCIDRs) > 0 {
		return facts.ServiceCIDRs[0], "ServiceCIDR kubernetes"
	}
	if provider == K3s {
		return k3sServiceCIDR, "the default of k3s"
	}
	return "", ""
}

// widen returns the ranges that the nodes' own ranges were most likely cut from, so that nodes to come are covered too.
func widen(nodes []corev1.Node) []string {
	var wide []netip.Prefix
	for i := range nodes {
		own := nodes[i].Spec.PodCIDRs
		if len(own) == 0 && nodes[i].Spec.PodCIDR != "" {
			own = []string{nodes[i].Spec.PodCIDR}
		}
		for _, text := range own {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				continue
			}
			bits := clusterBitsV4
			if prefix.Addr().Is6() {
				bits = clusterBitsV6
			}
			if cluster := netip.PrefixFrom(prefix.Addr(), min(bits, prefix.Bits())).Masked(); !slices.Contains(wide, cluster) {
				wide = append(wide, cluster)
			}
		}
	}
	slices.SortFunc(wide, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	texts := make([]string, len(wide))
	for i := range wide {
		texts[i] = wide[i].String()
	}
	return texts
}

// address decides what peers are told, which must not be an address that means something else to them.
func (s *Settings) address(wishes Wishes, facts Facts) error {
	const next = "say how other clusters reach it with --api-server-url https://ADDRESS:PORT"
	if wishes.APIServerURL != "" {
		s.APIServerURL, s.Sources["apiServerURL"] = wishes.APIServerURL, "--api-server-url"
		if why := whyNotReachable(wishes.APIServerURL); why != "" {
			return failure.Misuse(next, "--api-server-url %s: %s", wishes.APIServerURL, why)
		}
		if !wishes.NoSanityCheck && s.Provider != Kind && s.Provider != K3s && !sameServer(wishes.APIServerURL, facts.Server) {
			return failure.Unmet("if it is right nevertheless, add --disable-api-server-sanity-check",
				"--api-server-url %s is not the address in the kubeconfig, %s", wishes.APIServerURL, facts.Server)
		}
		return nil
	}
	if wishes.AddressElsewhere {
		return nil
	}
	why := whyNotReachable(facts.Server)
	if why == "" {
		s.APIServerURL, s.Sources["apiServerURL"] = facts.Server, "the kubeconfig"
		return nil
	}
	if address := controlPlane(facts.Nodes); address != "" && (s.Provider == Kind || s.Provider == K3s) {
		s.APIServerURL, s.Sources["apiServerURL"] = address, "the control plane node"
		return nil
	}
	return failure.Unmet(next, "the address of the API server in the kubeconfig, %s, cannot be used by other clusters: %s", facts.Server, why)
}

// whyNotReachable says why an address cannot be told to other clusters.
func whyNotReachable(raw string) string {
	address, err := url.Parse(raw)
	switch {
	case err != nil:
		return "it is not a URL"
	case address.Scheme != "https":
		return "it does not begin with https://"
	case address.Hostname() == "":
		return "it names no host"
	case address.User != nil || address.RawQuery != "" || address.Fragment != "":
		return "it must have nothing but host, port and path"
	case strings.EqualFold(address.Hostname(), "localhost"):
		return "localhost is another machine to them"
	}
	if ip, err := netip.ParseAddr(address.Hostname()); err == nil && (ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast()) {
		return "that address is another machine to them"
	}
	return ""
}

func sameServer(a, b string) bool {
	first, errFirst := url.Parse(a)
	second, errSecond := url.Parse(b)
	return errFirst == nil && errSecond == nil && first.Hostname() == second.Hostname() && port(first) == port(second)
}

func port(address *url.URL) string {
	if address.Port() == "" {
		return "443"
	}
	return address.Port()
}

// controlPlane is the address of the API server on the network that the nodes share.
func controlPlane(nodes []corev1.Node) string {
	for i := range nodes {
		_, role := nodes[i].Labels["node-role.kubernetes.io/control-plane"]
		if !role {
			continue
		}
		for _, address := range nodes[i].Status.Addresses {
			if ip, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
				return "https://" + netip.AddrPortFrom(ip, 6443).String()
			}
		}
	}
	return ""
}
