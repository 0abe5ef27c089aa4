package networking

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/action/networktest"
	"liqo.io/liqo/pkg/cli/session"
)

func TestZeroIsAskedForToo(t *testing.T) {
	zero := network.Settings{
		NodePort: ptr.To[int32](0), LoadBalancerIP: ptr.To(""), ClientAddress: ptr.To(""), ClientPort: ptr.To[int32](0), MTU: ptr.To[int32](0), Transit: ptr.To(false),
	}
	cases := map[string]struct {
		args []string
		want network.Settings
	}{
		"nothing": {nil, network.Settings{}},
		"zeros": {[]string{
			"--gw-server-service-nodeport=0", "--gw-server-service-loadbalancerip=", "--gw-client-address=", "--gw-client-port=0", "--mtu=0", "--transit=false",
		}, zero},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			f, command := &Flags{}, &cobra.Command{}
			f.AddTo(session.New(genericiooptions.NewTestIOStreamsDiscard(), "liqoctl", func(string) string { return "" }), command)
			if err := command.ParseFlags(test.args); err != nil {
				t.Fatal(err)
			}
			got, err := f.Settings(command.Flags())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNextAfterADiff(t *testing.T) {
	differs := networktest.Difference{Cluster: "rome", Pod: "liqo/liqo-fabric-1", Lines: "- a rule\n"}
	deaf := networktest.Difference{Cluster: "milan", Pod: "liqo-tenant-rome/gw-rome-1", Unknown: "the agent does not answer"}
	for sentence, test := range map[string]struct {
		all      []networktest.Difference
		repaired bool
		want     string
	}{
		"something differs":        {[]networktest.Difference{deaf, differs}, false, "have the agents try again: run the same command with --repair"},
		"and after the repair":     {[]networktest.Difference{differs}, true, "see what the agent says, in cluster rome: kubectl logs -n liqo liqo-fabric-1"},
		"one that does not answer": {[]networktest.Difference{deaf}, false, "see what the agent says, in cluster milan: kubectl logs -n liqo-tenant-rome gw-rome-1"},
	} {
		if got := nextOfDiff(test.all, test.repaired); got != test.want {
			t.Errorf("%s: got %q, want %q", sentence, got, test.want)
		}
	}
	s := session.New(genericiooptions.NewTestIOStreamsDiscard(), "liqoctl", func(string) string { return "" })
	*s.Local.Config.Context = "rome"
	if got, want := connected(s, &network.Report{}), "The gateways are made. See whether they are connected: liqoctl network status --context rome"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
