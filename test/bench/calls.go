package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Call compares one kind of call with its budget, which is the architecture's.
type Call struct {
	// Event that the calls are made for, and Where they go: home, provider or both.
	Event string `json:"event"`
	Where string `json:"where"`
	What  string `json:"what"`
	// Budget and Liqo are the calls that there may be and that there were; memory is in MB.
	Budget string `json:"budget"`
	Liqo   string `json:"liqo"`
	// Met is yes or no, and empty where the run does not tell.
	Met string `json:"met"`
}

// Where calls go.
const (
	atHome     = "home"
	atProvider = "provider"
	atBoth     = "both"
)

// call adds a line; of no value nothing is said. Values are compared as they are shown, with two decimals.
func (r *Report) call(event, where, what string, budget, value float64) {
	c := Call{Event: event, Where: where, What: what, Budget: fmt.Sprintf("≤ %g", budget), Liqo: unknown}
	if budget == 0 {
		c.Budget = "0"
	}
	if value >= 0 {
		c.Liqo = fmt.Sprintf("%.2f", value)
		c.Met = map[bool]string{true: "yes", false: "no"}[math.Round(100*value) <= math.Round(100*budget)]
	}
	r.Calls = append(r.Calls, c)
}

func (q *Request) kind() kind {
	return kind{Cluster: q.Cluster, Agent: q.Agent, Verb: q.Verb, Resource: q.Resource, Conflict: q.Conflict, Try: q.Try}
}

// counted adds up the requests that are asked for; below 0 if nothing was recorded.
func counted(rows []Request, of func(kind) bool) float64 {
	if rows == nil {
		return -1
	}
	sum := 0.0
	for i := range rows {
		if of(rows[i].kind()) {
			sum += rows[i].Count
		}
	}
	return round(sum)
}

