package main

import (
	"fmt"
	"slices"
)

// Goal is one line of the table of goals.
type Goal struct {
	Figure string `json:"figure"`
	// Vanilla and Floor are what the same costs without Liqo, and with the least that a virtual kubelet can do.
	Vanilla string `json:"vanilla"`
	Floor   string `json:"floor"`
	Known   string `json:"bestKnownBefore"`
	Liqo    string `json:"liqo"`
	Wanted  string `json:"goal"`
	// Met is yes or no, and empty where the run does not tell.
	Met string `json:"met"`
}

const unknown = "–"

// judge makes the table of goals from what was found out.
func (r *Report) judge() {
	r.Goals = nil
	r.judgePods()
	r.judgeRequests()
	r.judgeObjects()
	r.judgeFloods()
	r.judgeMemory()
	r.compare()
}

// add makes a line; of no value nothing is said.
func (r *Report) add(figure, vanilla, floor, known string, value float64, format string, met bool, wanted string) {
	g := Goal{Figure: figure, Vanilla: vanilla, Floor: floor, Known: known, Liqo: unknown, Wanted: wanted}
	if value >= 0 {
		g.Liqo = fmt.Sprintf(format, value)
		g.Met = map[bool]string{true: "yes", false: "no"}[met]
	}
	r.Goals = append(r.Goals, g)
}

// judged is the number of pods that goals are judged by, where there are bursts of it.
const judged = 1000

// largest is the number of pods of bursts of a sort that is judged: the greatest, if there is none of the goals' size.
func (r *Report) largest(bare, limited bool) int {
	var sizes []int
	for i := range r.Bursts {
		if b := &r.Bursts[i]; b.Bare == bare && b.Limited == limited {
			sizes = append(sizes, b.Pods)
		}
	}
	return size(sizes)
}

func size(sizes []int) int {
	switch {
	case len(sizes) == 0:
		return 0
	case slices.Contains(sizes, judged):
		return judged
	default:
		return slices.Max(sizes)
	}
}

// burst is the median over the rounds of a sort of bursts; below 0 if there were none.
func (r *Report) burst(system string, n int, bare, limited bool, of func(*Burst) float64) float64 {
	var values []float64
	for i := range r.Bursts {
		if b := &r.Bursts[i]; b.System == system && b.sort() == (sort{n, bare, limited}) {
			if value := of(b); value >= 0 {
				values = append(values, value)
			}
		}
	}
	if len(values) == 0 {
		return -1
	}
	return median(values)
}

func over(value, base float64) float64 {
	if value < 0 || base <= 0 {
		return -1
	}
	return round(value / base)
}

func text(value float64, format string) string {
	if value < 0 {
		return unknown
	}
	return fmt.Sprintf(format, value)
}

func pods(n int) string {
	if n == 0 {
		return "pods"
	}
	return fmt.Sprintf("%d pods", n)
}

