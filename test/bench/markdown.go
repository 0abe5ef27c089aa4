package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"liqo.io/liqo/test/lab/binary"
)

// page is a text in Markdown that grows.
type page struct{ strings.Builder }

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table starts a table.
func (p *page) table(columns ...string) {
	p.say("")
	p.row(columns...)
	p.row(slices.Repeat([]string{"---"}, len(columns))...)
}

func (p *page) row(cells ...string) { p.say("| %s |", strings.Join(cells, " | ")) }

// markdown is the report for readers.
func (r *Report) markdown() string {
	p := &page{}
	p.say("Measured on %s in %.0f minutes with `%s`, medians of %d rounds where nothing else is said.", r.Started.Format("2 January 2006, 15:04 UTC"), r.Seconds/60, r.Command, r.Rounds)
	p.say("Machine: %s, %s memory, Linux %s. Versions: Liqo %s, Kubernetes %s, %s.", r.Machine["processors"], r.Machine["memory"], r.Machine["kernel"],
		r.Versions["liqo"], r.Versions["kubernetes"], r.Versions["go"])
	p.say("Load: the processors were %.0f %% busy, %.0f %% with programs that have nothing to do with the run; the machine's host took %.0f %%; load average at the end %s.",
		r.Load.Busy, r.Load.Others, r.Load.Stolen, r.Load.Average)
	p.say("\n### Goals")
	p.table("figure", "vanilla", "floor", "best known before", "Liqo", "goal", "met")
	for _, g := range r.Goals {
		if g.Met == "" {
			continue // Its scenario was not asked for, or is among what was not measured.
		}
		p.row(g.Figure, g.Vanilla, g.Floor, g.Known, "**"+g.Liqo+"**", g.Wanted, g.Met)
	}
	r.callsMarkdown(p)
	r.podsMarkdown(p)
	r.objectsMarkdown(p)
	r.requestsMarkdown(p)
	r.resourcesMarkdown(p)
	if len(r.Skipped) > 0 {
		p.say("\n### Not measured")
		for _, s := range r.Skipped {
			p.say("* %s: %s", s.Scenario, s.Why)
		}
	}
	return p.String()
}

// sort is what bursts have in common that are compared.
type sort struct {
	pods          int
	bare, limited bool
}

func (b *Burst) sort() sort { return sort{b.Pods, b.Bare, b.Limited} }

func (s sort) String() string {
	name := fmt.Sprintf("%d", s.pods)
	if s.bare {
		name += fmt.Sprintf(", bare, %d writers", writers)
	}
	if s.limited {
		name += ", default limits"
	}
	return name
}

func (r *Report) sorts() []sort {
	var sorts []sort
	for _, b := range r.Bursts {
		if s := b.sort(); !slices.Contains(sorts, s) {
			sorts = append(sorts, s)
		}
	}
	return sorts
}

