// Command virtual-kubelet runs one virtual node: it makes a share of another cluster's resources appear as a Node of this one,
// runs that node's pods there, and reflects what they need.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/component-base/logs"
)

// gcPercent is how far the heap may grow between two collections. A cluster runs one process per virtual node, most of which
// have little to do: their memory counts for more than the processor time of collections. GOGC, if it is set, wins.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	logs.FlushLogs()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
