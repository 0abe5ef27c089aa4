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
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/conformance/upstream"
	"liqo.io/liqo/test/lab/step"
)

const (
	control = "control"
	virtual = "virtual"
)

// options are what the flags say.
type options struct {
	focus, skip  *regexp.Regexp
	only         string
	processes    int
	timeout      time.Duration
	folder, page string
	listed       bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(args []string) (options, error) {
	o := options{}
	set := flag.NewFlagSet("conformance", flag.ContinueOnError)
	focus := set.String("focus", "", "run only the tests whose names match")
	skip := set.String("skip", "^$", "leave out the tests whose names match")
	set.StringVar(&o.only, "only", "", "run at one place only: control (straight at the provider) or virtual (on the virtual node)")
	set.IntVar(&o.processes, "processes", 5*runtime.NumCPU(), "how many tests run at a time; most of them wait most of the time")
	set.DurationVar(&o.timeout, "timeout", 90*time.Minute, "how long each of the two runs may take")
	set.StringVar(&o.folder, "out", "dist/conformance", "folder for the report and the tests' output")
	set.StringVar(&o.page, "page", "", "page whose figures are replaced by the run's, such as docs/conformance.md")
	set.BoolVar(&o.listed, "list", false, "print the names of the tests, and run nothing")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if !slices.Contains([]string{"", control, virtual}, o.only) {
		return o, fmt.Errorf("--only %s is unknown: use %s or %s", o.only, control, virtual)
	}
	var err error
	if o.focus, err = regexp.Compile(*focus); err != nil {
		return o, fmt.Errorf("reading --focus: %w", err)
	}
	if o.skip, err = regexp.Compile(*skip); err != nil {
		return o, fmt.Errorf("reading --skip: %w", err)
	}
	if o.folder, err = filepath.Abs(o.folder); err != nil {
		return o, fmt.Errorf("reading --out: %w", err)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	o, err := parse(args)
	if err != nil {
		return err
	}
	tests := upstream.Tests()
	tests = slices.DeleteFunc(tests, func(t upstream.Test) bool { return !o.focus.MatchString(t.Name) || o.skip.MatchString(t.Name) })
	if len(tests) == 0 {
		return errors.New("no test is left: --list prints the names of all, which --focus and --skip choose from")
	}
	if o.listed {
		for _, t := range tests {
			fmt.Fprintln(out, t.Name)
		}
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("conformance tests start real clusters and need root: run them with sudo")
	}
	folder, err := os.MkdirTemp("", "liqo-conformance-")
	if err != nil {
		return fmt.Errorf("creating a folder for programs and images: %w", err)
	}
	steps := step.NewLines(os.Stderr, clock.RealClock{})
	w := &world{folder: folder}
	defer func() { err = errors.Join(err, w.stop(context.WithoutCancel(ctx), out, steps)) }()
	if err := w.start(ctx, steps); err != nil {
		return err
	}
	report := upstream.Report{Tests: tests, Processes: o.processes}
	if o.only != virtual {
		if err := step.Run(steps, fmt.Sprintf("run %d tests at the provider", len(tests)), func() error { return w.control(ctx, o, &report) }); err != nil {
			return err
		}
	}
	if o.only != control {
		if err := step.Run(steps, fmt.Sprintf("run %d tests on the virtual node", len(tests)), func() error { return w.virtual(ctx, o, &report) }); err != nil {
			return err
		}
	}
	return o.conclude(&report, out)
}

// conclude writes the report, and fails when there is something that was not expected.
func (o *options) conclude(report *upstream.Report, out io.Writer) error {
	if err := report.Write(o.folder); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\nThe report is in %s.\n", report.Markdown(), o.folder)
	if o.page != "" {
		if err := report.Publish(o.page); err != nil {
			return err
		}
	}
	return report.Err()
}

// control runs the tests straight at the provider.
func (w *world) control(ctx context.Context, o options, report *upstream.Report) (err error) {
	begin := time.Now()
	r := upstream.Run{Programs: w.programs, Kubeconfig: w.lab.Kubeconfig(provider), Processes: o.processes, Folder: filepath.Join(o.folder, control), Timeout: o.timeout}
	report.Control, err = r.Of(report.Tests, func(t upstream.Test) bool { return t.FailsEverywhere }).Do(ctx)
	report.ControlTook = time.Since(begin)
	return err
}

// virtual runs the tests at the consumer, with every namespace offloaded.
func (w *world) virtual(ctx context.Context, o options, report *upstream.Report) (err error) {
	home, err := w.lab.Config(consumer)
	if err != nil {
		return err
	}
	remote, err := w.lab.Config(provider)
	if err != nil {
		return err
	}
	// What the tests take for the cluster's only node is the virtual one.
	if err := cordon(ctx, home, consumer+"-1", true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cordon(context.WithoutCancel(ctx), home, consumer+"-1", false)) }()
	begin := time.Now()
	r := upstream.Run{
		Programs: w.programs, Processes: o.processes, Folder: filepath.Join(o.folder, virtual), Timeout: o.timeout,
		IgnoredTaints: []string{offloadingv1beta1.VirtualNodeTaint},
	}
	r = r.Of(report.Tests, func(t upstream.Test) bool { return t.Fails != "" })
	report.Virtual, report.Pods, err = upstream.OnVirtualNode(ctx, home, remote, w.folder, r)
	report.VirtualTook = time.Since(begin)
	return err
}