func (r *Report) podsMarkdown(p *page) {
	p.say("\n### Pods")
	p.say("Seconds from the request to the last pod ready, and from the request for deletion until all are gone from both clusters.")
	p.table("pods", "system", "rounds", "ready (s)", "÷ vanilla", "gone (s)", "÷ vanilla", "writes, create", "writes, delete", "conflicts per 100", "CPU per pod (ms)", "others on the machine")
	value := func(s sort, system string, of func(*Burst) float64) float64 {
		return r.burst(system, s.pods, s.bare, s.limited, of)
	}
	readyOf, goneOf := func(b *Burst) float64 { return b.Ready }, func(b *Burst) float64 { return b.Gone }
	for _, s := range r.sorts() {
		for _, system := range []string{vanilla, floorName, liqo} {
			if value(s, system, readyOf) < 0 {
				continue
			}
			p.row(s.String(), system, fmt.Sprint(r.turns(s, system)), text(value(s, system, readyOf), "%.1f"), text(over(value(s, system, readyOf), value(s, vanilla, readyOf)), "%.2f"),
				text(value(s, system, goneOf), "%.1f"), text(over(value(s, system, goneOf), value(s, vanilla, goneOf)), "%.2f"),
				text(value(s, system, func(b *Burst) float64 { return b.CreateWrites }), "%.2f"), text(value(s, system, func(b *Burst) float64 { return b.DeleteWrites }), "%.2f"),
				text(value(s, system, func(b *Burst) float64 { return b.Conflicts }), "%.1f"), text(value(s, system, func(b *Burst) float64 { return b.CPUPerPod }), "%.0f"),
				text(value(s, system, func(b *Burst) float64 { return b.Load.Others }), "%.0f %%"))
		}
	}
	p.say("\nWhere the time goes, in milliseconds, p50 / p90 / p99 (medians over the rounds):")
	p.table("pods", "system", "created → bound", "bound → ShadowPod", "ShadowPod → remote pod", "bound → remote pod", "remote pod → remote ready", "remote ready → local ready", "created → ready")
	for _, s := range r.sorts() {
		for _, system := range []string{vanilla, floorName, liqo} {
			if value(s, system, readyOf) < 0 {
				continue
			}
			cells := []string{s.String(), system}
			for _, stage := range []string{"created → bound", "bound → ShadowPod", "ShadowPod → remote pod", "bound → remote pod", "remote pod → remote ready", "remote ready → local ready", "created → ready"} {
				cells = append(cells, r.stage(s, system, stage))
			}
			p.row(cells...)
		}
	}
	if len(r.Trickles) > 0 {
		p.say("\nLone pods, four a second, created → ready:")
		p.table("system", "p50 (ms)", "p90 (ms)", "p99 (ms)", "pods")
		for _, t := range r.Trickles {
			p.row(t.System, fmt.Sprint(t.Ready.P50), fmt.Sprint(t.Ready.P90), fmt.Sprint(t.Ready.P99), fmt.Sprint(t.Ready.N))
		}
	}
}

// turns is how many rounds a system had.
func (r *Report) turns(s sort, system string) int {
	n := 0
	for i := range r.Bursts {
		if b := &r.Bursts[i]; b.System == system && b.sort() == s {
			n++
		}
	}
	return n
}

func (r *Report) stage(s sort, system, stage string) string {
	none := false
	at := func(of func(Quantiles) float64) string {
		return text(r.burst(system, s.pods, s.bare, s.limited, func(b *Burst) float64 {
			q, there := b.Stages[stage]
			none = none || !there
			return of(q)
		}), "%.0f")
	}
	all := at(func(q Quantiles) float64 { return q.P50 }) + " / " + at(func(q Quantiles) float64 { return q.P90 }) + " / " + at(func(q Quantiles) float64 { return q.P99 })
	if none {
		return unknown
	}
	return all
}

func (r *Report) objectsMarkdown(p *page) {
	if len(r.Objects) > 0 {
		p.say("\n### Objects")
		p.say("From the request until the provider shows the result; floor is the harness writing each object at home and then to the provider itself. A lone object is updated again and again at 20 a second.")
		p.table("kind", "count", "system", "operation", "p50 (ms)", "p99 (ms)", "per second", "writes at home", "writes at the provider")
		seen := map[string]bool{}
		for _, o := range r.Objects {
			if key := fmt.Sprint(o.Kind, o.Count, o.System); seen[key] {
				continue
			} else {
				seen[key] = true
			}
			for _, name := range []string{"create", "update", "delete"} {
				if r.operation(o.Kind, o.System, o.Count, name, func(Operation) float64 { return 0 }) < 0 {
					continue // no round came to that
				}
				at := func(of func(Operation) float64, format string) string {
					return text(r.operation(o.Kind, o.System, o.Count, name, of), format)
				}
				p.row(o.Kind, fmt.Sprint(o.Count), o.System, name, at(func(o Operation) float64 { return o.Latency.P50 }, "%.1f"), at(func(o Operation) float64 { return o.Latency.P99 }, "%.1f"),
					at(func(o Operation) float64 { return o.Rate }, "%.0f"), at(func(o Operation) float64 { return o.HomeWrites }, "%.2f"), at(func(o Operation) float64 { return o.AwayWrites }, "%.2f"))
			}
		}
	}
	if len(r.Endpoints) > 0 {
		p.say("\nA Service with its EndpointSlices, until the provider has them all (every round):")
		p.table("endpoints", "seconds", "writes at home", "writes at the provider")
		for _, e := range r.Endpoints {
			p.row(fmt.Sprint(e.Endpoints), fmt.Sprint(e.Seconds), fmt.Sprint(e.HomeWrites), fmt.Sprint(e.AwayWrites))
		}
	}
}

