// Command liqo-controller-manager runs Liqo's controllers and admission webhooks in one cluster.
package main

import (
	"context"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run executes the command line; it returns when the context ends or something failed for good.
func run(ctx context.Context, args []string) error {
	command := newCommand()
	command.SetArgs(args)
	return command.ExecuteContext(ctx)
}
