package main

import (
	"io"
	"slices"
	"strings"
	"testing"

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
