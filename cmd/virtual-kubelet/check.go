package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

const (
	// beatEvery is how often the heartbeat file is touched.
	beatEvery = 10 * time.Second
	// loopSilence is how long a loop may be silent and still count as alive: two calls at their deadline.
	loopSilence = 90 * time.Second
	// beatAge is how old the heartbeat may be.
	beatAge = 45 * time.Second
)

// newCheckCommand tells the pod's probes whether the process works.
func newCheckCommand() *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:           "check",
		Short:         "Tell whether the virtual kubelet in this pod works",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return check(file, time.Now()) },
	}
	command.Flags().StringVar(&file, "file", "/var/lib/liqo/healthy", "the heartbeat file")
	return command
}

func check(file string, now time.Time) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("the virtual kubelet has not started yet: %w", err)
	}
	if age := now.Sub(info.ModTime()); age > beatAge {
		return fmt.Errorf("the virtual kubelet's last sign of life is %s old", age.Round(time.Second))
	}
	return nil
}

// beat touches the file while alive says so.
func beat(ctx context.Context, file string, alive func(since time.Time) bool) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the folder of the heartbeat file: %w", err)
	}
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	started := time.Now()
	for {
		// The loops get the time to make their first round.
		if now := time.Now(); now.Sub(started) < loopSilence || alive(now.Add(-loopSilence)) {
			if err := os.WriteFile(file, []byte(now.Format(time.RFC3339)+"\n"), 0o644); err != nil {
				return fmt.Errorf("writing the heartbeat file: %w", err)
			}
		} else {
			klog.FromContext(ctx).Info("A loop of the virtual kubelet gives no sign of life")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
