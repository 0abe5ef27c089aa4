package peering

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/revoke"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/session"
)

const revokeLong = `Take away the reach that a peer has into this cluster, because its identity was stolen
or it is not to be trusted any more. Only this cluster is needed; the peer is not asked.

If the peer is a consumer, all of its certificates lose their rights here within seconds.
What it runs here goes on. '{{ .Executable }} peer' makes it a new key and gives the rights to that;
whoever copied an earlier certificate has none.

If the peer is a provider, this cluster does not talk to it any more. Its virtual nodes go
with their pods, and with the pods the tokens that it was given; pods that something
controls are made again elsewhere. What runs or is stored there is given up, and what was
reflected there, such as Secrets, is there: change what is secret.

In both cases the tunnel between the networks of the two clusters is cut. The ranges that
this cluster knows of the peer stay, for the next '{{ .Executable }} peer', which makes the
gateway as it was, such as with a node port, unless its flags say otherwise.`

const revokeExample = `  # A certificate of consumer rome was stolen
  {{ .Executable }} revoke --remote-cluster-id rome
  {{ .Executable }} peer --context rome --remote-context milan

  # Provider milan was broken into
  {{ .Executable }} revoke --context rome --remote-cluster-id milan`

func newRevoke(s *session.Session) *cobra.Command {
	var peerID, format string
	var timeout time.Duration
	command := &cobra.Command{
		Use: "revoke --remote-cluster-id CLUSTER_ID", Short: "Take away the reach that a peer has into this cluster", Long: revokeLong, Example: revokeExample,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			if peerID == "" {
				return failure.Misuse("list the peers with 'liqoctl info'", "--remote-cluster-id is missing")
			}
			cluster, err := s.Cluster()
			if err != nil {
				return err
			}
			report, err := revoke.Run(command.Context(), revoke.Options{
				Cluster: cluster, PeerID: peerID, Timeout: timeout, Confirm: s.Confirm, Observer: s.Observer(),
			})
			if err != nil && report != nil {
				return errors.Join(err, s.Show(format, report, func() {}))
			}
			if err != nil {
				return err
			}
			return s.Show(format, report, func() { s.Say(peerID + " has no reach into this cluster any more.") })
		},
	}
	set := command.Flags()
	s.Local.AddNamespace(set)
	set.StringVar(&peerID, "remote-cluster-id", "", "Cluster ID of the peer")
	s.CompletePeer(command, "remote-cluster-id")
	s.TimeoutFlag(set, &timeout, revoke.DefaultTimeout)
	s.OutputFlag(command, &format, "Write what was taken from whom to standard output")
	return command
}
