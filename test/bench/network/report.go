package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"liqo.io/liqo/test/bench/network/peering"
)

// report is what was found out.
type report struct {
	Options string              `json:"options"`
	Load    string              `json:"load"`
	Samples map[string][]sample `json:"samples,omitempty"`
	// Memory of the agents, in MB.
	Memory []held `json:"memory,omitempty"`
	// Followed is how long objects take to the kernel.
	Followed []followed     `json:"followed,omitempty"`
	Kills    []killed       `json:"kills,omitempty"`
	Peerings []peering.Took `json:"peerings,omitempty"`
}

// held is the memory of a process, in MB: all that is resident, what of that is its own and no file's, and the most that was resident.
type held struct {
	What     string  `json:"what"`
	Process  string  `json:"process"`
	Resident float64 `json:"resident"`
	Own      float64 `json:"own"`
	Peak     float64 `json:"peak"`
}

// followed is how long objects of a kind took to the kernel, in ms.
type followed struct {
	Object string  `json:"object"`
	Count  int     `json:"count"`
	Median float64 `json:"p50"`
	P99    float64 `json:"p99"`
}

// killed is what became of connections when a gateway was killed.
type killed struct {
	End string `json:"end"`
	// Silence is the longest time, in seconds, that an open connection had to wait for an answer.
	Silence float64 `json:"silence"`
	// Lost is how many of the eight connections ended.
	Lost int `json:"lost"`
}

// The page's part that is the report's lies between these lines.
const begin, end = "<!-- network figures: begin -->\n", "<!-- network figures: end -->\n"

func (r *report) write(o options) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text := r.markdown()
	for name, content := range map[string]string{"report.json": string(data), "report.md": text} {
		if err := os.WriteFile(filepath.Join(o.folder, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if o.page == "" {
		return nil
	}
	page, err := os.ReadFile(o.page)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the figures", o.page)
	}
	return os.WriteFile(o.page, []byte(before+begin+text+end+after), 0o600)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// figure is one that is taken of each turn on each way.
type figure struct {
	name   string
	format string
	of     func(sample) float64
	// goal is that of the ratio to the bare way, and that of the large one's to ours; least tells that they are to be reached, not kept.
	goal, large float64
	least       bool
}

var figures = []figure{
	{"TCP throughput (Mbit/s)", "%.0f", func(s sample) float64 { return s.Megabits }, 0.95, 0.97, true},
	{"requests per second", "%.0f", func(s sample) float64 { return s.Requests }, 0.97, 0.97, true},
	{"connects per second", "%.0f", func(s sample) float64 { return s.Connects }, 0.95, 0.97, true},
	{"processor time per GB (s)", "%.2f", func(s sample) float64 { return s.SecondsPerGB }, 1.12, 1 / 0.97, false},
	{"processor time per request (µs)", "%.0f", func(s sample) float64 { return s.MicrosPerRequest }, 1.1, 1 / 0.97, false},
	{"processor time per connect (µs)", "%.0f", func(s sample) float64 { return s.MicrosPerConnect }, 0, 0, false},
	{"latency p50 (µs)", "%.0f", func(s sample) float64 { return s.Median }, 0, 0, false},
	{"memory of a gateway that is its own (MB)", "%.0f", func(s sample) float64 { return s.Memory }, 0, 0, false},
}

// ratio is the median of the ratios of two ways, each of one round: what else the machine does then is the same for both.
func (r *report) ratio(f figure, of, to string) float64 {
	var all []float64
	for i := range min(len(r.Samples[of]), len(r.Samples[to])) {
		all = append(all, f.of(r.Samples[of][i])/f.of(r.Samples[to][i]))
	}
	return median(all)
}

// judged is a ratio with its goal.
func judged(ratio, goal float64, least bool) string {
	text, sign := fmt.Sprintf("%.2f", ratio), "≤"
	if goal == 0 {
		return text
	}
	met := ratio <= goal
	if least {
		sign, met = "≥", ratio >= goal
	}
	if !met {
		return fmt.Sprintf("**%s** (goal %s %.2f: missed)", text, sign, goal)
	}
	return fmt.Sprintf("%s (goal %s %.2f)", text, sign, goal)
}

func (r *report) markdown() string {
	b := &page{}
	fmt.Fprintf(b, "%s; the machine was %s.\n", r.Options, r.Load)
	r.path(b)
	r.agents(b)
	r.peerings(b)
	return b.String()
}

// page is what tables are written to.
type page struct{ strings.Builder }

func (b *page) table(columns ...string) {
	fmt.Fprintf(b, "\n| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
}

func (b *page) row(cells ...string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

func (r *report) path(b *page) {
	if len(r.Samples) == 0 {
		return
	}
	b.table("median of the rounds", tunnelOnly, bare, liqo, large, "liqo ÷ bare", "large ÷ liqo")
	for _, f := range figures {
		cells := []string{f.name}
		for _, way := range []string{tunnelOnly, bare, liqo, large} {
			var all []float64
			for _, s := range r.Samples[way] {
				all = append(all, f.of(s))
			}
			cells = append(cells, fmt.Sprintf(f.format, median(all)))
		}
		b.row(append(cells, judged(r.ratio(f, liqo, bare), f.goal, f.least), judged(r.ratio(f, large, liqo), f.large, f.least))...)
	}
}

func (r *report) agents(b *page) {
	if len(r.Followed) > 0 {
		b.table("object → kernel", "count", "p50 (ms)", "p99 (ms), goal ≤ 1000")
		for _, f := range r.Followed {
			b.row(f.Object, fmt.Sprint(f.Count), fmt.Sprintf("%.0f", f.Median), fmt.Sprintf("%.0f", f.P99))
		}
	}
	if len(r.Memory) > 0 {
		b.table("memory after traffic (MB)", "process", "its own", "with the program file", "most")
		for _, m := range r.Memory {
			b.row(m.What, m.Process, fmt.Sprintf("%.1f", m.Own), fmt.Sprintf("%.1f", m.Resident), fmt.Sprintf("%.1f", m.Peak))
		}
	}
	if len(r.Kills) > 0 {
		b.table("gateway killed", "times", "longest silence (s), goal ≤ 4: median", "longest", "TCP connections lost, goal 0")
		for _, name := range []string{"client", "server"} {
			var all []float64
			lost := 0
			for _, k := range r.Kills {
				if k.End == name {
					all, lost = append(all, k.Silence), lost+k.Lost
				}
			}
			b.row(name, fmt.Sprint(len(all)), fmt.Sprintf("%.1f", median(all)), fmt.Sprintf("%.1f", slices.Max(append(all, 0))), fmt.Sprint(lost))
		}
	}
}

func (r *report) peerings(b *page) {
	if len(r.Peerings) == 0 {
		return
	}
	b.table("two real clusters", "times", "p50 (s)", "longest (s)")
	for _, command := range []struct {
		name string
		of   func(peering.Took) float64
	}{
		{"`liqoctl peer`, until packets pass and the virtual node is ready; goal p50 ≤ 5", func(t peering.Took) float64 { return t.Peer }},
		{"`liqoctl unpeer`, until all is gone", func(t peering.Took) float64 { return t.Unpeer }},
	} {
		var all []float64
		for _, took := range r.Peerings {
			all = append(all, command.of(took))
		}
		b.row(command.name, fmt.Sprint(len(all)), fmt.Sprintf("%.1f", median(all)), fmt.Sprintf("%.1f", slices.Max(all)))
	}
}
