// Command liqoctl installs Liqo, joins clusters and offloads namespaces. It also works as the kubectl plugin `kubectl liqo`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		// The first signal ends the command in good order; with the handler removed, a second one kills.
		<-ctx.Done()
		stop()
	}()
	code := run(ctx, os.Args)
	stop()
	os.Exit(code)
}
