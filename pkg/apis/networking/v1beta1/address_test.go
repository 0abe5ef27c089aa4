package v1beta1

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPrefixes(t *testing.T) {
	for name, tc := range map[string]struct {
		ranges ClusterConfigCIDR
		want   []string
		failed string
	}{
		"none":                            {want: []string{}},
		"pods come first, in their order": {ranges: ClusterConfigCIDR{External: []CIDR{"10.70.0.0/16", "10.1.0.0/16"}, Pod: []CIDR{"10.244.0.0/16", "fd00::/48"}}, want: []string{"10.244.0.0/16", "fd00::/48", "10.70.0.0/16", "10.1.0.0/16"}},
		"bits beyond the length":          {ranges: ClusterConfigCIDR{Pod: []CIDR{"10.244.3.1/16"}}, want: []string{"10.244.0.0/16"}},
		"an external range that is none": {ranges: ClusterConfigCIDR{Pod: []CIDR{"10.244.0.0/16"}, External: []CIDR{"10.70.0.0"}},
			failed: `reading range "10.70.0.0": netip.ParsePrefix("10.70.0.0"): no '/'`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.ranges.Prefixes()
			if text := words(err); text != tc.failed {
				t.Errorf("fails with %q, want %q", text, tc.failed)
			}
			var want []netip.Prefix
			for _, prefix := range tc.want {
				want = append(want, netip.MustParsePrefix(prefix))
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("other ranges (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddr(t *testing.T) {
	for text, failed := range map[IP]string{
		"10.0.0.1": "",
		"fd00::1":  "",
		"":         `reading address "": ParseAddr(""): unable to parse IP`,
		"10.0.0":   `reading address "10.0.0": ParseAddr("10.0.0"): IPv4 address too short`,
	} {
		got, err := text.Addr()
		if words(err) != failed {
			t.Errorf("%q fails with %q, want %q", text, words(err), failed)
		}
		if err == nil && got.String() != string(text) {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
