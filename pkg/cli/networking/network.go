package networking

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/action/networktest"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
)

// Commands returns the family's commands.
func Commands(s *session.Session) []*cobra.Command {
	parent := &cobra.Command{
		Use: "network", Short: "Connect the networks of two clusters",
		Long: `Connect the networks of two clusters, so that their pods reach each other, and take the connection back.

'{{ .Executable }} peer' does it by itself. In both clusters the network module has to be on, as it is by default.
Flags may stand before the name of the sub-command that has them, or after it.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return failure.Misuse("liqoctl network connect|diff|disconnect|init|reset|status|test|trace", "say what to do with the network")
		},
	}
	parent.AddCommand(newInit(s), newConnect(s), newDisconnect(s), newReset(s), newStatus(s), newTrace(s), newTest(s, "test"), newDiff(s))
	// Their flags may stand before the sub-command's name, which cobra finds only if it knows which of them take a value.
	before := &pairFlags{}
	before.register(s, parent)
	parent.Flags().BoolVar(&before.wait, waitFlag, false, "Wait until everything is done")
	return []*cobra.Command{parent, newTestFamily(s)}
}

// pairFlags are what the commands on two networks have in common.
type pairFlags struct {
	remote                     *target.Flags
	namespace, remoteNamespace string
	format                     string
	timeout                    time.Duration
	skipValidation, wait       bool
}

const waitFlag = "wait"

// addTo registers the flags; waitFor says what --wait is for, where there is such a flag.
func (f *pairFlags) addTo(s *session.Session, command *cobra.Command, waitFor string) {
	f.register(s, command)
	if waitFor != "" {
		command.Flags().BoolVar(&f.wait, waitFlag, false, waitFor)
	}
	s.OutputFlag(command, &f.format, "Write what is in place to standard output")
}

// register registers the flags that Liqo v1 has on all of them.
func (f *pairFlags) register(s *session.Session, command *cobra.Command) {
	set := command.Flags()
	f.remote = target.NewFlags(true)
	f.remote.AddTo(set)
	s.Local.AddLiqoNamespace(set)
	f.remote.AddLiqoNamespace(set)
	set.StringVarP(&f.namespace, "namespace", "n", "", "The namespace of the network's objects: that of the peer, which need not be given")
	set.StringVar(&f.remoteNamespace, "remote-namespace", "",
		"The namespace of the network's objects: that of the peer, which need not be given (in the remote cluster)")
	s.CompleteCluster(command, f.remote)
	s.TimeoutFlag(set, &f.timeout, network.DefaultTimeout)
	set.BoolVar(&f.skipValidation, "skip-validation", false, "Go on although the versions of Liqo differ, and without looking at the templates of gateways")
}

// run calls one of the actions.
func (f *pairFlags) run(ctx context.Context, s *session.Session, settings network.Settings,
	action func(context.Context, network.Options) (*network.Report, error), say func(*network.Report) string,
) error {
	if err := session.Positive(f.timeout); err != nil {
		return err
	}
	local, remote, err := s.Clusters(f.remote)
	if err != nil {
		return err
	}
	report, err := action(ctx, network.Options{
		Local: local, Remote: remote, Namespace: f.namespace, RemoteNamespace: f.remoteNamespace, Settings: settings,
		SkipValidation: f.skipValidation, NoWait: !f.wait, Timeout: f.timeout, Confirm: s.Confirm, Observer: s.Observer(),
	})
	if err != nil {
		return err
	}
	return s.Show(f.format, report, func() { s.Say(say(report)) })
}

func newInit(s *session.Session) *cobra.Command {
	f := &pairFlags{}
	command := &cobra.Command{
		Use: "init", Short: "Tell two clusters the ranges of each other",
		Long: `Tell two clusters the address ranges of each other, and wait until each has a place for those of the other.

It is the first part of '{{ .Executable }} network connect'.`,
		Example: `  {{ .Executable }} network init --remote-kubeconfig ~/.kube/milan.yaml`, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.run(command.Context(), s, network.Settings{}, network.Init, func(*network.Report) string {
				return "The ranges are exchanged. Next: " + s.Next("network connect", f.remote)
			})
		},
	}
	f.addTo(s, command, "")
	return command
}

func newConnect(s *session.Session) *cobra.Command {
	f, gateway := &pairFlags{}, &Flags{}
	command := &cobra.Command{
		Use: "connect", Short: "Connect the networks of two clusters",
		Long: `Connect the networks of two clusters. The remote cluster gets the gateway server, this one the client that
goes to it; exchange the two to have it the other way round. Networks that are connected already stay
so, and run again it changes only what flags say otherwise.`,
		Example: `  # The remote cluster has load balancers
  {{ .Executable }} network connect --remote-kubeconfig ~/.kube/milan.yaml --wait

  # It has none, and its nodes can be reached
  {{ .Executable }} network connect --remote-context milan --gw-server-service-type NodePort`, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			settings, err := gateway.Settings(command.Flags())
			if err != nil {
				return err
			}
			return f.run(command.Context(), s, settings, connect, func(report *network.Report) string { return connected(s, report) })
		},
	}
	f.addTo(s, command, "Wait until the tunnel is up")
	gateway.AddTo(s, command)
	gateway.addTemplates(command.Flags())
	return command
}

// connect connects two networks and, if it waits for the tunnel, asks the nodes whether they reach it.
func connect(ctx context.Context, o network.Options) (*network.Report, error) {
	report, err := network.Connect(ctx, o)
	if err != nil || o.NoWait {
		return report, err
	}
	pair, err := target.RequirePair(ctx, o.Local, o.Remote, o.SkipValidation)
	if err != nil {
		return report, err
	}
	return report, networktest.Overlay(ctx, pair, nil, o.Observer)
}

// connected says how far a connection has come.
func connected(s *session.Session, report *network.Report) string {
	if report.Connected {
		return "The networks are connected."
	}
	return "The gateways are made. See whether they are connected: " + s.Next("network status", nil)
}

func newDisconnect(s *session.Session) *cobra.Command {
	return newPart(s, network.Disconnect, "disconnect", "Take the tunnel between two clusters back", `Take the tunnel between two clusters back.

Each keeps the ranges of the other, so that the two see each other as before once they are connected
again; gateways are then made as they were, unless flags say otherwise. It asks before;
--skip-confirm is for scripts.`, "disconnected")
}

func newReset(s *session.Session) *cobra.Command {
	return newPart(s, network.Reset, "reset", "Take the network of two clusters back as a whole",
		`Take the network of two clusters back as a whole: the tunnel, and the ranges that each knows of the other.

It asks before; --skip-confirm is for scripts.`, "reset")
}

// newPart is a command that takes something back.
func newPart(s *session.Session, action func(context.Context, network.Options) (*network.Report, error), name, short, long, done string) *cobra.Command {
	f := &pairFlags{}
	command := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		Example: `  {{ .Executable }} network ` + name + ` --remote-kubeconfig ~/.kube/milan.yaml`,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.run(command.Context(), s, network.Settings{}, action, func(report *network.Report) string {
				if !report.Changed {
					return "There was nothing to do."
				}
				return fmt.Sprintf("The network is %s.", done)
			})
		},
	}
	f.addTo(s, command, "Wait until everything is gone")
	return command
}
