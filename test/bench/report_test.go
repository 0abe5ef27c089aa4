package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiguresArePlacedBetweenTheMarks(t *testing.T) {
	page := "before\n" + pageBegin + "\nold\n" + pageEnd + "\nafter\n"
	got, err := place(page, "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("before\n"+pageBegin+"\nnew\n"+pageEnd+"\nafter\n", got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if _, err := place("a page without marks", "new\n"); err == nil {
		t.Error("a page without marks was changed")
	}
}

func goal(r *Report, figure string) Goal {
	for _, g := range r.Goals {
		if strings.HasPrefix(g.Figure, figure) {
			return g
		}
	}
	return Goal{}
}

func TestGoalsAreJudged(t *testing.T) {
	r := &Report{}
	for i, ready := range []float64{2, 1, 9} {
		for system, factor := range map[string]float64{vanilla: 1, floorName: 1.2, liqo: 1.5} {
			r.Bursts = append(r.Bursts, Burst{System: system, Pods: 1000, Ready: ready * factor, CreateWrites: 9 + float64(i)})
		}
	}
	r.Restarts = []Restart{{Pods: 500, Writes: 0, NewPod: 3}}
	r.judge()
	for figure, want := range map[string]Goal{
		"1000 pods of a Deployment, creation → all ready ÷ vanilla, limits of Kubernetes' controllers lifted": {Vanilla: "1 (2.0 s)", Floor: "1.20", Known: "4", Liqo: "1.50", Wanted: "≤ 1.60", Met: "yes"},
		"the same, lifted, ÷ floor":                             {Vanilla: unknown, Floor: "1 (2.4 s)", Known: "2.8", Liqo: "1.25", Wanted: "≤ 1.15", Met: "no"},
		"write requests per pod, both sides together, create":   {Vanilla: "10.0", Floor: "10.0", Known: "27", Liqo: "10.00", Wanted: "≤ 9.5", Met: "no"},
		"virtual kubelet restarted with 500 pods: a new pod is": {Vanilla: unknown, Floor: unknown, Known: "52–64 s", Liqo: "3.0 s", Wanted: "≤ 2 s", Met: "no"},
		"ConfigMaps reflected per second":                       {Vanilla: unknown, Floor: unknown, Known: "70", Liqo: unknown, Wanted: "≥ 200"},
	} {
		got := goal(r, figure)
		got.Figure = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", figure, diff)
		}
	}
	text := r.markdown()
	if !strings.Contains(text, "| 1000 | liqo | 3 | 3.0 | 1.50 |") {
		t.Errorf("the table of pods lacks the median:\n%s", text)
	}
	if strings.Contains(text, "ConfigMaps reflected per second") {
		t.Errorf("the table of goals has one without a figure:\n%s", text)
	}
}
