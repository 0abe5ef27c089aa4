package skew

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/step"
)

// checkout is seen from this package.
const checkout = "../.."

// teardown is how long taking the lab down may last.
const teardown = 2 * time.Minute

// world is what the tests share.
type world struct {
	lab         *cluster.Lab
	folder      string
	releases    map[string]*Release
	rome, milan *side
	// failed says that a test failed, so that what it left does not make others fail.
	failed bool
}

var the world

func TestMain(m *testing.M) {
	code, err := all(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "skew:", err)
		code = 1
	}
	os.Exit(code)
}

func all(m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("these tests start real clusters and need root: run 'sudo make skew'")
	}
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	// The context is never cancelled but by a signal: the end of the tests must not look like one.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	steps := step.NewLines(os.Stderr, clock.RealClock{})
	defer func() { err = errors.Join(err, the.stop(context.WithoutCancel(ctx), steps)) }()
	if err := the.start(ctx, steps); err != nil {
		return 1, err
	}
	go func() {
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "skew: interrupted", the.stop(context.WithoutCancel(ctx), step.Silent{}))
		os.Exit(130)
	}()
	return m.Run(), nil
}

func declaration() spec.Lab {
	one := []spec.Node{{Kind: spec.Real, Count: 1}}
	return spec.Lab{Name: "skew", Flat: true, Clusters: []spec.Cluster{
		{Name: "rome", PodCIDR: netip.MustParsePrefix("10.140.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.141.0.0/16"), Nodes: one},
		{Name: "milan", PodCIDR: netip.MustParsePrefix("10.150.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.151.0.0/16"), Nodes: one},
	}}
}

// start compiles both releases and starts the clusters with their images.
func (w *world) start(ctx context.Context, steps step.Observer) (err error) {
	if w.folder, err = os.MkdirTemp("", "liqo-skew-"); err != nil {
		return fmt.Errorf("making a folder for the run: %w", err)
	}
	w.releases = map[string]*Release{}
	for _, work := range []struct {
		title string
		build func() (*Release, error)
	}{
		{"compile the recorded release " + Recorded[:12], func() (*Release, error) { return BuildRecorded(ctx, checkout) }},
		{"compile the present code", func() (*Release, error) { return BuildPresent(ctx, checkout, w.folder) }},
	} {
		if err := step.Run(steps, work.title, func() error {
			release, err := work.build()
			if err == nil {
				w.releases[release.Name] = release
			}
			return err
		}); err != nil {
			return err
		}
	}
	if w.lab, err = cluster.Up(ctx, declaration(), steps); err != nil {
		return fmt.Errorf("starting the clusters: %w", err)
	}
	if w.rome, err = newSide(w.lab, "rome"); err != nil {
		return err
	}
	if w.milan, err = newSide(w.lab, "milan"); err != nil {
		return err
	}
	return step.Run(steps, "load the images into the nodes", func() error {
		return w.lab.Load(ctx, append(w.releases[recorded].Images, w.releases[present].Images...))
	})
}

// stop takes the lab down, unless it is to be kept to look at.
func (w *world) stop(ctx context.Context, steps step.Observer) error {
	err := os.RemoveAll(w.folder)
	if w.lab == nil {
		return err
	}
	if w.failed && os.Getenv("LIQO_SKEW_KEEP") != "" {
		fmt.Fprintf(os.Stderr, "The lab stays up (LIQO_SKEW_KEEP): %s and %s; 'go run ./test/lab down --name skew' removes it.\n",
			w.lab.Kubeconfig("rome"), w.lab.Kubeconfig("milan"))
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, teardown)
	defer cancel()
	return errors.Join(err, w.lab.Down(ctx, steps))
}
