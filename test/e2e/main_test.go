package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/test/lab/step"
)

const (
	// teardown is how long taking the lab down may last.
	teardown = 2 * time.Minute
	// sideBySide is how many tests run at a time that share the lab: more only wait for each other on two processors, some until their time is
	// over. One more waits until they have ended.
	sideBySide = 2
)

// the is the suite that all tests share.
var the *suite

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("LIQO_E2E") == "off" {
		fmt.Fprintln(os.Stderr, "End-to-end tests are switched off by LIQO_E2E=off.")
		return 0, nil
	}
	if os.Geteuid() != 0 {
		return 1, fmt.Errorf("end-to-end tests start real clusters and need root: run them with sudo, or set LIQO_E2E=off to leave them out")
	}
	// The context is never cancelled but by a signal: the end of the tests must not look like one.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctrl.SetLogger(logr.Discard())
	steps := step.NewLines(os.Stderr, clock.RealClock{})
	begin := time.Now()
	flag.Parse()
	world, err := chosen()
	if err != nil {
		return 1, err
	}
	the, err = start(ctx, world, steps)
	if the != nil {
		defer func() { err = the.stop(context.WithoutCancel(ctx), steps, err) }()
	}
	if err != nil {
		return 1, err
	}
	go the.interrupt(ctx)
	the.endsBefore(begin)
	code = m.Run()
	return code, the.settle(ctx, the.left())
}

// chosen is the world that the tests are to run in. Those that are about another one are skipped.
func chosen() (world, error) {
	if err := flag.Set("test.parallel", strconv.Itoa(sideBySide+1)); err != nil {
		return routed, fmt.Errorf("running tests side by side: %w", err)
	}
	switch name := os.Getenv("LIQO_E2E_WORLD"); name {
	case "", "routed":
		return routed, nil
	case "flat":
		if err := flag.Set("test.skip", strings.TrimPrefix(flag.Lookup("test.skip").Value.String()+"|^"+networkTests, "|")); err != nil {
			return flat, fmt.Errorf("leaving %s out: %w", networkTests, err)
		}
		return flat, nil
	default:
		return routed, fmt.Errorf("LIQO_E2E_WORLD=%s: routed or flat wanted", name)
	}
}
