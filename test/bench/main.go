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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are what the flags say.
type options struct {
	only                                            *regexp.Regexp
	pods, objects, endpoints, namespaces, nodeCount []int
	rounds, nodes, updates, bare, capped, restarted int
	lone                                            int
	idle, rest, budget                              time.Duration
	folder, page                                    string
	profile                                         bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "floor":
		err = runFloor(ctx, os.Args[2], os.Args[3])
	case len(os.Args) == 7 && os.Args[1] == "flood":
		err = runFlood(ctx, os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6])
	default:
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(args []string) (options, error) {
	o := options{}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := set.Bool("quick", false, "a smoke run with few pods and one round, whose figures mean nothing")
	only := set.String("only", ".", "run only the scenarios whose names match: "+strings.Join(names(), ", "))
	numbers := map[*[]int]*string{
		&o.pods:       set.String("pods", "100,500,1000,2000", "how many pods a Deployment has: scenario burst takes 1000, or the largest number if that is not among them, sizes the others; 2000 and more once"),
		&o.objects:    set.String("objects", "1,100,1000", "how many objects of a kind are reflected, in turn"),
		&o.endpoints:  set.String("endpoints", "10,100,1000", "how many endpoints a Service has, in turn"),
		&o.namespaces: set.String("namespaces", "1,20,100", "how many namespaces are offloaded, in turn"),
		&o.nodeCount:  set.String("virtual-nodes", "1,10,50", "how many virtual nodes there are, in turn"),
	}
	set.IntVar(&o.rounds, "rounds", 3, "how often each scenario is repeated; figures are medians")
	set.IntVar(&o.nodes, "nodes", 20, "how many simulated nodes each cluster has")
	set.IntVar(&o.bare, "bare", 500, "how many pods are created without a Deployment")
	set.IntVar(&o.capped, "limited", 1000, "how many pods a Deployment has while Kubernetes' controllers have their default limits; 1000 and more once")
	set.IntVar(&o.restarted, "restarted", 500, "how many pods are in place when the virtual kubelet is restarted")
	set.IntVar(&o.lone, "lone", 25, "how many lone pods are created in each round")
	set.IntVar(&o.updates, "updates", 60, "how often a lone object is updated in each round")
	set.DurationVar(&o.idle, "idle", time.Minute, "how long is listened to the idle system")
	set.DurationVar(&o.rest, "rest", 150*time.Second, "how long a virtual kubelet rests, once without pods and once with them, before its memory is read again")
	set.DurationVar(&o.budget, "budget", 14*time.Minute, "no scenario is begun after this time; everything takes about 45 minutes on two processors")
	set.StringVar(&o.folder, "out", "dist/bench", "folder for the report")
	set.StringVar(&o.page, "page", "", "page whose figures are replaced by the run's, such as docs/performance.md")
	set.BoolVar(&o.profile, "profile", false, "write profiles of our processes; figures suffer")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if *quick {
		o.rounds, o.bare, o.capped, o.restarted, o.lone, o.updates, o.idle, o.rest, o.nodes = 1, 20, 40, 20, 5, 10, 10*time.Second, 5*time.Second, 3
		for target, text := range map[*[]int]string{&o.pods: "10,20", &o.objects: "1,20", &o.endpoints: "10", &o.namespaces: "1,5", &o.nodeCount: "1,2"} {
			*numbers[target] = text
		}
	}
	for target, text := range numbers {
		for part := range strings.SplitSeq(*text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || n < 1 {
				return o, fmt.Errorf("%q is not a list of numbers such as 100,500", *text)
			}
			*target = append(*target, n)
		}
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("reading --only: %w", err)
	}
	if o.folder, err = filepath.Abs(o.folder); err != nil {
		return o, fmt.Errorf("reading --out: %w", err)
	}
	return o, nil
}

// turns is how often a burst is repeated: those that take minutes are not.
func (o *options) turns(pods int, limited bool) int {
	if pods >= 2000 || limited && pods >= 1000 {
		return 1
	}
	return o.rounds
}

// scenario is one thing that is measured.
type scenario struct {
	name string
	run  func(*bench)
}

