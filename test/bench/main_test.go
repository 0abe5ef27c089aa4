package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheWholeRunHasTheSizesOfItsGoals(t *testing.T) {
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{100, 500, 1000, 2000}, o.pods); diff != "" {
		t.Errorf("pods differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 10, 50}, o.nodeCount); diff != "" {
		t.Errorf("virtual nodes differ (-want +got):\n%s", diff)
	}
	if got := size(o.pods); got != judged || o.capped != judged {
		t.Errorf("goals are judged at %d pods and at %d with default limits, want %d", got, o.capped, judged)
	}
	for pods, want := range map[int]int{1000: 3, 2000: 1} {
		if got := o.turns(pods, false); got != want {
			t.Errorf("%d pods have %d rounds, want %d", pods, got, want)
		}
	}
	if got := o.turns(o.capped, true); got != 1 {
		t.Errorf("default limits have %d rounds, want 1", got)
	}
	if got := size([]int{100, 700, 300}); got != 700 {
		t.Errorf("without the goals' size %d pods are judged, want the most", got)
	}
	if _, err := parse([]string{"--pods", "many"}); err == nil {
		t.Error("a number of pods that is none was taken")
	}
}

func TestAScenarioEndsAlone(t *testing.T) {
	for sentence, tc := range map[string]struct {
		part func(*witness)
		want string
	}{
		"that comes to its end": {func(*witness) {}, ""},
		"that fails":            {func(w *witness) { w.Fatalf("no pods") }, "no pods"},
		"with a defect":         {func(*witness) { _ = slices.Max([]int{}) }, "a defect of the benchmark: slices.Max: empty list"},
		"with a defect in one of its writers": {func(w *witness) {
			(&bench{w: w}).parallel(writers, func(i int) { _ = []int{}[i] })
		}, "a defect of the benchmark: runtime error: index out of range"},
	} {
		t.Run(sentence, func(t *testing.T) {
			finished := []string{}
			err := attempt(t.Context(), io.Discard, func(w *witness) {
				defer func() { finished = append(finished, "kept") }()
				tc.part(w)
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("it ended with %v, want %q", err, tc.want)
			}
			if len(finished) != 1 {
				t.Error("what was measured was not kept")
			}
		})
	}
}

// kept is the report that stands in a folder.
func kept(t *testing.T, folder string) Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := Report{}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFinishedRoundsOutliveTheirScenario(t *testing.T) {
	half := func(b *bench) {
		b.report.Bursts = append(b.report.Bursts, Burst{System: liqo, Pods: 100, Ready: 2})
		b.measure(&Objects{Kind: "service", System: liqo, Count: 5, Operations: map[string]Operation{"create": {Rate: 7}}}, func() { b.w.pause(time.Hour) })
	}
	whole := func(b *bench) { b.report.Idle = &Idle{Seconds: 1} }
	for sentence, tc := range map[string]struct {
		end  func(stop context.CancelFunc, b *bench)
		want []Scenario
	}{
		"that fails": {func(_ context.CancelFunc, b *bench) { b.w.Fatalf("no pods") },
			[]Scenario{{Name: "first", Unfinished: true}, {Name: "second"}}},
		"in a run that is told to stop": {func(stop context.CancelFunc, b *bench) { stop(); half(b) },
			[]Scenario{{Name: "first", Unfinished: true}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			b := &bench{out: io.Discard, w: &witness{ctx: ctx, out: io.Discard}, begun: time.Now(), options: options{only: regexp.MustCompile("."), budget: time.Hour, folder: t.TempDir()}}
			err := b.all(ctx, []scenario{{"first", func(b *bench) {
				b.report.Trickles = append(b.report.Trickles, Trickle{System: liqo})
				tc.end(stop, b)
			}}, {"second", whole}})
			if err == nil {
				t.Error("the failure was not told")
			}
			report := kept(t, b.options.folder)
			var got []Scenario
			for _, s := range report.Scenarios {
				got = append(got, Scenario{Name: s.Name, Unfinished: s.Unfinished})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("scenarios differ (-want +got):\n%s", diff)
			}
			if len(report.Trickles) != 1 || len(report.Skipped) == 0 {
				t.Errorf("the report lacks what was measured, or why there is no more: %v, %v", report.Trickles, report.Skipped)
			}
			if ctx.Err() != nil && (len(report.Bursts) != 1 || len(report.Objects) != 1) {
				t.Errorf("%d bursts and %d objects were kept, want those before the end", len(report.Bursts), len(report.Objects))
			}
		})
	}
}
