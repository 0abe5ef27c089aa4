package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/test/lab/step"
)

// teardown is how long taking the lab down may last.
const teardown = 2 * time.Minute

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
	code = m.Run()
	return code, the.settle(ctx, the.leaving)
}

// chosen is the world that the tests are to run in. Those of another world are skipped.
func chosen() (world, error) {
	if strings.HasPrefix(strings.TrimPrefix(flag.Lookup("test.run").Value.String(), "^"), networkTests) {
		return networks, nil
	}
	if err := flag.Set("test.skip", strings.TrimPrefix(flag.Lookup("test.skip").Value.String()+"|^"+networkTests, "|")); err != nil {
		return flat, fmt.Errorf("leaving %s out: %w", networkTests, err)
	}
	switch name := os.Getenv("LIQO_E2E_WORLD"); name {
	case "", "flat":
		return flat, nil
	case "routed":
		return routed, nil
	default:
		return flat, fmt.Errorf("LIQO_E2E_WORLD=%s: flat or routed wanted", name)
	}
}
