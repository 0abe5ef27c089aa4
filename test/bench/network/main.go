// Command network measures what the network of peered clusters costs, and how fast it follows: in network namespaces of one machine, side by
// side with a bare tunnel. It is what `make bench-network` runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/test/bench/network/peering"
)

// options are what the flags say.
type options struct {
	only                      *regexp.Regexp
	rounds, objects           int
	peers, nodes, podsPerNode int
	span                      time.Duration
	folder, page              string
	profile                   bool
	connections, newcomers    int
	restarts, peerings        int
}

// Ways in which the program runs itself in a namespace.
const (
	roleHold  = "hold"
	roleServe = "serve"
	roleDrive = "drive"
)

// The thread that starts a process must not end before that, which would be killed. The main thread stays, and no goroutine with a namespace of its
// own takes it with it.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == roleHold:
		err = hold(ctx, os.Args[2], os.Args[3])
	case len(os.Args) == 2 && os.Args[1] == roleServe:
		err = serve()
	case len(os.Args) == 2 && os.Args[1] == roleDrive:
		err = drive(os.Stdin, os.Stdout)
	default:
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("network", flag.ContinueOnError)
	only := set.String("only", ".", "run only the scenarios whose names match: path, agents, peering")
	set.IntVar(&o.rounds, "rounds", 7, "how often everything on the path is measured; figures are medians")
	set.DurationVar(&o.span, "span", 2*time.Second, "how long one thing is measured at a time")
	set.IntVar(&o.connections, "connections", 16, "how many connections ask at once, one request after the other")
	set.IntVar(&o.newcomers, "connecting", 8, "how many clients open connections at once, one after the other")
	set.IntVar(&o.objects, "objects", 100, "how many objects of a kind are created, to see how long they take to the kernel")
	set.IntVar(&o.restarts, "restarts", 5, "how often each gateway is killed")
	set.IntVar(&o.peerings, "peerings", 7, "how often two real clusters are peered")
	set.IntVar(&o.peers, "peers", 128, "how many peers the large clusters have")
	set.IntVar(&o.nodes, "nodes", 100, "how many nodes the large clusters have")
	set.IntVar(&o.podsPerNode, "pods-per-node", 100, "how many pods each node of the large clusters has, outside its range, so that each is told apart")
	set.StringVar(&o.folder, "out", "dist/bench-network", "folder for the report")
	set.StringVar(&o.page, "page", "", "page whose figures are replaced by the run's, such as docs/performance.md")
	set.BoolVar(&o.profile, "profile", false, "write heap profiles of the agents")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("reading --only: %w", err)
	}
	o.folder, err = filepath.Abs(o.folder)
	return o, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	o, err := parse(args)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root")
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return fmt.Errorf("making the folder for the report: %w", err)
	}
	r := &report{Options: fmt.Sprintf("%d rounds of %s", o.rounds, o.span)}
	before := readLoad()
	var errs []error
	for _, scenario := range []struct {
		name string
		run  func(context.Context, options, *report, io.Writer) error
	}{{"path", measurePath}, {"agents", measureAgents}, {"peering", measurePeering}} {
		if !o.only.MatchString(scenario.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintln(out, "---", scenario.name)
		if err := scenario.run(ctx, o, r, out); err != nil {
			errs = append(errs, fmt.Errorf("scenario %s: %w", scenario.name, err))
		}
	}
	r.Load = readLoad().since(before)
	errs = append(errs, r.write(o))
	fmt.Fprintf(out, "\n%s\nThe report is in %s.\n", r.markdown(), o.folder)
	return errors.Join(errs...)
}

// measurePeering looks at what a user waits for.
func measurePeering(ctx context.Context, o options, r *report, out io.Writer) (err error) {
	r.Peerings, err = peering.Measure(ctx, o.folder, o.peerings, out)
	return err
}
