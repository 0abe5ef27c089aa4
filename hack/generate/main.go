// Command generate writes the files that are made from the code: deepcopy functions, CRDs, RBAC rules, and what .proto
// files describe. With --check it writes nothing and fails when a file in the tree is missing, different or left over.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"liqo.io/liqo/hack/generate/artifact"
	"liqo.io/liqo/hack/tools/cache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("generate", pflag.ContinueOnError)
	root := flags.String("root", ".", "folder of the Go module")
	check := flags.Bool("check", false, "write nothing; fail when a generated file is stale")
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	folder, err := cache.Root()
	if err != nil {
		return err
	}
	controllerGen, err := cache.Path(ctx, folder, "controller-gen", os.Stderr)
	if err != nil {
		return err
	}
	options := artifact.Options{Root: *root, ControllerGen: controllerGen}
	for _, name := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		plugin, err := cache.Path(ctx, folder, name, os.Stderr)
		if err != nil {
			return err
		}
		options.ProtoPlugins = append(options.ProtoPlugins, plugin)
	}
	set, err := artifact.Render(ctx, options)
	if err != nil {
		return err
	}
	changes, err := set.Changes(*root)
	if err != nil {
		return err
	}
	for _, change := range changes {
		fmt.Println(change)
	}
	if !*check {
		return set.Apply(*root, changes)
	}
	if len(changes) > 0 {
		return fmt.Errorf("%d generated files are stale: run 'make generate' and commit the result", len(changes))
	}
	return nil
}
