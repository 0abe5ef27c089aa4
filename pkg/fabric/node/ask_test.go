package node

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// A node asks the gateways that it has a way to, and not one that says that it waits: that one answers nobody, and nothing is wrong between them.
func TestWhoIsAsked(t *testing.T) {
	way := []dataplane.InternalFabric{{Gateway: netip.MustParseAddr("10.244.1.200"), External: netip.MustParseAddr("10.70.255.254")}}
	for sentence, test := range map[string]struct {
		change func(*networkingv1beta1.InternalFabric)
		want   []string
	}{
		"a gateway":                            {func(*networkingv1beta1.InternalFabric) {}, []string{"milan"}},
		"one that waits for its peer's key":    {func(f *networkingv1beta1.InternalFabric) { f.Spec.Waiting = true }, nil},
		"one whose pod the node has no way to": {func(f *networkingv1beta1.InternalFabric) { f.Spec.GatewayIP = "10.244.1.201" }, nil},
		"one that has lost its pod":            {func(f *networkingv1beta1.InternalFabric) { f.Spec.GatewayIP = "0.0.0.0" }, nil},
	} {
		fabric := newFabric(1380)
		test.change(fabric)
		var got []string
		for _, g := range gatewaysOf([]networkingv1beta1.InternalFabric{*fabric}, way) {
			got = append(got, g.peer)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", sentence, diff)
		}
	}
}
