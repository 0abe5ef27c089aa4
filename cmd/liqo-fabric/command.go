package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/fabric/node"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/pkg/version"
)

const component = "liqo-fabric"

// flags are where the process runs.
type flags struct {
	kubeconfig  string
	node        string
	namespace   string
	overlayPort int
	healthPort  int
	metrics     agent.MetricsPort
}

func (f *flags) register(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty means the pod's ServiceAccount")
	set.StringVar(&f.node, "node-name", os.Getenv("NODE_NAME"), "name of the node (default $NODE_NAME)")
	set.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of Liqo, where FirewallConfigurations and RouteConfigurations for nodes are (default $POD_NAMESPACE); empty follows none")
	set.IntVar(&f.overlayPort, "overlay-port", dataplane.DefaultOverlayPort, "UDP port of the overlay between nodes and gateways")
	set.IntVar(&f.healthPort, "health-port", 8081, "port, on the loopback address, that tells probes how the agent is")
	f.metrics.Register(set)
}

func (f *flags) validate() error {
	if f.node == "" {
		return errors.New("--node-name, or the environment variable NODE_NAME, must name the node")
	}
	if f.overlayPort < 1 || f.overlayPort > math.MaxUint16 {
		return errors.New("--overlay-port must be a port, from 1 to 65535")
	}
	return nil
}

func newCommand() *cobra.Command {
	var f flags
	command := agent.Command(component, "Have the pods of one node reach those of peered clusters", func(cmd *cobra.Command) error {
		return f.run(cmd.Context())
	})
	f.register(command.PersistentFlags())
	command.AddCommand(agent.Questions(&f.healthPort)...)
	command.AddCommand(agent.Reach())
	command.AddCommand(&cobra.Command{
		Use: "obstacles", Short: "Tell what of this node may keep packets from going on to pods", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kernel, err := netlink.Open("")
			if err != nil {
				return err
			}
			found, err := netlink.Obstacles(kernel)
			for _, obstacle := range found {
				fmt.Fprintln(cmd.OutOrStdout(), obstacle)
			}
			return errors.Join(err, kernel.Close())
		},
	})
	command.AddCommand(&cobra.Command{
		Use: "cleanup", Short: "Remove all that Liqo has in the kernel of this node",
		Long: "Remove all that Liqo has in the kernel of this node. An agent that runs puts it there again, unless there is no peer any more.",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kernel, err := netlink.Open("")
			if err != nil {
				return err
			}
			changes, err := kernel.Apply(dataplane.State{})
			for _, change := range changes {
				fmt.Fprintln(cmd.OutOrStdout(), change)
			}
			return errors.Join(err, kernel.Close())
		},
	})
	return command
}

// run runs the agent until the context ends.
func (f *flags) run(ctx context.Context) error {
	if err := f.validate(); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	config.UserAgent = component + "/" + version.Version
	cluster, err := agent.Connect(config)
	if err != nil {
		return err
	}
	kernel, err := netlink.Open("")
	if err != nil {
		return err
	}
	a := node.New(node.Options{
		Cluster: cluster, Kernel: kernel, Health: &agent.Health{Repair: signal.New()}, Name: f.node, Namespace: f.namespace,
		Port: uint16(f.overlayPort), //nolint:gosec // Validated.
		Work: agent.NewMetrics(kernel), Silent: node.NewSilent(),
	})
	work := func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return f.metrics.Serve(ctx, config, a.Work, a.Silent) })
		group.Go(func() error { return a.Run(ctx) })
		return group.Wait()
	}
	return errors.Join(agent.Run(ctx, work, a.Health, f.healthPort, kernel), kernel.Close())
}
