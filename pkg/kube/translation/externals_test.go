package translation

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// given is an IP resource; without an external address it waits for one.
func given(address, external networkingv1beta1.IP) ipamv1alpha1.IP {
	return ipamv1alpha1.IP{Spec: ipamv1alpha1.IPSpec{IP: address}, Status: ipamv1alpha1.IPStatus{IP: external}}
}

func TestExternals(t *testing.T) {
	own := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00::/56")}
	for name, tc := range map[string]struct {
		ips []ipamv1alpha1.IP
		// told is what peers are told of 192.168.7.7, 10.244.2.2 and fd07::7.
		told []string
	}{
		"no IP resource":      {nil, []string{"192.168.7.7", "10.244.2.2", "fd07::7"}},
		"one":                 {[]ipamv1alpha1.IP{given("192.168.7.7", "10.70.0.3")}, []string{"10.70.0.3", "10.244.2.2", "fd07::7"}},
		"one that waits":      {[]ipamv1alpha1.IP{given("192.168.7.7", "")}, []string{"192.168.7.7", "10.244.2.2", "fd07::7"}},
		"another one":         {[]ipamv1alpha1.IP{given("192.168.7.8", "10.70.0.3")}, []string{"192.168.7.7", "10.244.2.2", "fd07::7"}},
		"a pod":               {[]ipamv1alpha1.IP{given("10.244.2.2", "10.70.0.3")}, []string{"192.168.7.7", "10.244.2.2", "fd07::7"}},
		"of the other family": {[]ipamv1alpha1.IP{given("fd07::7", "10.70.0.3")}, []string{"192.168.7.7", "10.244.2.2", "fd07::7"}},
		"what is none":        {[]ipamv1alpha1.IP{given("192.168.7", "10.70.0.3"), given("192.168.7.7", "10.70")}, []string{"192.168.7.7", "10.244.2.2", "fd07::7"}},
		// As agents do: the lower one leads there, the higher one nowhere.
		"two for one address": {[]ipamv1alpha1.IP{given("192.168.7.7", "10.70.0.9"), given("192.168.7.7", "10.70.0.3")}, []string{"10.70.0.3", "10.244.2.2", "fd07::7"}},
		"one for two":         {[]ipamv1alpha1.IP{given("192.168.7.7", "10.70.0.3"), given("192.168.7.6", "10.70.0.3")}, []string{"192.168.7.7", "10.244.2.2", "fd07::7"}},
	} {
		t.Run(name, func(t *testing.T) {
			externals := ExternalsOf(tc.ips, own)
			var told []string
			for _, address := range []string{"192.168.7.7", "10.244.2.2", "fd07::7"} {
				external, ok := externals.Translate(netip.MustParseAddr(address))
				if !ok {
					t.Errorf("%s is not reached", address)
				}
				told = append(told, external.String())
			}
			if diff := cmp.Diff(tc.told, told); diff != "" {
				t.Error(diff)
			}
			backwards := slices.Clone(tc.ips)
			slices.Reverse(backwards)
			if other := ExternalsOf(backwards, own); !reflect.DeepEqual(externals, other) {
				t.Errorf("%v is %v the other way round", externals, other)
			}
		})
	}
	// No address stands for the metadata service of a cloud.
	if externals := ExternalsOf([]ipamv1alpha1.IP{given("169.254.169.254", "10.70.0.3")}, nil); len(externals) > 0 {
		t.Errorf("peers are told of %v", externals)
	}
}
