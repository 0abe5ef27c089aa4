package networktest

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/target"
)

// A consumer's pod may have Liqo's own labels. 'liqoctl network diff' starts no program in it, and believes nothing that it prints: gateways run
// in tenant namespaces alone, agents of nodes in Liqo's.
func TestDifferencesAreNotAskedOfAConsumersPod(t *testing.T) {
	gateway := map[string]string{networkingv1beta1.GatewayComponentLabel: gatewayComponent}
	fabric := map[string]string{target.ComponentLabel: target.FabricComponent, target.PartOfLabel: target.Liqo}
	cluster := fixture.New(t, fixture.Options{Name: "kind-milan", ClusterID: "milan", Networking: true, Objects: []client.Object{
		agentPodOf("liqo-tenant-rome", "gw-rome-1", "node-1", gateway), agentPodOf("liqo", "liqo-fabric-1", "node-1", fabric),
		// What became of ShadowPods.
		agentPodOf("shop-rome", "evil", "node-1", gateway), agentPodOf("my-liqo-tenant-rome", "evil-too", "node-1", gateway), agentPodOf("liqo-rome", "evil-agent", "node-1", fabric),
	}})
	for _, repair := range []bool{false, true} {
		agents := &pods{differ: map[string]string{}}
		for _, name := range []string{"evil", "evil-too", "evil-agent"} {
			agents.differ[name] = "+ what the consumer likes the administrator to read\n"
		}
		got, err := Diff(t.Context(), Options{Local: cluster.Cluster, Repair: repair, Streams: func(*target.Cluster) Streams { return agents }})
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range agents.asked {
			if strings.HasPrefix(asked, "evil") {
				t.Errorf("a program was started in the consumer's pod, with the administrator's rights to exec: %s", asked)
			}
		}
		for _, d := range got {
			t.Errorf("the administrator is shown of %s: %q", d.Pod, d.Lines)
		}
		if len(agents.asked) != 4 {
			t.Errorf("asked were %q", agents.asked)
		}
	}
}
