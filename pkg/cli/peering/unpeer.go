package peering

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/identity"
)

const unpeerLong = `Stop using resources of another cluster.

The virtual nodes of the provider are drained and removed, what was offloaded is taken
back, and both clusters forget each other. Both clusters must answer, and you need the
rights for all of it in both. It is refused while volumes at the provider hold data, unless
--delete-volumes is given. It says what goes, and asks; --skip-confirm is for scripts.

With --force only this cluster is needed: everything of the peer with the given cluster
ID is removed here, whether it was the provider or the consumer, although it is dead or
took the rights of this cluster back. The claims whose data is there stay, and are named.
A peer that answers and lets this cluster work is not given up: what it has of this
cluster is removed in order, and volumes there that hold data are a reason to refuse.
So are those of a consumer here, unless --delete-volumes is given.`

const unpeerExample = `  # End the peering with the provider
  {{ .Executable }} unpeer --remote-kubeconfig ~/.kube/milan.yaml

  # The other cluster will never come back
  {{ .Executable }} unpeer --force milan`

type unpeerFlags struct {
	remote                  *target.Flags
	timeout                 time.Duration
	wait, namespaces, force bool
	volumes                 bool
	format                  string
}

func newUnpeer(s *session.Session) *cobra.Command {
	f := &unpeerFlags{remote: target.NewFlags(true)}
	command := &cobra.Command{
		Use: "unpeer [CLUSTER_ID]", Short: "Stop using resources of another cluster", Long: unpeerLong, Example: unpeerExample,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: complete.Arguments(s.Local, complete.ClusterIDs, 1),
		RunE: func(command *cobra.Command, args []string) error { return f.run(s, command, args) },
	}
	set := command.Flags()
	s.Local.AddNamespace(set)
	f.remote.AddNamespace(set)
	f.remote.AddTo(set)
	s.CompleteCluster(command, f.remote)
	s.TimeoutFlag(set, &f.timeout, unpeer.DefaultTimeout)
	s.OutputFlag(command, &f.format, "Write what is left to standard output")
	set.BoolVar(&f.wait, "wait", true, "Wait until everything is gone")
	set.BoolVar(&f.namespaces, "delete-namespaces", false, "Delete the tenant namespaces too")
	deleteVolumesFlag(set, &f.volumes)
	set.BoolVar(&f.force, "force", false, "End the peering with the given cluster from this side alone, because the other is dead")
	return command
}

func (f *unpeerFlags) run(s *session.Session, command *cobra.Command, args []string) error {
	if err := session.Positive(f.timeout); err != nil {
		return err
	}
	if f.force {
		switch {
		case len(args) == 0:
			return failure.Misuse("liqoctl unpeer --force CLUSTER_ID", "the cluster ID of the dead peer is missing")
		case f.remote.Given():
			return failure.Misuse("leave the --remote- flags out, or leave --force out if both clusters answer", "--force needs no remote cluster")
		}
		return forceUnpeer(s, command, args[0], f.timeout, f.volumes, f.format)
	}
	if len(args) > 0 {
		return failure.Misuse("name the other cluster with --remote-kubeconfig or --remote-context, or add --force if it is dead",
			"a cluster ID (%s) is only taken with --force", args[0])
	}
	consumer, provider, err := s.Clusters(f.remote)
	if err != nil {
		return err
	}
	report, err := unpeer.Run(command.Context(), unpeer.Options{
		Consumer: consumer, Provider: provider, DeleteNamespaces: f.namespaces, DeleteVolumes: f.volumes, NoWait: !f.wait, Timeout: f.timeout,
		Confirm: s.Confirm, Observer: s.Observer(),
	})
	if err != nil {
		return errors.Join(err, residueOf(s, f.format, report))
	}
	return s.Show(f.format, report, func() {
		s.Say(fmt.Sprintf("%s no longer uses resources of %s.", report.ConsumerID, report.ProviderID))
	})
}

// residueOf writes the report of an unpeering that failed, where programs asked for it.
func residueOf(s *session.Session, format string, report *unpeer.Report) error {
	if report == nil {
		return nil
	}
	return s.Show(format, report, func() {})
}

func forceUnpeer(s *session.Session, command *cobra.Command, peerID string, timeout time.Duration, volumes bool, format string) error {
	if err := identity.ValidateClusterID(peerID); err != nil {
		return failure.Misuse("list the peers with 'liqoctl info'", "%w", err)
	}
	cluster, err := s.Cluster()
	if err != nil {
		return err
	}
	report, err := unpeer.Force(command.Context(), unpeer.ForceOptions{
		Cluster: cluster, PeerID: peerID, DeleteVolumes: volumes, Timeout: timeout, Confirm: s.Confirm, Observer: s.Observer(),
	})
	if err != nil {
		return errors.Join(err, residueOf(s, format, report))
	}
	return s.Show(format, report, func() { s.Say("Nothing is left of " + peerID + " in this cluster.") })
}

func deleteVolumesFlag(set *pflag.FlagSet, volumes *bool) {
	set.BoolVar(volumes, "delete-volumes", false, "Also lose the data of volumes at the provider: their claims are deleted")
}

func newForce(s *session.Session) *cobra.Command {
	parent := &cobra.Command{
		Use: "force", Short: "Do something although the other cluster is dead", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return failure.Misuse("liqoctl force unpeer CLUSTER_ID", "say what to force")
		},
	}
	var timeout time.Duration
	var volumes bool
	var format string
	command := &cobra.Command{
		Use: "unpeer CLUSTER_ID", Short: "End the peering with a dead cluster from this side alone",
		Long:    "End the peering with a dead cluster from this side alone. The same as {{ .Executable }} unpeer --force.",
		Example: `  {{ .Executable }} force unpeer milan`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: complete.Arguments(s.Local, complete.ClusterIDs, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			return forceUnpeer(s, command, args[0], timeout, volumes, format)
		},
	}
	s.Local.AddNamespace(command.Flags())
	s.TimeoutFlag(command.Flags(), &timeout, unpeer.DefaultTimeout)
	s.OutputFlag(command, &format, "Write what is left to standard output")
	deleteVolumesFlag(command.Flags(), &volumes)
	parent.AddCommand(command)
	return parent
}