func (r *Report) judgePods() {
	readySeconds := func(b *Burst) float64 { return b.Ready }
	for _, mode := range []struct {
		limited     bool
		name, known string
		wanted      float64
	}{{true, "at their defaults", "3.4", 1.05}, {false, "lifted", "4", 1.6}} {
		n := r.largest(false, mode.limited)
		base := r.burst(vanilla, n, false, mode.limited, readySeconds)
		ratio := over(r.burst(liqo, n, false, mode.limited, readySeconds), base)
		r.add(fmt.Sprintf("%s of a Deployment, creation → all ready ÷ vanilla, limits of Kubernetes' controllers %s", pods(n), mode.name),
			"1 ("+text(base, "%.1f s")+")", text(over(r.burst(floorName, n, false, mode.limited, readySeconds), base), "%.2f"),
			mode.known, ratio, "%.2f", ratio <= mode.wanted, fmt.Sprintf("≤ %.2f", mode.wanted))
	}
	n := r.largest(false, false)
	base := r.burst(floorName, n, false, false, readySeconds)
	ratio := over(r.burst(liqo, n, false, false, readySeconds), base)
	r.add("the same, lifted, ÷ floor", unknown, "1 ("+text(base, "%.1f s")+")", "2.8", ratio, "%.2f", ratio <= 1.15, "≤ 1.15")

	n = r.largest(true, false)
	base = r.burst(vanilla, n, true, false, readySeconds)
	ratio = over(r.burst(liqo, n, true, false, readySeconds), base)
	r.add(fmt.Sprintf("%s without a Deployment, from %d writers, ÷ vanilla", pods(n), writers), "1 ("+text(base, "%.1f s")+")",
		text(over(r.burst(floorName, n, true, false, readySeconds), base), "%.2f"), "10", ratio, "%.2f", ratio <= 2.5, "≤ 2.5")

	cpu := func(b *Burst) float64 { return b.CPUPerPod }
	n = r.largest(false, false)
	base = r.burst(vanilla, n, false, false, cpu)
	ratio = over(r.burst(liqo, n, false, false, cpu), base)
	r.add("CPU per offloaded pod, everything on both sides ÷ vanilla", "1 ("+text(base, "%.0f ms")+")",
		text(over(r.burst(floorName, n, false, false, cpu), base), "%.2f"), "5.1", ratio, "%.2f", ratio <= 2, "≤ 2")

	lone := func(system string) float64 {
		for _, t := range r.Trickles {
			if t.System == system {
				return t.Ready.P50
			}
		}
		return -1
	}
	r.add("lone pod, creation → ready, p50", text(lone(vanilla), "%.1f ms"), text(lone(floorName), "%.1f ms"), "111–132 ms",
		lone(liqo), "%.1f ms", lone(liqo) <= 58, "≤ 58 ms")
	back := func(b *Burst) float64 { return b.Stages["remote ready → local ready"].P50 }
	value := r.burst(liqo, n, false, false, back)
	r.add("remote ready → local ready under a burst, p50", unknown, text(r.burst(floorName, n, false, false, back), "%.0f ms"), "13 s",
		value, "%.0f ms", value <= 500, "≤ 500 ms")
}

func (r *Report) judgeRequests() {
	n := r.largest(false, false)
	for _, part := range []struct {
		name, known string
		of          func(*Burst) float64
		wanted      float64
	}{
		{"write requests per pod, both sides together, create", "27", func(b *Burst) float64 { return b.CreateWrites }, 9.5},
		{"write requests per pod, both sides together, delete", "9.6", func(b *Burst) float64 { return b.DeleteWrites }, 7},
		{"Events written per healthy pod at the consumer", "7.7", func(b *Burst) float64 { return b.Events }, 2},
		{"writes of Liqo refused as conflicts per 100 pods", "26", func(b *Burst) float64 { return b.OwnConflicts }, 0},
	} {
		value := r.burst(liqo, n, false, false, part.of)
		r.add(part.name, text(r.burst(vanilla, n, false, false, part.of), "%.1f"), text(r.burst(floorName, n, false, false, part.of), "%.1f"),
			part.known, value, "%.2f", value <= part.wanted, fmt.Sprintf("≤ %.3g", part.wanted))
	}
	var writes, fresh, home []float64
	n = 0
	for _, restart := range r.Restarts {
		writes, fresh, home, n = append(writes, float64(restart.Writes)), append(fresh, restart.NewPod), append(home, restart.StatusHome), restart.Pods
	}
	if len(writes) == 0 {
		return
	}
	what := fmt.Sprintf("virtual kubelet restarted with %s: ", pods(n))
	r.add(what+"writes on both sides", unknown, unknown, "3800", median(writes), "%.0f", median(writes) == 0, "0")
	r.add(what+"a new pod is ready after", unknown, unknown, "52–64 s", median(fresh), "%.1f s", median(fresh) <= 2, "≤ 2 s")
	r.add(what+"a remote status is home after", unknown, unknown, unknown, median(home), "%.1f s", median(home) <= 2, "≤ 2 s")
}

// operation is the median over the rounds of what was measured of some objects; below 0 if there were none.
func (r *Report) operation(kind, system string, count int, name string, of func(Operation) float64) float64 {
	var values []float64
	for _, o := range r.Objects {
		operation, finished := o.Operations[name]
		if finished && o.Kind == kind && o.System == system && o.Count == count {
			values = append(values, of(operation))
		}
	}
	if len(values) == 0 {
		return -1
	}
	return median(values)
}

