// Command lab starts and stops real Kubernetes clusters on this machine.
//
//	go run ./test/lab up              two clusters, rome and milan, with one real node each
//	go run ./test/lab up -f lab.yaml  the clusters that a file declares (see test/lab/spec)
//	go run ./test/lab down            removes them without a trace
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	cancel()
	if err == nil {
		return
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) { // of the user's own shell or command: it said what is wrong
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "Error:", err)
	os.Exit(1)
}
