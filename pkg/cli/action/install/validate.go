package install

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
)

// CheckRanges compares the settings with the addresses that are in use: a range that is wrong would have peers refuse the
// addresses of pods.
func CheckRanges(settings Settings, reserved []string, facts Facts) error {
	var pods []netip.Prefix
	for _, text := range settings.PodCIDRs {
		prefix, err := parseCIDR("pod CIDR", text, "--pod-cidr ")
		if err != nil {
			return err
		}
		if other := overlapping(prefix, pods); other.IsValid() {
			return failure.Misuse("correct --pod-cidr", "the pod CIDRs %s and %s overlap", other, prefix)
		}
		pods = append(pods, prefix)
	}
	for _, text := range reserved {
		if _, err := parseCIDR("reserved subnet", text, "--reserved-subnets "); err != nil {
			return err
		}
	}
	if settings.ServiceCIDR == "" {
		return checkPods(pods, facts.Pods)
	}
	service, err := parseCIDR("service CIDR", settings.ServiceCIDR, "--service-cidr ")
	if err != nil {
		return err
	}
	if other := overlapping(service, pods); other.IsValid() {
		return failure.Unmet("correct them with --pod-cidr and --service-cidr", "the pod CIDR %s and the service CIDR %s overlap", other, service)
	}
	if err := checkPods(pods, facts.Pods); err != nil {
		return err
	}
	return checkServices(service, facts.Services)
}

// Ranges are what the network module gives addresses from, and what it keeps free of peers.
type Ranges struct {
	// External and Internal range of the cluster; empty to have a free one found.
	External, Internal string
	// Pools that peers are seen in, and Reserved ranges that nothing is given from.
	Pools, Reserved []string
}

// CheckNetwork compares the ranges of the network module with those that the cluster uses already.
func CheckNetwork(ranges Ranges, settings Settings, facts Facts) error {
	for _, pool := range ranges.Pools {
		if _, err := parseCIDR("pool", pool, "--set ipam.pools[0]="); err != nil {
			return err
		}
	}
	type owned struct {
		what string
		cidr netip.Prefix
	}
	var used []owned
	for _, group := range []struct {
		what  string
		cidrs []string
	}{{"pod CIDR", settings.PodCIDRs}, {"service CIDR", []string{settings.ServiceCIDR}}, {"reserved subnet", ranges.Reserved}} {
		for _, text := range group.cidrs {
			if cidr, err := netip.ParsePrefix(text); err == nil {
				used = append(used, owned{group.what, cidr})
			}
		}
	}
	for i := range facts.Nodes {
		for _, address := range facts.Nodes[i].Status.Addresses {
			if ip, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
				used = append(used, owned{"address of node " + facts.Nodes[i].Name, netip.PrefixFrom(ip, ip.BitLen())})
			}
		}
	}
	for _, own := range []struct{ what, text, value string }{
		{"external CIDR", ranges.External, "ipam.externalCIDR"}, {"internal CIDR", ranges.Internal, "ipam.internalCIDR"},
	} {
		if own.text == "" {
			continue
		}
		cidr, err := parseCIDR(own.what, own.text, "--set "+own.value+"=")
		if err != nil {
			return err
		}
		for _, other := range used {
			if cidr.Overlaps(other.cidr) {
				return failure.Unmet("choose another one with --set "+own.value+"=CIDR, or leave it out to have a free one found",
					"the %s %s and the %s %s overlap", own.what, cidr, other.what, strings.TrimSuffix(other.cidr.String(), "/32"))
			}
		}
		used = append(used, owned{own.what, cidr})
	}
	return nil
}

// CheckFamily refuses ranges of pods that the network module carries nothing to.
func CheckFamily(pods []string) error {
	four := func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Addr().Is4()
	}
	if len(pods) == 0 || slices.ContainsFunc(pods, four) {
		return nil
	}
	return failure.Unmet("name a range of IPv4 with --pod-cidr, or install with --set networking.enabled=false",
		"the network module carries IPv4 alone, and the pod CIDR is %s", strings.Join(pods, ", "))
}

// parseCIDR reads a range; flag is what it was given by, with what stands between flag and value.
func parseCIDR(what, text, flag string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return prefix, failure.Misuse("write it as ADDRESS/LENGTH, for example "+flag+"10.0.0.0/16", "the %s %q is not a CIDR", what, text)
	}
	if prefix != prefix.Masked() {
		return prefix, failure.Misuse("write it as "+flag+prefix.Masked().String(), "the %s %s has host bits set", what, text)
	}
	return prefix, nil
}

func overlapping(prefix netip.Prefix, others []netip.Prefix) netip.Prefix {
	for _, other := range others {
		if prefix.Overlaps(other) {
			return other
		}
	}
	return netip.Prefix{}
}

func checkPods(ranges []netip.Prefix, pods []corev1.Pod) error {
	if len(ranges) == 0 {
		return nil
	}
	for i := range pods {
		pod := &pods[i]
		_, elsewhere := pod.Labels[offloadingv1beta1.LocalPodLabel]
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		ip, err := netip.ParseAddr(pod.Status.PodIP)
		if pod.Spec.HostNetwork || elsewhere || finished || err != nil {
			continue
		}
		if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(ip) }) && sameFamily(ranges, ip) {
			return failure.Unmet("give the right ranges with --pod-cidr (repeat it for several), or add --skip-validation",
				"pod %s/%s has the address %s, which is not in the pod CIDR %s", pod.Namespace, pod.Name, ip, join(ranges))
		}
	}
	return nil
}

func checkServices(service netip.Prefix, services []corev1.Service) error {
	for i := range services {
		ip, err := netip.ParseAddr(services[i].Spec.ClusterIP)
		if err != nil || service.Contains(ip) || ip.Is4() != service.Addr().Is4() {
			continue
		}
		return failure.Unmet("give the right range with --service-cidr, or add --skip-validation",
			"service %s/%s has the address %s, which is not in the service CIDR %s", services[i].Namespace, services[i].Name, ip, service)
	}
	return nil
}

// sameFamily tells whether any range is of the address's family: a cluster with two families may be given by one of them.
func sameFamily(ranges []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Addr().Is4() == ip.Is4() })
}

func join(ranges []netip.Prefix) string {
	text := ""
	for i, prefix := range ranges {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(prefix)
	}
	return text
}