func (r *Report) judgeObjects() {
	most := r.mostObjects()
	rate := func(o Operation) float64 { return o.Rate }
	for _, k := range []struct {
		kind, name, known string
		wanted            float64
	}{{"configmap", "ConfigMaps", "70", 200}, {"secret", "Secrets", "67", 200}, {"service", "Services", "20", 100}} {
		value := r.operation(k.kind, liqo, most, "create", rate)
		r.add(fmt.Sprintf("%s reflected per second in a burst of %d", k.name, most), unknown, text(r.operation(k.kind, floorName, most, "create", rate), "%.0f"),
			k.known, value, "%.0f", value >= k.wanted, fmt.Sprintf("≥ %.0f", k.wanted))
	}
	writes := r.operation("configmap", liqo, most, "create", func(o Operation) float64 { return o.AwayWrites })
	r.add("provider writes per reflected object", unknown, "1", "2", writes, "%.2f", writes <= 1, "1")
	p50Of, p99Of := func(o Operation) float64 { return o.Latency.P50 }, func(o Operation) float64 { return o.Latency.P99 }
	p50, p99 := r.operation("configmap", liqo, 1, "update", p50Of), r.operation("configmap", liqo, 1, "update", p99Of)
	r.add("one ConfigMap on an idle system, p50", unknown, text(r.operation("configmap", floorName, 1, "update", p50Of), "%.1f ms"),
		"7 ms", p50, "%.1f ms", p50 <= 7, "≤ 7 ms")
	r.add("one ConfigMap on an idle system, p99", unknown, text(r.operation("configmap", floorName, 1, "update", p99Of), "%.1f ms"),
		"28 ms", p99, "%.1f ms", p99 <= 28, "≤ 28 ms")
}

func (r *Report) judgeFloods() {
	for _, by := range floods {
		ratio := -1.0
		if i := slices.IndexFunc(r.Floods, func(f Flood) bool { return f.By == by }); i >= 0 {
			ratio = over(r.Floods[i].During.P99, r.Floods[i].Idle.P99)
		}
		r.add("the provider's own kubectl while one consumer floods its API server, p99 ÷ idle: "+by, unknown, unknown, unknown, ratio, "%.1f", ratio <= 2, "≤ 2")
	}
}

func (r *Report) judgeMemory() {
	memory, watches, _ := r.perNamespace()
	r.add("an empty offloaded namespace: memory of the virtual kubelet", unknown, unknown, "1.75 MB", memory, "%.3f MB", memory <= 0.1, "≤ 0.1 MB")
	r.add("an empty offloaded namespace: watches at home", unknown, unknown, "12", watches, "%.1f", watches <= 4, "≤ 4")

	var idle, own, perPod []float64
	rested := -1.0
	for _, restart := range r.Restarts {
		idle, own = append(idle, restart.Idle), append(own, restart.IdleOwn)
		perPod = append(perPod, 1000*(restart.LoadedOwn-restart.IdleOwn)/float64(restart.Pods))
		if restart.RestLoadedOwn > 0 {
			rested = max(0, 1000*(restart.RestLoadedOwn-restart.RestIdleOwn)/float64(restart.Pods))
		}
	}
	whole, private, each := -1.0, -1.0, -1.0
	if len(idle) > 0 {
		whole, private, each = median(idle), median(own), max(0, median(perPod))
	}
	all, allOwn := -1.0, -1.0
	if r.Idle != nil {
		all, allOwn = ofLiqo(r.Idle.Memory), ofLiqo(r.Idle.Own)
	}
	r.add("memory of the virtual kubelet", unknown, unknown, "75 MB", whole, "%.0f MB", whole <= 40, "≤ 40 MB")
	r.add("… without the pages of the program file", unknown, unknown, unknown, private, "%.0f MB", private <= 40, "≤ 40 MB")
	r.add("memory of the virtual kubelet per further pod, right after a burst", unknown, unknown, "140 KB", each, "%.1f KB", each <= 15, "≤ 15 KB")
	r.add(fmt.Sprintf("… after %s of rest", r.Rest), unknown, unknown, unknown, rested, "%.1f KB", rested <= 15, "≤ 15 KB")
	r.add("memory of everything of ours on both clusters, idle", unknown, unknown, "430 MB", all, "%.0f MB", all <= 150, "≤ 150 MB")
	r.add("… without the pages of the program files", unknown, unknown, unknown, allOwn, "%.0f MB", allOwn <= 150, "≤ 150 MB")
}

// ofLiqo adds up what is not the floor's.
func ofLiqo(memory map[string]float64) float64 {
	sum := 0.0
	for name, megabytes := range memory {
		if name != "floor" {
			sum += megabytes
		}
	}
	return sum
}