// scenarios in the order in which they are run: first those that tell most, as far as the budget goes; the last two leave the
// clusters fuller than they were.
var scenarios = []scenario{
	{"idle", func(b *bench) { b.idle(b.options.idle) }},
	{"lone", func(b *bench) { b.trickle(b.options.lone) }},
	{"burst", func(b *bench) { b.bursts(b.systems, size(b.options.pods), false) }},
	{"restart", func(b *bench) { b.restarts(b.options.restarted) }},
	{"objects", func(b *bench) { b.objects(b.options.objects) }},
	{"bare", func(b *bench) { b.bursts(b.systems, b.options.bare, true) }},
	{"limited", func(b *bench) {
		b.limits(false)
		b.bursts([]*system{b.systems[0], b.systems[2]}, b.options.capped, false)
		b.limits(true)
	}},
	{"endpoints", func(b *bench) { b.endpoints(b.options.endpoints) }},
	{"flood", func(b *bench) { b.flood(b.options.idle / 2) }},
	{"sizes", func(b *bench) {
		for _, n := range b.options.pods {
			switch {
			case n == size(b.options.pods):
			case b.late():
				b.report.skip(fmt.Sprintf("sizes, %d pods", n), b.usedUp())
			default:
				b.bursts(b.systems, n, false)
			}
		}
	}},
	{"namespaces", func(b *bench) { b.namespaces(b.options.namespaces) }},
	{"nodes", func(b *bench) { b.virtualNodes(b.options.nodeCount) }},
}

func names() []string {
	list := make([]string, len(scenarios))
	for i := range scenarios {
		list[i] = scenarios[i].name
	}
	return list
}

// shipped builds our programs as they are for the images: stripped, and without C.
var shipped = []string{"-tags=netgo,osusergo,grpcnotrace", "-ldflags=-s -w"}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	o, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return fmt.Errorf("making the folder for the report: %w", err)
	}
	b := &bench{options: o, out: out}
	b.env.BuildFlags = shipped
	defer func() { err = errors.Join(err, b.env.Close()) }()
	if o.profile {
		flag, err := overlay(o.folder)
		if err != nil {
			return err
		}
		b.env.BuildFlags = append(slices.Clone(shipped), flag)
	}
	b.report.begin(o)
	if err := b.try(ctx, b.build); err != nil {
		return err
	}
	b.before, b.begun = b.readLoad(), time.Now()
	failed := b.all(ctx, scenarios)
	if err := b.keep(); err != nil {
		return errors.Join(failed, err)
	}
	fmt.Fprintf(out, "\n%s\nThe report is in %s.\n", b.report.markdown(), o.folder)
	if o.page != "" {
		return errors.Join(failed, b.report.publish(o.page))
	}
	return failed
}

// all runs the scenarios one after the other; one that fails does not keep the others from running.
func (b *bench) all(ctx context.Context, list []scenario) error {
	var errs []error
	for _, s := range list {
		switch {
		case !b.options.only.MatchString(s.name):
			continue
		case ctx.Err() != nil:
			return errors.Join(append(errs, ctx.Err())...)
		case b.late():
			b.report.skip(s.name, b.usedUp())
			continue
		}
		b.w.Logf("--- %s", s.name)
		b.startMeter()
		err := b.try(ctx, func() { s.run(b) })
		b.report.Scenarios = append(b.report.Scenarios, b.stopMeter(s.name, err != nil))
		if err != nil {
			b.report.skip(s.name, "it did not come to its end, and what is shown of it is of the rounds before: "+err.Error())
			errs = append(errs, fmt.Errorf("scenario %s: %w", s.name, err))
		}
		b.save()
		if err != nil && ctx.Err() == nil {
			if err := b.try(ctx, b.mend); err != nil {
				b.report.skip("clearing away after "+s.name, "figures of later scenarios may have suffered: "+err.Error())
				errs = append(errs, fmt.Errorf("clearing away after scenario %s: %w", s.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// late tells whether the time for the run is over.
func (b *bench) late() bool { return time.Since(b.begun) > b.options.budget }

func (b *bench) usedUp() string {
	return fmt.Sprintf("the run's budget of %s was used up", b.options.budget)
}

// keep writes the report as far as it is known.
func (b *bench) keep() error {
	b.report.Load, b.report.Seconds = b.readLoad().since(b.before), round(time.Since(b.begun).Seconds())
	b.report.judge()
	return b.report.write(b.options.folder)
}

// save keeps the report while the run goes on: one that is killed loses what it was about to measure, and nothing else.
func (b *bench) save() {
	if err := b.keep(); err != nil {
		b.w.Logf("The report could not be written meanwhile: %v", err)
	}
}

// try runs a part of the bench with a witness of its own.
func (b *bench) try(ctx context.Context, part func()) error {
	return attempt(ctx, b.out, func(w *witness) {
		b.w = w
		part()
	})
}
