// Command tools prints the path of a development tool, building it first if needed:
//
//	"$(go run ./hack/tools golangci-lint)" run
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"liqo.io/liqo/hack/tools/cache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := find(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

func find(ctx context.Context, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("name one tool of " + strings.Join(cache.Names(), ", "))
	}
	root, err := cache.Root()
	if err != nil {
		return "", err
	}
	return cache.Path(ctx, root, args[0], os.Stderr)
}
