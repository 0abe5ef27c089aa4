package networking

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqo.io/liqo/pkg/cli/action/networktest"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
)

const testLong = `Find out what is wrong with the network between this cluster and its peers, and say it in one sentence.

It looks at what the objects of the network say, whether keys and ranges fit, whether gateways and agents
run, whether the kernel has what they want, whether the tunnel works and how large packets may be, and
has every node ask pods of the other cluster. Nothing is changed, and no pod is started.

Without the other cluster (--remote-kubeconfig or --remote-context) each peer is looked at from this side.
It exits with code 4 if something does not work.`

const testExample = `  # As far as this cluster knows
  {{ .Executable }} network test

  # Both sides
  {{ .Executable }} network test --remote-kubeconfig ~/.kube/milan.yaml

  # As Liqo v1 calls it, and several peers
  {{ .Executable }} test network -p milan.yaml,naples.yaml`

// testFlags are those of network test and network diff.
type testFlags struct {
	remote      *target.Flags
	kubeconfigs []string
	timeout     time.Duration
	format      string
}

func newTest(s *session.Session, use string, aliases ...string) *cobra.Command {
	f := &testFlags{remote: target.NewFlags(true)}
	command := &cobra.Command{
		Use: use, Aliases: aliases, Short: "Find out what is wrong with the network between two clusters", Long: testLong, Example: testExample, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := f.options(s)
			if err != nil {
				return err
			}
			report, err := networktest.Test(command.Context(), o)
			if err != nil {
				return err
			}
			if err := s.Show(f.format, report, func() { renderTest(s, report) }); err != nil {
				return err
			}
			if first := report.First(); first != nil {
				return failure.New(failure.Problems, first.Next, "%s", first.Message)
			}
			if skipped := report.Skipped(); len(skipped) > 0 {
				s.Say("The network works as far as it could be checked; not checked: " + strings.Join(skipped, ", ") + ".")
				return nil
			}
			s.Say("The network works.")
			return nil
		},
	}
	f.addTo(s, command)
	return command
}

func (f *testFlags) addTo(s *session.Session, command *cobra.Command) {
	set := command.Flags()
	f.remote.AddTo(set)
	s.Local.AddLiqoNamespace(set)
	f.remote.AddLiqoNamespace(set)
	s.CompleteCluster(command, f.remote)
	set.StringSliceVarP(&f.kubeconfigs, "remote-kubeconfigs", "p", nil, "Kubeconfigs of several peers")
	s.OutputFlag(command, &f.format, "Write what was found to standard output")
	s.TimeoutFlag(set, &f.timeout, networktest.DefaultTimeout)
}

func (f *testFlags) options(s *session.Session) (o networktest.Options, err error) {
	if err := session.Positive(f.timeout); err != nil {
		return o, err
	}
	if _, err := output.ParseFormat(f.format); err != nil {
		return o, err
	}
	o.Timeout = f.timeout
	if f.remote.Given() {
		var remote *target.Cluster
		if o.Local, remote, err = s.Clusters(f.remote); err != nil {
			return o, err
		}
		o.Remotes = append(o.Remotes, remote)
	} else if o.Local, err = s.Cluster(); err != nil {
		return o, err
	}
	for _, path := range f.kubeconfigs {
		remote, err := target.FromKubeconfig(path, "")
		if err != nil {
			return o, err
		}
		o.Remotes = append(o.Remotes, remote)
	}
	return o, nil
}

// renderTest shows what was looked at, cluster by cluster of each check.
func renderTest(s *session.Session, report *networktest.Report) {
	rows := make([][]string, 0, len(report.Checks))
	for _, c := range report.Checks {
		rows = append(rows, []string{c.Name, c.Cluster, c.Peer, string(c.State), c.Message})
	}
	output.Table(s.Streams.Out, []string{"CHECK", "CLUSTER", "PEER", "STATE", "MESSAGE"}, rows)
}

const diffLong = `Show how the kernels of nodes and gateways differ from what their agents want, by asking the agents.

Agents put right what somebody else changes within a second: what is shown stays wrong, because the
kernel refuses it or the agent does not work. With --repair they try again at once, and what differs
after that is shown. It exits with code 3 if something differs, or is not known.`

