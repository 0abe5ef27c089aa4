package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"liqo.io/liqo/test/lab/binary"
)

// description is what ginkgo puts before the name of each test.
const description = "Kubernetes e2e suite"

// Programs are what a run of the tests needs.
var Programs = []string{binary.E2E, binary.Ginkgo, binary.Agnhost, binary.NoNewPrivs, binary.Kubectl}

// Run is one run of tests at one cluster.
type Run struct {
	// Programs are the programs by name.
	Programs binary.Set
	// Kubeconfig is the administrator's at the cluster.
	Kubeconfig string
	// Tests are the names of the tests.
	Tests []string
	// Processes is how many tests run at a time.
	Processes int
	// IgnoredTaints are the keys of taints in spite of which a node counts as one that pods can run on.
	IgnoredTaints []string
	// Folder is where ginkgo's output (log.txt) and report (report.json) are written.
	Folder string
	// Timeout ends the run.
	Timeout time.Duration
	// Failing are the names of tests that are expected to fail; others that do are run once more, few at a time.
	Failing []string
}

// Of is the run with these tests.
func (r Run) Of(tests []Test, fails func(Test) bool) Run {
	r.Tests, r.Failing = nil, nil
	for _, t := range tests {
		r.Tests = append(r.Tests, t.Name)
		if fails(t) {
			r.Failing = append(r.Failing, t.Name)
		}
	}
	return r
}

// calm is how many tests run at a time when the failed ones are run once more: failures that come of a busy machine are gone then.
const calm = 4

// Outcome is what became of one test.
type Outcome struct {
	// State is in ginkgo's words: passed, failed, skipped, timedout, panicked, interrupted.
	State string `json:"state"`
	// Message is why it failed or was skipped.
	Message string `json:"message,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Before is why it failed at first, if it was run once more.
	Before string `json:"before,omitempty"`
}

// Passed says whether the test passed.
func (o Outcome) Passed() bool { return o.State == "passed" }

// Do runs the tests, and returns their outcomes by name. That tests fail is no error.
func (r Run) Do(ctx context.Context) (map[string]Outcome, error) {
	outcomes, err := r.once(ctx)
	if err != nil {
		return nil, err
	}
	again := r
	again.Processes, again.Folder, again.Tests = min(calm, r.Processes), filepath.Join(r.Folder, "again"), nil
	for _, name := range r.Tests {
		if !outcomes[name].Passed() && !slices.Contains(r.Failing, name) {
			again.Tests = append(again.Tests, name)
		}
	}
	if len(again.Tests) == 0 {
		return outcomes, nil
	}
	second, err := again.once(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range again.Tests {
		if outcome, ran := second[name]; ran {
			outcome.Before = cmp.Or(first(outcomes[name].Message), outcomes[name].State)
			outcomes[name] = outcome
		}
	}
	return outcomes, nil
}

// once runs the tests once.
func (r Run) once(ctx context.Context) (map[string]Outcome, error) {
	if err := os.MkdirAll(r.Folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the tests' output: %w", err)
	}
	log, err := os.Create(filepath.Join(r.Folder, "log.txt"))
	if err != nil {
		return nil, fmt.Errorf("making the file of the tests' output: %w", err)
	}
	report := filepath.Join(r.Folder, "report.json")
	if err := os.Remove(report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the report of an earlier run: %w", err)
	}
	command := exec.CommandContext(ctx, r.Programs[binary.Ginkgo], r.args()...)
	command.Dir, command.Stdout, command.Stderr = r.Folder, log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	failed := errors.Join(command.Run(), log.Close())
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, fmt.Errorf("running the tests, whose output is in %s: %w", log.Name(), errors.Join(failed, err))
	}
	outcomes, err := outcomes(data)
	if err != nil {
		return nil, err
	}
	return outcomes, context.Cause(ctx)
}

// args are those of ginkgo and, behind the dashes, of the tests.
func (r Run) args() []string {
	return []string{
		"--procs=" + strconv.Itoa(r.Processes), "--timeout=" + r.Timeout.String(), "--no-color", "--silence-skips", "-v",
		"--poll-progress-after=0", "--json-report=report.json", "--output-dir=" + r.Folder, "--focus=" + focus(r.Tests), r.Programs[binary.E2E], "--",
		"--kubeconfig=" + r.Kubeconfig, "--kubectl-path=" + r.Programs[binary.Kubectl], "--provider=skeleton",
		"--non-blocking-taints=" + strings.Join(append([]string{"node-role.kubernetes.io/control-plane"}, r.IgnoredTaints...), ","),
		// What there is to know about a failure is in its own output; the state of the cluster after it would be most of the log.
		"--dump-logs-on-failure=false",
	}
}

// focus is the expression that matches these tests and no other.
func focus(tests []string) string {
	quoted := make([]string, len(tests))
	for i, name := range tests {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^" + description + " (" + strings.Join(quoted, "|") + ")$"
}

// outcomes reads ginkgo's report. Tests that were not to run have none.
func outcomes(report []byte) (map[string]Outcome, error) {
	var suites []struct {
		SpecReports []struct {
			LeafNodeType            string
			ContainerHierarchyTexts []string
			LeafNodeText            string
			State                   string
			RunTime                 time.Duration
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		return nil, fmt.Errorf("reading ginkgo's report: %w", err)
	}
	found := map[string]Outcome{}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if spec.LeafNodeType != "It" || spec.State == "skipped" && spec.Failure.Message == "" || spec.State == "pending" {
				continue
			}
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			found[name] = Outcome{State: spec.State, Message: spec.Failure.Message, Seconds: spec.RunTime.Seconds()}
		}
	}
	return found, nil
}
