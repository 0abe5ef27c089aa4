package peering

import (
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
)

// What is told to do next works from where the command ended, on the same clusters.
func TestNextAfterPeering(t *testing.T) {
	s := session.New(genericiooptions.NewTestIOStreamsDiscard(), "liqoctl", func(string) string { return "" })
	remote := target.NewFlags(true)
	*s.Local.Config.Context, *remote.Config.KubeConfig = "rome", "milan.yaml"
	pair := authenticate.Report{ConsumerID: "rome", ProviderID: "milan"}
	for sentence, test := range map[string]struct {
		report *peer.Report
		want   string
	}{
		"a virtual node": {&peer.Report{Report: pair, ResourceSlice: "milan", VirtualNode: "milan"},
			"rome uses resources of milan. Next: liqoctl offload namespace NAMESPACE --context rome"},
		"a namespace that is offloaded": {&peer.Report{Report: pair, ResourceSlice: "milan", VirtualNode: "milan", Offloaded: []string{"shop"}},
			"rome uses resources of milan, for 1 namespace (shop). Next: liqoctl info peer milan --context rome"},
		"many that are": {&peer.Report{Report: pair, ResourceSlice: "milan", VirtualNode: "milan", Offloaded: []string{"a", "b", "c", "d", "e", "f"}},
			"rome uses resources of milan, for 6 namespaces (a, b, c, d, e and 1 more). Next: liqoctl info peer milan --context rome"},
		"no virtual node": {&peer.Report{Report: pair, ResourceSlice: "milan"},
			"rome was granted resources of milan. To make a virtual node of them: liqoctl peer --context rome --remote-kubeconfig milan.yaml"},
		"no resource slice": {&peer.Report{Report: pair},
			"rome is authenticated with milan. To ask for resources: liqoctl peer --context rome --remote-kubeconfig milan.yaml"},
	} {
		if got := peered(s, test.report, remote); got != test.want {
			t.Errorf("%s: got %q, want %q", sentence, got, test.want)
		}
	}
}