func newDiff(s *session.Session) *cobra.Command {
	f, repair := &testFlags{remote: target.NewFlags(true)}, false
	command := &cobra.Command{
		Use: "diff", Short: "Show how the kernel differs from what the network needs", Long: diffLong, Args: cobra.NoArgs,
		Example: `  {{ .Executable }} network diff
  {{ .Executable }} network diff --repair --remote-kubeconfig ~/.kube/milan.yaml`,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := f.options(s)
			if err != nil {
				return err
			}
			o.Repair = repair
			all, err := networktest.Diff(command.Context(), o)
			if err != nil {
				return err
			}
			if err := s.Show(f.format, all, func() { renderDiff(s, all) }); err != nil {
				return err
			}
			if len(all) == 0 {
				s.Say("The kernels have what the network needs.")
				return nil
			}
			return failure.Unmet(nextOfDiff(all, repair), "for %d agents the kernel differs from what they want, or they do not answer", len(all))
		},
	}
	f.addTo(s, command)
	command.Flags().BoolVar(&repair, "repair", false, "Have the agents put right what differs")
	return command
}

// nextOfDiff is the way out of differences: agents that answer can be told to try again, once; then their words count.
func nextOfDiff(all []networktest.Difference, repaired bool) string {
	for _, d := range all {
		if d.Lines != "" && !repaired {
			return "have the agents try again: run the same command with --repair"
		}
	}
	namespace, pod, _ := strings.Cut(all[0].Pod, "/")
	return "see what the agent says, in cluster " + all[0].Cluster + ": kubectl logs -n " + namespace + " " + pod
}

func renderDiff(s *session.Session, all []networktest.Difference) {
	for _, d := range all {
		output.Print(s.Streams.Out, fmt.Sprintf("%s, %s on node %s", d.Cluster, d.Pod, d.Node))
		text := d.Lines
		if d.Unknown != "" {
			text += "not known: " + d.Unknown + "\n"
		}
		for line := range strings.Lines(text) {
			output.Print(s.Streams.Out, "  "+strings.TrimSuffix(line, "\n"))
		}
	}
}

// newTestFamily is the name that Liqo v1 has for network test.
func newTestFamily(s *session.Session) *cobra.Command {
	parent := &cobra.Command{
		Use: "test", Short: "Find out what is wrong", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return failure.Misuse("liqoctl test network", "say what to test")
		},
	}
	command := newTest(s, "network", "net")
	parent.AddCommand(command)
	// It may stand before 'network', which has the flag that counts.
	var before time.Duration
	s.TimeoutFlag(parent.Flags(), &before, networktest.DefaultTimeout)
	acceptFlagsOfV1(s, parent, command)
	return parent
}

// nodeKinds are the values of --np-nodes.
var nodeKinds = []string{"all", "workers", "control-planes"}

const (
	nodesFlag    = "np-nodes"
	failFastFlag = "fail-fast"
	untried      = "no pod is started, so Services are not tried; the ways that they take, from each node to pods of the peer, always are"
)

// ignored are the flags of Liqo v1's test that choose nothing here, with why.
var ignored = map[string]string{
	"basic":      "the test is always the same",
	"info":       "the ranges of the clusters are shown by '{{ .Executable }} network status'",
	"ip":         "nothing is made, so no IP resource is tried; see the way to one with '{{ .Executable }} network trace'",
	"lb":         untried,
	"np-ext":     untried,
	"pod-np":     untried,
	"rm":         "nothing is made that would have to be removed",
	nodesFlag:    "every node is always looked at",
	failFastFlag: "everything is always looked at, and what fails first is said at the end",
}

// acceptFlagsOfV1 has 'test network' take the flags that Liqo v1 has there, and say that they have no effect. They are not marked as
// deprecated, because cobra would say so on standard output.
func acceptFlagsOfV1(s *session.Session, parent, command *cobra.Command) {
	var nodes string
	for name := range ignored {
		set := command.Flags()
		if name == failFastFlag {
			set = parent.PersistentFlags() // It may stand before 'network'.
		}
		if name == nodesFlag {
			set.StringVar(&nodes, name, nodeKinds[0], "Has no effect")
		} else {
			set.Bool(name, false, "Has no effect")
		}
		set.Lookup(name).Hidden = true
	}
	s.Complete(command, nodesFlag, complete.Words(nodeKinds...))
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		if err := oneOf(nodesFlag, nodes, nodeKinds); err != nil {
			return err
		}
		command.Flags().Visit(func(flag *pflag.Flag) {
			if why := ignored[flag.Name]; why != "" {
				s.Say("--" + flag.Name + " has no effect: " + why)
			}
		})
		return nil
	}
}
