package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func report() *Report {
	return &Report{
		Tests: []Test{
			{Name: "a passes", Set: Conformance},
			{Name: "b | fails", Set: Conformance, Fails: "It needs the node."},
			{Name: "c passes at the provider alone", Set: Node},
			{Name: "d fails everywhere", Set: Node, Fails: "There is no registry.", FailsEverywhere: true},
			{Name: "e passes by surprise", Set: Node, Fails: "It cannot."},
		},
		Processes: 10, ControlTook: 15 * time.Minute, VirtualTook: 20*time.Minute + 900*time.Millisecond,
		Control: map[string]Outcome{
			"a passes": {State: "passed", Seconds: 3}, "b | fails": {State: "passed", Seconds: 240}, "c passes at the provider alone": {State: "passed"},
			"d fails everywhere": {State: "failed", Message: "no"}, "e passes by surprise": {State: "passed"},
		},
		Virtual: map[string]Outcome{
			"a passes": {State: "passed", Seconds: 4, Before: "too slow"}, "b | fails": {State: "failed"}, "c passes at the provider alone": {State: "failed", Message: "timed out\nafter 5m"},
			"d fails everywhere": {State: "failed", Message: "no"}, "e passes by surprise": {State: "passed"},
		},
		Pods: Pods{Remote: map[string]int{"milan-2": 3, "milan-1": 4}, Local: 1},
	}
}

const figures = `| tests | run | passed | of them only when run again | expected failures | findings |
|---|---|--:|--:|--:|--:|
| 2 conformance | at the provider | 2 | 0 | 0 | 0 |
| 2 conformance | on the virtual node | 1 | 1 | 1 | 0 |
| 3 node | at the provider | 2 | 0 | 1 | 0 |
| 3 node | on the virtual node | 1 | 0 | 1 | 2 |

10 tests ran at a time, at the provider for 15m0s, on the virtual node for 20m1s.

7 pods of the tests started at the provider (milan-1 4, milan-2 3), 1 on other nodes of the consumer.

What did not simply pass at the provider:

| test | verdict | why |
|---|---|---|
| d fails everywhere | expected failure | There is no registry. |

What did not simply pass on the virtual node:

| test | verdict | why |
|---|---|---|
| a passes | passed when run again | too slow |
| b \| fails | expected failure | It needs the node. |
| c passes at the provider alone | FAILED | timed out |
| d fails everywhere | expected failure | There is no registry. |
| e passes by surprise | PASSED UNEXPECTEDLY | It cannot. |
`

func TestTheReportTellsWhatDidNotPass(t *testing.T) {
	if diff := cmp.Diff(figures, report().Markdown()); diff != "" {
		t.Errorf("figures differ (-want +got):\n%s", diff)
	}
}

func TestTheRunFailsByWhatWasNotExpected(t *testing.T) {
	want := `FAILED, on the virtual node: c passes at the provider alone
PASSED UNEXPECTEDLY, on the virtual node: e passes by surprise
1 pods of the tests did not run on the virtual node`
	err := report().Err()
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error differs (-want +got):\n%s", diff)
	}
	good := &Report{Tests: []Test{{Name: "a"}, {Name: "b", Fails: "It cannot."}}, Virtual: map[string]Outcome{"a": {State: "passed"}, "b": {State: "failed"}}}
	if err := good.Err(); err != nil {
		t.Errorf("a run without a surprise fails: %v", err)
	}
}

func TestPublishReplacesTheFigures(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+pageBegin+"\nold\n"+pageEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report().Publish(page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("before\n"+pageBegin+"\n"+figures+pageEnd+"\nafter\n", string(got)); diff != "" {
		t.Errorf("page differs (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(page, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report().Publish(page); err == nil || !strings.Contains(err.Error(), "does not have the lines") {
		t.Errorf("a page without marks: %v", err)
	}
}
