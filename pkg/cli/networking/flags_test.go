package networking

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"liqo.io/liqo/pkg/cli/action/network"
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
