package main

import (
	"maps"
	"strings"
	"time"
)

// Scenario is what a whole scenario took, all its rounds and all systems together.
type Scenario struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// CPU seconds of our processes and of the floor, by name, and of both clusters' own together under "clusters".
	CPU map[string]float64 `json:"cpuSeconds"`
	// Peak is the most memory that each of our processes held, in MB; those of several virtual kubelets are added up.
	Peak map[string]float64 `json:"peakMB"`
	// Unfinished says that it did not come to its end.
	Unfinished bool `json:"unfinished,omitempty"`
}

// clustersName stands for all processes of both clusters.
const clustersName = "clusters"

// meter adds up what processes use, over all that had a name one after the other.
type meter struct {
	begun time.Time
	// last is what a process had used when it was last read.
	last map[int]float64
	cpu  map[string]float64
	peak map[string]float64
}

// startMeter begins a scenario.
func (b *bench) startMeter() {
	b.gauge()
	b.resetPeaks()
	b.meter.begun, b.meter.cpu, b.meter.peak = time.Now(), map[string]float64{}, map[string]float64{}
}

// gauge reads the processes; it has to be called before one is ended, or its peak forgotten.
func (b *bench) gauge() {
	m := &b.meter
	if m.last == nil {
		m.last, m.cpu, m.peak = map[int]float64{}, map[string]float64{}, map[string]float64{}
	}
	used := b.cpuSeconds()
	for name, pid := range b.processes() {
		as := name
		if b.own[name] == nil {
			as = clustersName
		}
		if now, read := used[name]; read {
			if now < m.last[pid] {
				m.last[pid] = 0 // another process with the id of one that ended
			}
			m.cpu[as] += now - m.last[pid]
			m.last[pid] = now
		}
	}
	for name, megabytes := range b.resident("VmHWM") {
		m.peak[name] = max(m.peak[name], megabytes)
	}
}

// stopMeter ends a scenario.
func (b *bench) stopMeter(name string, unfinished bool) Scenario {
	b.gauge()
	m := &b.meter
	return Scenario{Name: name, Seconds: round(time.Since(m.begun).Seconds()), Unfinished: unfinished, CPU: joined(m.cpu), Peak: joined(m.peak)}
}

// joined adds up the virtual kubelets.
func joined(of map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, value := range of {
		if strings.HasPrefix(name, kubeletName+" ") {
			name = kubeletName
		}
		out[name] += value
	}
	for name := range maps.Keys(out) {
		out[name] = round(out[name])
	}
	return out
}

// scenariosMarkdown is the table of what our processes took.
func (r *Report) scenariosMarkdown(p *page) {
	if len(r.Scenarios) == 0 {
		return
	}
	p.say("\nEvery scenario as a whole, with all its rounds and all systems in turn: minutes by the clock, CPU seconds, and the most memory that a process held (all virtual kubelets together). CPU seconds of *both clusters* are those of the API servers, etcd, Kubernetes' controllers, schedulers and kwok.")
	columns := []string{"scenario", "minutes"}
	names := []string{kubeletName, "rome liqo-controller-manager", "milan liqo-controller-manager", floorName}
	for _, title := range []string{"virtual kubelet", "consumer's controller manager", "provider's controller manager", "floor"} {
		columns = append(columns, title+" (CPU s)", "(peak MB)")
	}
	p.table(append(columns, "both clusters (CPU s)")...)
	for _, s := range r.Scenarios {
		name := s.Name
		if s.Unfinished {
			name += " (unfinished)"
		}
		cells := []string{name, text(s.Seconds/60, "%.1f")}
		for _, process := range names {
			cells = append(cells, of(s.CPU, process, "%.1f"), of(s.Peak, process, "%.0f"))
		}
		p.row(append(cells, of(s.CPU, clustersName, "%.0f"))...)
	}
}

// of is a value of a map, or that there is none.
func of(values map[string]float64, name, format string) string {
	value, there := values[name]
	if !there {
		return unknown
	}
	return text(value, format)
}
