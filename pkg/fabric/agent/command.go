package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // offers --logging-format=json
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/version"
)

// gcPercent is how far the heap may grow between two collections: there is one agent on each node and for each peer. GOGC, if it is set, wins.
const gcPercent = 50

// ExitDiffers is the exit code of 'diff' if the kernel differs from what is wanted.
const ExitDiffers = 3

// ErrDiffers is what 'diff' fails with then; the differences have been printed.
var ErrDiffers = errors.New("the kernel differs from what is wanted")

// Command is an agent's command.
func Command(name, short string, run func(cmd *cobra.Command) error) *cobra.Command {
	logging := logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use: name, Short: short, Version: version.Version, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return fmt.Errorf("applying the logging flags: %w", err)
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			klog.FromContext(cmd.Context()).Info("Starting", "agent", name, "version", version.Version)
			return run(cmd)
		},
	}
	logsapi.AddFlags(logging, command.Flags())
	return command
}

// Run runs an agent and answers probes until the context ends.
func Run(ctx context.Context, run func(context.Context) error, health *Health, port int, kernel Reader) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return health.Serve(ctx, port, kernel) })
	group.Go(func() error { return run(ctx) })
	return group.Wait()
}

// Questions are the commands that ask the agent that runs in the same pod.
func Questions(port *int) []*cobra.Command {
	command := func(name, path, short string, failed error) *cobra.Command {
		return &cobra.Command{
			Use: name, Short: short, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
			RunE: func(cmd *cobra.Command, _ []string) error {
				text, err := ask(cmd.Context(), *port, path)
				if err != nil || text == "" {
					return err
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
				return errors.Join(failed, err)
			},
		}
	}
	return []*cobra.Command{
		command("health", healthPath, "Tell whether the agent in this pod does what it can", nil),
		command("state", statePath, "Print what the agent in this pod wants to have in the kernel", nil),
		command("diff", diffPath, "Print how the kernel differs from that; then the exit code is 3", ErrDiffers),
		command("repair", repairPath, "Have the agent in this pod put into the kernel what differs, at once", nil),
	}
}