// requestsMarkdown lists who asks what for a pod, for an object, at a restart, and while nothing happens.
func (r *Report) requestsMarkdown(p *page) {
	n := r.largest(false, false)
	p.say("\n### Requests")
	for _, phase := range []struct {
		name string
		of   func(*Burst) []Request
	}{{"created", func(b *Burst) []Request { return b.CreateRows }}, {"deleted", func(b *Burst) []Request { return b.DeleteRows }}} {
		for i := len(r.Bursts) - 1; i >= 0; i-- {
			if b := &r.Bursts[i]; b.System == liqo && b.sort() == (sort{pods: n}) && phase.of(b) != nil {
				p.say("\nRequests per pod %s, of %d at once, in the last round: the writes of everybody, and all requests of Liqo (0.01 and more):", phase.name, n)
				p.requests(phase.of(b), 0.01)
				break
			}
		}
	}
	r.objectRequestsMarkdown(p)
	if len(r.Restarts) > 0 {
		last := r.Restarts[len(r.Restarts)-1]
		p.say("\nRequests of Liqo in the %.0f seconds after its virtual kubelet was killed and started with %d pods in place, the other components running on (%d of them count as writes):", calm.Seconds(), last.Pods, last.Writes)
		p.requests(last.Rows, 0)
		p.table("round", "a new pod is ready (s)", "a remote status is home (s)", "memory without pods (MB)", "of that not the program file (MB)", "with them (MB)", "of that not the program file (MB)", "with them, after a restart (MB)")
		for i, restart := range r.Restarts {
			p.row(fmt.Sprint(i+1), fmt.Sprint(restart.NewPod), fmt.Sprint(restart.StatusHome), fmt.Sprint(restart.Idle), fmt.Sprint(restart.IdleOwn), fmt.Sprint(restart.Loaded), fmt.Sprint(restart.LoadedOwn), fmt.Sprint(restart.Fresh))
		}
	}
	r.floodsMarkdown(p)
	if r.Idle != nil {
		p.say("\nRequests of Liqo per minute while nothing happens (over %.0f s):", r.Idle.Seconds)
		p.requests(r.Idle.PerMinute, 0)
	}
}

// floodsMarkdown shows what the provider's own requests take while a consumer makes as many as it can.
func (r *Report) floodsMarkdown(p *page) {
	if len(r.Floods) == 0 {
		return
	}
	p.say("\nCommands of the provider's administrator with kubectl, one after the other, before and while %d workers of one consumer ask as fast as they get answers, or have %d watches open:", floodWorkers, floodWorkers*watchesEach)
	p.table("flood of", "p50, idle (ms)", "p99, idle (ms)", "p50, flood (ms)", "p99, flood (ms)", "requests of the consumer per second")
	for _, f := range r.Floods {
		p.row(f.By, fmt.Sprint(f.Idle.P50), fmt.Sprint(f.Idle.P99), fmt.Sprint(f.During.P50), fmt.Sprint(f.During.P99), fmt.Sprintf("%.0f", f.PerSecond))
	}
}

