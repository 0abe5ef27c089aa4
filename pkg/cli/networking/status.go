package networking

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
)

func newStatus(s *session.Session) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use: "status", Short: "Show how this cluster is connected to its peers",
		Long: `Show how the network of this cluster is connected to those of its peers: the state of each tunnel, where
the ranges of the peer are seen, and what is not as it should be.

It exits with code 4 if something is not.`,
		Example: `  {{ .Executable }} network status
  {{ .Executable }} network status -o json`, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := output.ParseFormat(format); err != nil {
				return err
			}
			cluster, err := s.Cluster()
			if err != nil {
				return err
			}
			status, err := network.ReadStatus(command.Context(), cluster)
			if err != nil {
				return err
			}
			if err := s.Show(format, status, func() { Render(s, status) }); err != nil {
				return err
			}
			return Verdict(status)
		},
	}
	s.Local.AddLiqoNamespace(command.Flags())
	s.OutputFlag(command, &format, "Write to standard output")
	return command
}

// Verdict turns what was seen into the exit code.
func Verdict(status *network.Status) error {
	var broken, ways []string
	for i := range status.Peers {
		peer := &status.Peers[i]
		if len(peer.Alerts) > 0 || peer.State != string(networkingv1beta1.Connected) && peer.State != network.Disconnected {
			broken, ways = append(broken, peer.ClusterID), append(ways, peer.Cure)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return failure.New(failure.Problems, failure.WayOut(ways), "the network does not work with %s", strings.Join(broken, ", "))
}

// Render shows the networks of a cluster to people, on standard output.
func Render(s *session.Session, status *network.Status) {
	page := output.NewPage(s.Streams.Out, s.Style())
	page.Section("Network of " + status.ClusterID)
	if !status.Enabled {
		page.Line("The network module is off")
	}
	if len(status.Peers) == 0 {
		page.Line("It is connected to no peer")
		return
	}
	rows := make([][]string, len(status.Peers))
	for i := range status.Peers {
		peer := &status.Peers[i]
		rows[i] = []string{
			peer.ClusterID, peer.State, dash(peer.Role), dash(peer.Endpoint.String()), dash(peer.Latency), dash(bytes(peer.MTU)), dash(since(peer)),
		}
	}
	page.Table([]string{"CLUSTER ID", "STATE", "ROLE", "SERVER", "LATENCY", "MTU", "ANSWERED"}, rows)
	for i := range status.Peers {
		peer := &status.Peers[i]
		page.Section("Peer " + peer.ClusterID)
		for _, r := range peer.Ranges {
			page.Field(cmp.Or(map[string]string{network.Pod: "Pods", network.External: "External"}[r.Kind], r.Kind), r.String())
		}
		for _, alert := range peer.Alerts {
			page.Field("Alert", alert)
		}
	}
}

func dash(text string) string { return cmp.Or(text, "-") }

func bytes(mtu int32) string {
	if mtu == 0 {
		return ""
	}
	return strconv.Itoa(int(mtu))
}

// since says when the other end answered last.
func since(peer *network.Peer) string {
	if peer.Answered == nil {
		return ""
	}
	return peer.Answered.UTC().Format("2006-01-02 15:04:05Z")
}
