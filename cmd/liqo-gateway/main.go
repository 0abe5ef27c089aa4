// Command liqo-gateway is the agent of one gateway: it has the tunnel to one peer carry packets, and tells how it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/logs"

	"liqo.io/liqo/pkg/fabric/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	logs.FlushLogs()
	switch {
	case errors.Is(err, agent.ErrDiffers):
		os.Exit(agent.ExitDiffers)
	case err != nil && !errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
