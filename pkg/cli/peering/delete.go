package peering

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/session"
)

const deleteSliceLong = `Give back what a provider granted to a ResourceSlice of this cluster. Its virtual nodes are
drained and removed first. It says which pods leave, and asks; --skip-confirm is for scripts.

With the last virtual node of a provider goes all that is offloaded there; that is refused while
volumes there hold data. The ResourceSlices of consumers are theirs: cordon them, or drain the tenant.`

const deleteNodeLong = `Drain and remove a virtual node. It says which pods leave, and asks; --skip-confirm is for scripts.

The ResourceSlice that it was made of keeps what it was granted, and is not made a virtual node of
again, until '{{ .Executable }} create virtualnode' or, for that of the peering, '{{ .Executable }} peer'. With
the last virtual node of a provider goes all that is offloaded there; that is refused while volumes
there hold data.`

func newDelete(s *session.Session) *cobra.Command {
	where := &place{}
	slice := deletion(s, where, share.Delete, complete.OwnSlices, "resourceslice")
	slice.Aliases, slice.Short, slice.Long = aliasesOfSlice, "Give back what a provider granted", deleteSliceLong
	node := deletion(s, where, share.DeleteNode, complete.VirtualNodes, "virtualnode")
	node.Aliases, node.Short, node.Long = aliasesOfNode, "Drain and remove a virtual node", deleteNodeLong
	parent := verb("delete", "Delete a ResourceSlice or a virtual node", "resourceslice|virtualnode", slice, node)
	where.addNamespace(s, parent)
	return parent
}

// deletion is what the commands that delete have in common.
func deletion(s *session.Session, where *place, run func(context.Context, share.DeleteOptions) error, source complete.Source, kind string) *cobra.Command {
	var timeout time.Duration
	command := &cobra.Command{
		Use: kind + " NAME", Args: cobra.ExactArgs(1), ValidArgsFunction: complete.Arguments(s.Local, source, 1),
		Example: "  {{ .Executable }} delete " + kind + " gpus\n\n" +
			"  # Without being asked\n  {{ .Executable }} delete " + kind + " gpus --remote-cluster-id milan --skip-confirm",
		RunE: func(command *cobra.Command, args []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			provider, err := where.peer()
			if err != nil {
				return err
			}
			cluster, err := s.Cluster()
			if err != nil {
				return err
			}
			return run(command.Context(), share.DeleteOptions{
				Cluster: cluster, Name: args[0], ProviderID: provider, Timeout: timeout, Confirm: s.Confirm, Observer: s.Observer(),
			})
		},
	}
	where.addPeer(s, command, "Cluster ID of the provider, where several have one of that name")
	s.TimeoutFlag(command.Flags(), &timeout, share.DefaultTimeout)
	return command
}
