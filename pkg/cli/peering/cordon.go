package peering

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/cordon"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/session"
)

const cordonTenantLong = `Let a consumer keep what it has in this cluster, its provider, and get nothing new: no pods,
no namespaces and no grants. What runs goes on, and may shrink.`

const uncordonTenantLong = `Let a consumer that was cordoned get new pods, namespaces and grants in this cluster again.
ResourceSlices that are cordoned themselves stay so.`

const drainTenantLong = `Take a consumer's rights in this cluster, its provider, and stop its pods here. It says what stops,
and asks; --skip-confirm is for scripts.

Pods get the time to end that their grace period gives them. What the consumer stores in
volumes here stays, and so do its namespaces; ResourceSlices and grants go. At the consumer the
pods fail, and those that something controls are made again, where there is room for them.

'{{ .Executable }} activate tenant' gives the rights back.`

const activateTenantLong = `Give a consumer its rights in this cluster back, whether it was drained or cordoned. It gets a
certificate again, and asks for its grants by itself. A peering that was revoked stays so until the
clusters are peered again.`

const cordonSliceLong = `Let the pods of a consumer's ResourceSlice go on in this cluster, its provider, and take no new
ones. At the consumer the virtual node gets a taint, so that pods go elsewhere. A consumer that
deletes the ResourceSlice and makes it again has the cordon again.`

const uncordonSliceLong = `Take new pods of a consumer's ResourceSlice again. They still stay out while the whole tenant is
cordoned, which is told then.`

// aliases of v1.
var (
	aliasesOfTenant = []string{"tenants"}
	aliasesOfSlice  = []string{"resourceslices", "rs"}
	aliasesOfNode   = []string{"virtualnodes", "vn"}
)

func newCordon(s *session.Session) *cobra.Command {
	return verb("cordon", "Give a consumer, or a ResourceSlice, nothing new", "tenant|resourceslice",
		onTenant(s, aliasesOfTenant, cordon.Cordon, "cordon", "Let a consumer keep what it has and get nothing new", cordonTenantLong),
		onSlice(s, true, "cordon", "Take no new pods of a consumer's ResourceSlice", cordonSliceLong))
}

func newUncordon(s *session.Session) *cobra.Command {
	return verb("uncordon", "Lift the cordon of a consumer, or of a ResourceSlice", "tenant|resourceslice",
		onTenant(s, aliasesOfTenant, cordon.Uncordon, "uncordon", "Let a consumer that was cordoned get something new again", uncordonTenantLong),
		onSlice(s, false, "uncordon", "Take new pods of a consumer's ResourceSlice again", uncordonSliceLong))
}

func newDrain(s *session.Session) *cobra.Command {
	return verb("drain", "Take back what a consumer has, but its data", "tenant",
		onTenant(s, nil, cordon.Drain, "drain", "Take a consumer's rights and stop its pods", drainTenantLong))
}

func newActivate(s *session.Session) *cobra.Command {
	return verb("activate", "Give a consumer its rights back", "tenant",
		onTenant(s, nil, cordon.Activate, "activate", "Give a consumer its rights back", activateTenantLong))
}

// verb is a command that needs to be told what it is about.
func verb(name, short, kinds string, on ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		return failure.Misuse("liqoctl "+name+" "+kinds+" NAME", "say what to %s", name)
	}}
	parent.AddCommand(on...)
	return parent
}

func onTenant(s *session.Session, aliases []string, change cordon.Change, name, short, long string) *cobra.Command {
	command := on(s, func(ctx context.Context, o cordon.Options) error { return cordon.Tenant(ctx, o, change) })
	command.Use, command.Aliases, command.Short, command.Long = "tenant NAME", aliases, short, long
	command.Example = "  {{ .Executable }} " + name + " tenant rome"
	command.ValidArgsFunction = complete.Arguments(s.Local, complete.Tenants, 1)
	return command
}

func onSlice(s *session.Session, cordoned bool, name, short, long string) *cobra.Command {
	command := on(s, func(ctx context.Context, o cordon.Options) error { return cordon.Slice(ctx, o, cordoned) })
	command.Use, command.Aliases, command.Short, command.Long = "resourceslice NAME", aliasesOfSlice, short, long
	command.Example = "  {{ .Executable }} " + name + " resourceslice milan\n\n  # Several consumers have one of that name\n" +
		"  {{ .Executable }} " + name + " resourceslice milan --remote-cluster-id rome"
	command.ValidArgsFunction = complete.Arguments(s.Local, complete.ConsumersSlices, 1)
	return command
}

// on is what the commands on one object of a consumer have in common.
func on(s *session.Session, run func(context.Context, cordon.Options) error) *cobra.Command {
	var consumer string
	var timeout time.Duration
	command := &cobra.Command{
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			cluster, err := s.Cluster()
			if err != nil {
				return err
			}
			return run(command.Context(), cordon.Options{
				Cluster: cluster, Name: args[0], ConsumerID: consumer, Timeout: timeout, Confirm: s.Confirm, Observer: s.Observer(),
			})
		},
	}
	set := command.Flags()
	s.Local.AddNamespace(set)
	set.StringVar(&consumer, "remote-cluster-id", "", "Cluster ID of the consumer, where several have one of that name")
	s.CompletePeer(command, "remote-cluster-id")
	s.TimeoutFlag(set, &timeout, cordon.DefaultTimeout)
	return command
}
