package configuration

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/writers"
)

// mostOwn is how many addresses a peer may have itself: as a range of /12 has, which is a sixteenth of the largest private range, and one of /16, its external
// range. More would leave no room for others: whatever a peer announces takes as much of the pools.
const mostOwn = 1<<20 + 1<<16

// Judge says what of an announcement keeps it from being a peer's; no error if nothing does.
func Judge(announced networkingv1beta1.ClusterConfigCIDR) error {
	texts := []string{}
	for _, cidr := range slices.Concat(announced.Pod, announced.External) {
		texts = append(texts, string(cidr))
	}
	accepted, refused := addressing.Accept(texts, addressing.Protected{})
	if len(refused) > 0 {
		return errors.New(strings.Join(refused, "; "))
	}
	if len(announced.Pod) == 0 {
		return errors.New("no range of pods is announced")
	}
	if len(accepted) != len(texts) {
		return errors.New("a range is announced twice")
	}
	for i := 1; i < len(accepted); i++ { // they are sorted: one that holds another comes right before it, or before others that it holds
		if accepted[i-1].Overlaps(accepted[i]) {
			return fmt.Errorf("%s and %s overlap each other", accepted[i-1], accepted[i])
		}
	}
	// The first external range is the peer's own, the others are of clusters behind it.
	first := min(1, len(announced.External))
	if own := addresses(slices.Concat(announced.Pod, announced.External[:first])); own > mostOwn {
		return fmt.Errorf("its own ranges have %d addresses together, more than %d, which ranges of /12 and /16 have", own, mostOwn)
	}
	if behind := addresses(announced.External[first:]); behind > mostCarried {
		return fmt.Errorf("the ranges of clusters behind it have %d addresses together, more than %d", behind, mostCarried)
	}
	return nil
}

// addresses is how many addresses ranges of IPv4 have together; no pool is filled by others.
func addresses(ranges []networkingv1beta1.CIDR) (sum uint64) {
	for _, text := range ranges {
		if prefix, err := text.Prefix(); err == nil && prefix.Addr().Is4() {
			sum += 1 << (32 - prefix.Bits())
		}
	}
	return sum
}

// isFilledIn tells whether it is this controller, and nobody else, who said in a Configuration where this cluster's pods are.
func isFilledIn(configuration *networkingv1beta1.Configuration) bool {
	return writers.Last(configuration.ManagedFields, []string{"spec", "local", "cidr", "pod"}, "") == string(fieldManager)
}

// wish is a Network that has to be made.
type wish struct {
	name string
	cidr networkingv1beta1.CIDR
}

// plan is what a Configuration has and lacks.
type plan struct {
	// make are Networks for ranges that have none; superfluous are Networks for ranges that are announced no more, and unseen those of them under
	// whose ranges the peer is not seen either.
	make                []wish
	superfluous, unseen []*ipamv1alpha1.Network
	// remote is what the peer is seen under; nil as long as a range is missing.
	remote *networkingv1beta1.ClusterConfig
	// waiting are announced ranges that have not been given one. Full is what a Network of them says that finds none free.
	waiting []string
	full    string
}

// decide compares what a peer announces with the Networks in the namespace of its Configuration.
func decide(configuration *networkingv1beta1.Configuration, peer string, networks []ipamv1alpha1.Network) plan {
	var p plan
	taken, byRange := map[string]bool{}, map[netip.Prefix]*ipamv1alpha1.Network{}
	for i := range networks {
		network := &networks[i]
		taken[network.Name] = true
		prefix, err := network.Spec.CIDR.Prefix()
		if err == nil && metav1.IsControlledBy(network, configuration) && network.DeletionTimestamp.IsZero() && byRange[prefix] == nil {
			byRange[prefix] = network
		}
	}
	remote := networkingv1beta1.ClusterConfig{}
	wanted := map[*ipamv1alpha1.Network]bool{}
	for _, kind := range []struct {
		name      string
		announced []networkingv1beta1.CIDR
		seen      *[]networkingv1beta1.CIDR
	}{
		{"pod", configuration.Spec.Remote.CIDR.Pod, &remote.CIDR.Pod},
		{"external", configuration.Spec.Remote.CIDR.External, &remote.CIDR.External},
	} {
		for _, cidr := range kind.announced {
			prefix, err := cidr.Prefix()
			if err != nil {
				continue // it was judged before
			}
			network := byRange[prefix]
			if network == nil {
				p.make = append(p.make, wish{freeName(peer+"-"+kind.name+"-", taken), networkingv1beta1.CIDR(prefix.String())})
				p.waiting = append(p.waiting, prefix.String())
				continue
			}
			wanted[network] = true
			*kind.seen = append(*kind.seen, p.given(network, prefix))
		}
	}
	if len(p.waiting) == 0 {
		p.remote = &remote
	}
	p.leave(configuration, networks, wanted)
	return p
}

// leave notes Networks of ranges that are announced no more.
func (p *plan) leave(configuration *networkingv1beta1.Configuration, networks []ipamv1alpha1.Network, wanted map[*ipamv1alpha1.Network]bool) {
	for i := range networks {
		if network := &networks[i]; metav1.IsControlledBy(network, configuration) && !wanted[network] && network.DeletionTimestamp.IsZero() {
			p.superfluous = append(p.superfluous, network)
			if !isSeen(configuration, network.Status.CIDR) {
				p.unseen = append(p.unseen, network)
			}
		}
	}
}

// isSeen tells whether a peer is seen under a range that one of its Networks was given.
func isSeen(configuration *networkingv1beta1.Configuration, given networkingv1beta1.CIDR) bool {
	remote := configuration.Status.Remote
	return remote != nil && given != "" && (slices.Contains(remote.CIDR.Pod, given) || slices.Contains(remote.CIDR.External, given))
}

// given is the range under which one of the peer is seen; what is not given yet is noted.
func (p *plan) given(network *ipamv1alpha1.Network, prefix netip.Prefix) networkingv1beta1.CIDR {
	if network.Status.CIDR == "" {
		p.waiting = append(p.waiting, prefix.String())
		ready := meta.FindStatusCondition(network.Status.Conditions, corev1beta1.ConditionReady)
		if ready != nil && ready.Reason == ipamv1alpha1.ReasonPoolExhausted {
			p.full = ready.Message
		}
	}
	return network.Status.CIDR
}

// freeName is the first name with a prefix that is not taken, which it is from then on.
func freeName(prefix string, taken map[string]bool) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("%s%d", prefix, i); !taken[name] {
			taken[name] = true
			return name
		}
	}
}