// countedIn is the median of some rounds.
func countedIn(rounds [][]Request, of func(kind) bool) float64 {
	var values []float64
	for _, rows := range rounds {
		if value := counted(rows, of); value >= 0 {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return -1
	}
	return median(values)
}

// Who asks, and for what.

func (k kind) home() bool     { return k.Cluster == "rome" }
func (k kind) provider() bool { return k.Cluster == "milan" }
func (k kind) read() bool     { return (k.Verb == "get" || k.Verb == "list") && !k.path() }
func (k kind) path() bool     { return strings.HasPrefix(k.Resource, "/") }
func (k kind) event() bool    { return k.Resource == "events" }
func (k kind) does(verb, resource string) bool {
	return k.Verb == verb && k.Resource == resource
}

func ownWrites(where func(kind) bool, but ...func(kind) bool) func(kind) bool {
	return func(k kind) bool {
		return k.ofLiqo() && k.write() && where(k) && !slices.ContainsFunc(but, func(f func(kind) bool) bool { return f(k) })
	}
}

func ownReads(k kind) bool { return k.ofLiqo() && k.read() }

const shadowPods = "shadowpods.offloading.liqo.io"

// compare makes the table of calls from what was found out.
func (r *Report) compare() {
	r.Calls = nil
	r.comparePods()
	r.compareObjects()
	r.compareRest()
}

// rounds are the requests of each round of a sort of Liqo's bursts.
func (r *Report) rounds(s sort, of func(*Burst) []Request) [][]Request {
	var rounds [][]Request
	for i := range r.Bursts {
		if b := &r.Bursts[i]; b.System == liqo && b.sort() == s {
			rounds = append(rounds, of(b))
		}
	}
	return rounds
}

func (r *Report) comparePods() {
	s := sort{pods: r.largest(false, false)}
	status := func(k kind) bool { return k.Resource == "pods/status" }
	shadowStatus := func(k kind) bool { return k.Resource == shadowPods+"/status" }
	createShadow := func(k kind) bool { return k.does("create", shadowPods) }
	createPod := func(k kind) bool { return k.does("create", "pods") }
	event := fmt.Sprintf("a pod created, of %s at once", pods(s.pods))
	made := r.rounds(s, func(b *Burst) []Request { return b.CreateRows })
	for _, line := range []struct {
		where, what string
		budget      float64
		of          func(kind) bool
	}{
		{atHome, "writes of the pod's status", 2, func(k kind) bool { return ownWrites(kind.home)(k) && status(k) }},
		{atHome, "Events", 1, func(k kind) bool { return ownWrites(kind.home)(k) && k.event() }},
		{atHome, "other writes", 0, ownWrites(kind.home, status, kind.event)},
		{atProvider, "ShadowPod created", 1, func(k kind) bool { return ownWrites(kind.provider)(k) && createShadow(k) }},
		{atProvider, "Pod created", 1, func(k kind) bool { return ownWrites(kind.provider)(k) && createPod(k) }},
		{atProvider, "writes of the ShadowPod's status", 1, func(k kind) bool { return ownWrites(kind.provider)(k) && shadowStatus(k) }},
		{atProvider, "Events", 0, func(k kind) bool { return ownWrites(kind.provider)(k) && k.event() }},
		{atProvider, "other writes", 0, ownWrites(kind.provider, createShadow, createPod, shadowStatus, kind.event)},
		{atBoth, "get and list", 0, ownReads},
	} {
		r.call(event, line.where, line.what, line.budget, countedIn(made, line.of))
	}
	deleteShadow := func(k kind) bool { return k.does("delete", shadowPods) }
	deletePod := func(k kind) bool { return k.does("delete", "pods") }
	event = "a pod deleted"
	removed := r.rounds(s, func(b *Burst) []Request { return b.DeleteRows })
	// A kubelet writes both: without the first one nobody at home reads how the pod ended.
	r.call(event, atHome, "writes of the pod's status (its end)", 1, countedIn(removed, func(k kind) bool { return ownWrites(kind.home)(k) && status(k) }))
	r.call(event, atHome, "other writes (the final delete)", 1, countedIn(removed, ownWrites(kind.home, status)))
	r.call(event, atProvider, "ShadowPod deleted", 1, countedIn(removed, func(k kind) bool { return ownWrites(kind.provider)(k) && deleteShadow(k) }))
	r.call(event, atProvider, "Pod deleted, by Liqo or for its ShadowPod's sake (the node's own calls left out)", 1,
		countedIn(removed, func(k kind) bool { return k.provider() && deletePod(k) && k.Agent != "kwok" }))
	r.call(event, atProvider, "other writes", 0, countedIn(removed, ownWrites(kind.provider, deleteShadow, deletePod)))
}

func (r *Report) compareObjects() {
	var sizes []int
	for i := range r.Endpoints {
		if n := r.Endpoints[i].Endpoints; !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	for _, n := range sizes {
		var home, away []float64
		for i := range r.Endpoints {
			if e := &r.Endpoints[i]; e.Endpoints == n {
				home, away = append(home, float64(e.HomeWrites)), append(away, float64(e.AwayWrites))
			}
		}
		event, slices := fmt.Sprintf("a Service with %d endpoints", n), (n+perSlice-1)/perSlice
		r.call(event, atHome, "writes", 0, median(home))
		r.call(event, atProvider, fmt.Sprintf("writes: 1 Service, %d ShadowEndpointSlice and %d EndpointSlice", slices, slices), float64(1+2*slices), median(away))
	}
	most := r.mostObjects()
	for _, kind := range kindNames {
		for _, operation := range []struct{ name, done string }{{"create", "created"}, {"update", "changed"}} {
			event := fmt.Sprintf("a %s %s, of %d at once", kind.one, operation.done, most)
			r.call(event, atHome, "writes", 0, r.operation(kind.name, liqo, most, operation.name, func(o Operation) float64 { return o.HomeWrites }))
			r.call(event, atProvider, "writes", 1, r.operation(kind.name, liqo, most, operation.name, func(o Operation) float64 { return o.AwayWrites }))
		}
	}
}

// kindNames are the kinds of objects as a reader calls them.
var kindNames = []struct{ name, one string }{{"service", "Service"}, {"configmap", "ConfigMap"}, {"secret", "Secret"}}

// mostObjects is the largest number of objects that were reflected at once.
func (r *Report) mostObjects() int {
	most := 0
	for i := range r.Objects {
		most = max(most, r.Objects[i].Count)
	}
	return most
}

func (r *Report) compareRest() {
	var restarts [][]Request
	n := 0
	for i := range r.Restarts {
		restarts, n = append(restarts, append([]Request{}, r.Restarts[i].Rows...)), r.Restarts[i].Pods
	}
	event := fmt.Sprintf("the virtual kubelet restarted with %s", pods(n))
	r.call(event, atHome, "writes", 0, countedIn(restarts, ownWrites(kind.home)))
	r.call(event, atProvider, "writes", 0, countedIn(restarts, ownWrites(kind.provider)))

	event = "an empty offloaded namespace"
	memory, watches, _ := r.perNamespace()
	r.call(event, atHome, "watches", 4, watches)
	r.call(event, atHome, "MB of the virtual kubelet's memory", 0.1, memory)

	event = "idle, per minute and virtual node"
	var minutes [][]Request
	if r.Idle != nil {
		minutes = append(minutes, append([]Request{}, r.Idle.PerMinute...))
	}
	lease := func(k kind) bool { return k.ofLiqo() && k.home() && k.does("update", "leases.coordination.k8s.io") }
	// Of three probes one asks for our rights in place of the version.
	probe := func(k kind) bool {
		return k.Agent == kubeletAway && (k.path() || k.does("create", "selfsubjectaccessreviews.authorization.k8s.io"))
	}
	other := func(where func(kind) bool) func(kind) bool {
		return func(k kind) bool { return k.ofLiqo() && where(k) && !lease(k) && !probe(k) && k.Verb != "watch" }
	}
	r.call(event, atHome, "writes of the lease", 6, countedIn(minutes, lease))
	r.call(event, atHome, "other requests (watches that begin anew left out)", 0, countedIn(minutes, other(kind.home)))
	r.call(event, atProvider, "readiness probes", 6, countedIn(minutes, probe))
	r.call(event, atProvider, "other requests, also the controller manager's own probes of its peer (watches that begin anew left out)", 0, countedIn(minutes, other(kind.provider)))
}

// perNamespace is what an empty offloaded namespace takes: the virtual kubelet's memory in MB, and watches at home and away;
// below 0 if that was not measured.
func (r *Report) perNamespace() (memory, home, away float64) {
	var few, many *Scale
	for i := range r.Scales {
		if s := &r.Scales[i]; s.What == namespacesName {
			if few == nil {
				few = s
			}
			many = s
		}
	}
	if few == nil || many.Count <= few.Count {
		return -1, -1, -1
	}
	more := float64(many.Count - few.Count)
	return round(max(0, many.Own[kubeletName]-few.Own[kubeletName]) / more), round(max(0, float64(many.HomeWatches-few.HomeWatches)) / more),
		round(max(0, float64(many.AwayWatches-few.AwayWatches)) / more)
}

// callsMarkdown is the table of calls.
func (r *Report) callsMarkdown(p *page) {
	if !slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Met != "" }) {
		return
	}
	p.say("\n### Calls")
	p.say("Calls that Liqo makes for one event, beside the architecture's budgets. Counts are divided by the number of pods or objects, medians of the rounds; a figure that exceeds its budget in the second decimal does not meet it.")
	p.table("for", "at", "calls", "budget", "Liqo", "met")
	for _, c := range r.Calls {
		if c.Met == "" {
			continue // not measured
		}
		p.row(c.Event, c.Where, c.What, c.Budget, "**"+c.Liqo+"**", c.Met)
	}
}