// objectRequestsMarkdown lists who asks what for a reflected object, when most of them are created at once.
func (r *Report) objectRequestsMarkdown(p *page) {
	for _, kind := range kindNames {
		for i := len(r.Objects) - 1; i >= 0; i-- {
			o := &r.Objects[i]
			created, finished := o.Operations["create"]
			if !finished || o.Kind != kind.name || o.System != liqo || o.Count != r.mostObjects() {
				continue
			}
			p.say("\nRequests per %s created, of %d at once, in the last round: the writes of everybody, and all requests of Liqo (0.01 and more):", kind.one, o.Count)
			p.requests(created.Requests, 0.01)
			break
		}
	}
	if len(r.Endpoints) > 0 {
		e := &r.Endpoints[len(r.Endpoints)-1]
		p.say("\nRequests for one Service with %d endpoints, in the last round: the writes of everybody, and all requests of Liqo:", e.Endpoints)
		p.requests(e.Requests, 0)
	}
}

func (p *page) requests(rows []Request, least float64) {
	p.table("count", "verb", "resource", "by", "at")
	for _, request := range rows {
		if request.Count < least {
			continue
		}
		verb := request.Verb
		if request.Conflict {
			verb += " (conflict)"
		}
		if request.Try {
			verb += " (dry run)"
		}
		p.row(fmt.Sprintf("%.2f", request.Count), verb, request.Resource, request.Agent, request.Cluster)
	}
}

// relative is all processor time in units of what Kubernetes' controllers, its schedulers and kwok used in the same seconds. These do the same
// for each version of Liqo, so that two versions are compared although the machine is faster in one hour than in another.
func relative(seconds map[string]float64) string {
	all, same := 0.0, 0.0
	for name, used := range seconds {
		all += used
		if slices.ContainsFunc([]string{binary.ControllerManager, binary.Scheduler, binary.Kwok}, func(program string) bool { return strings.HasSuffix(name, "/"+program) }) {
			same += used
		}
	}
	if same == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", all/same)
}

func (r *Report) resourcesMarkdown(p *page) {
	p.say("\n### Processor time and memory")
	n := r.largest(false, false)
	used := map[string]map[string]float64{}
	peaks := map[string]float64{}
	for i := range r.Bursts {
		if b := &r.Bursts[i]; b.sort() == (sort{pods: n}) {
			used[b.System] = b.CreateCPU
			if b.System == liqo {
				peaks = b.Peak
			}
		}
	}
	if len(used) > 0 {
		p.say("CPU seconds for the creation of %d pods (last round), and the most memory that our processes held meanwhile:", n)
		p.table("process", vanilla, floorName, liqo, "peak (MB)")
		for _, name := range slices.Sorted(maps.Keys(used[liqo])) {
			peak := ""
			if peaks[name] > 0 {
				peak = fmt.Sprintf("%.0f", peaks[name])
			}
			p.row(name, fmt.Sprint(used[vanilla][name]), fmt.Sprint(used[floorName][name]), fmt.Sprint(used[liqo][name]), peak)
		}
		p.row("all ÷ Kubernetes' controllers", relative(used[vanilla]), relative(used[floorName]), relative(used[liqo]), "")
	}
	r.scenariosMarkdown(p)
	if len(r.Scales) == 0 {
		return
	}
	p.say("\nSize, once (all virtual kubelets together; watches of all clients; each namespace is offloaded to every virtual node):")
	p.table("what", "count", "offloaded namespaces", "virtual kubelets (MB)", "of that not the program file (MB)", "consumer's controller manager (MB)", "provider's controller manager (MB)", "watches at home", "watches away", "seconds to get there")
	for _, s := range r.Scales {
		p.row(s.What, fmt.Sprint(s.Count), fmt.Sprint(s.Namespaces), fmt.Sprintf("%.0f", s.Memory[kubeletName]), fmt.Sprintf("%.1f", s.Own[kubeletName]), fmt.Sprintf("%.0f", s.Memory["rome liqo-controller-manager"]),
			fmt.Sprintf("%.0f", s.Memory["milan liqo-controller-manager"]), fmt.Sprint(s.HomeWatches), fmt.Sprint(s.AwayWatches), fmt.Sprint(s.Seconds))
	}
}
