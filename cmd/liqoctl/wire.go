package main

import (
	"context"
	"flag"
	"io"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/charts"
	"liqo.io/liqo/pkg/cli"
)

// run executes the command line with the process's own streams, and returns the exit code.
func run(ctx context.Context, args []string) int {
	quiet()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return int(cli.Run(ctx, args, cli.Program{Streams: streams, Environment: os.Getenv, Chart: charts.Liqo()}))
}

// quiet keeps the log lines of libraries off the terminal: whatever matters to the user is told by the commands.
func quiet() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	ctrl.SetLogger(klog.Background())
}
