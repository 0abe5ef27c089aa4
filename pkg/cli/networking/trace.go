package networking

import (
	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/trace"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/dataplane"
)

const traceLong = `Show which way a packet takes from a pod or node of this cluster to an address that it knows,
with its addresses before and after each hop, and how the answer comes back.

Nothing is sent: the way follows from what the objects of both clusters ask for, by the rules
that the gateways and nodes carry out. Policies and firewalls of others are not looked at.
It exits with code 4 if the packet or its answer does not arrive.`

const traceExample = `  # From a pod here to an offloaded one
  {{ .Executable }} network trace shop/frontend shop/backend:8080 --remote-context milan

  # From a node, by a large packet
  {{ .Executable }} network trace worker-1 10.61.2.7 --protocol icmp --size 1441 --remote-context milan`

// newTrace returns network trace.
func newTrace(s *session.Session) *cobra.Command {
	var format string
	o, remote := trace.Options{}, target.NewFlags(true)
	command := &cobra.Command{
		Use: "trace SOURCE DESTINATION[:PORT]", Short: "Show which way a packet takes to a peer", Long: traceLong, Example: traceExample, Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			var err error
			if remote.Given() {
				o.Local, o.Remote, err = s.Clusters(remote)
			} else {
				o.Local, err = s.Cluster()
			}
			if err != nil {
				return err
			}
			o.Source, o.Destination = args[0], args[1]
			report, err := trace.Trace(command.Context(), o)
			if err != nil {
				return err
			}
			if err := s.Show(format, report, func() { renderTrace(s, report) }); err != nil {
				return err
			}
			switch {
			case !report.Arrives:
				return failure.New(failure.Problems, report.Hint, "the packet does not arrive")
			case !report.Answered:
				return failure.New(failure.Problems, report.Hint, "its answer does not come back")
			}
			return nil
		},
	}
	set := command.Flags()
	remote.AddTo(set)
	s.CompleteCluster(command, remote)
	s.OutputFlag(command, &format, "Write the hops to standard output")
	set.StringVar(&o.Protocol, "protocol", dataplane.TCP, "Protocol of the packet: tcp, udp or icmp")
	set.IntVar(&o.Size, "size", 84, "Size of the packet in bytes")
	s.Complete(command, "protocol", complete.Words(dataplane.TCP, dataplane.UDP, dataplane.ICMP))
	return command
}

func renderTrace(s *session.Session, report *trace.Report) {
	for _, hop := range report.There {
		output.Print(s.Streams.Out, hop)
	}
	if len(report.Back) > 0 {
		output.Print(s.Streams.Out, "and back:")
	}
	for _, hop := range report.Back {
		output.Print(s.Streams.Out, hop)
	}
}
