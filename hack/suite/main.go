// Command suite runs tests of clusters and tells how they went:
//
//	go run ./hack/suite run --name clusters --tier test -- -p 4 ./test/e2e/... ./test/integration/...
//	go run ./hack/suite report
//
// "run" leaves out what test/tiers.tsv keeps for `make test-all`, and runs by gotestsum, which runs a test that failed again, once, alone.
// "report" says, of all suites whose results are in dist/test, what passed only when it was run again and what took long; it fails if that
// was more than chance, and leaves a receipt when a clean work tree passed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := command().ExecuteContext(ctx)
	stop()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		os.Exit(exit.ExitCode()) // the tests said what is wrong
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}
