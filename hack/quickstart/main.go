// Command quickstart shows Liqo on one machine: it starts two real Kubernetes clusters, installs Liqo on both, peers them,
// offloads a namespace and runs a small application whose pods land in both. Every step is idempotent.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nquickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 || (args[0] != "up" && args[0] != "down") {
		return errors.New("say 'up' or 'down'")
	}
	if os.Geteuid() != 0 {
		return errors.New("real clusters need root (network namespaces, cgroups, containers): run it with sudo")
	}
	if args[0] == "down" {
		return down(ctx)
	}
	return up(ctx)
}
