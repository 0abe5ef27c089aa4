package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"liqo.io/liqo/test/lab/binary"
)

// Report is everything that a run found out, as it is written in JSON.
type Report struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Command string    `json:"command"`
	Rounds  int       `json:"rounds"`
	// Rest is how long a virtual kubelet rested before its memory was read again.
	Rest     time.Duration     `json:"rest"`
	Machine  map[string]string `json:"machine"`
	Versions map[string]string `json:"versions"`
	// Load of the machine over the whole run.
	Load      Load        `json:"load"`
	Bursts    []Burst     `json:"bursts,omitempty"`
	Trickles  []Trickle   `json:"trickles,omitempty"`
	Objects   []Objects   `json:"objects,omitempty"`
	Endpoints []Endpoints `json:"endpoints,omitempty"`
	Restarts  []Restart   `json:"restarts,omitempty"`
	Floods    []Flood     `json:"floods,omitempty"`
	Idle      *Idle       `json:"idle,omitempty"`
	Scales    []Scale     `json:"scales,omitempty"`
	// Scenarios in the order in which they were run.
	Scenarios []Scenario `json:"scenarios,omitempty"`
	// Skipped names what was not measured, and why.
	Skipped []Skip `json:"skipped,omitempty"`
	Goals   []Goal `json:"goals"`
	Calls   []Call `json:"calls"`
}

// Skip is a scenario that was not run to its end.
type Skip struct {
	Scenario string `json:"scenario"`
	Why      string `json:"why"`
}

// Load is how busy the machine was, in percent of all its processors.
type Load struct {
	// Average is the kernel's load average over 1, 5 and 15 minutes.
	Average string  `json:"loadAverage"`
	Busy    float64 `json:"busyPercent"`
	// Stolen was taken by the machine's host, Others is what programs used that have nothing to do with the run.
	Stolen float64 `json:"stolenPercent"`
	Others float64 `json:"othersPercent"`
}

// Request is how often something is asked.
type Request struct {
	Cluster  string  `json:"cluster"`
	Agent    string  `json:"agent"`
	Verb     string  `json:"verb"`
	Resource string  `json:"resource"`
	Conflict bool    `json:"conflict,omitempty"`
	Try      bool    `json:"dryRun,omitempty"`
	Count    float64 `json:"count"`
}

func (r *Report) skip(scenario, why string) {
	r.Skipped = append(r.Skipped, Skip{scenario, why})
}

// begin notes where and with what the run takes place.
func (r *Report) begin(o options) {
	r.Started, r.Rounds, r.Rest, r.Command = time.Now().UTC().Truncate(time.Second), o.rounds, o.rest, "make bench"
	if len(os.Args) > 1 {
		r.Command += fmt.Sprintf(" BENCH_FLAGS='%s'", strings.Join(os.Args[1:], " "))
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	r.Machine = map[string]string{
		"processors": fmt.Sprintf("%d × %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name")),
		"memory":     field("/proc/meminfo", "MemTotal"),
		"kernel":     strings.TrimSpace(string(kernel)),
	}
	r.Versions = map[string]string{"go": runtime.Version(), "kubernetes": binary.KubernetesVersion, "liqo": commit()}
}

// field is the first value of a key in a file of lines "key: value".
func field(path, key string) string {
	data, _ := os.ReadFile(path)
	for _, line := range strings.Split(string(data), "\n") {
		name, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// commit is the checkout's; a run of changed files says so.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// write puts the report into the folder, as JSON and as Markdown.
func (r *Report) write(folder string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	for name, content := range map[string][]byte{"report.json": append(data, '\n'), "report.md": []byte(r.markdown())} {
		// A run that is killed meanwhile leaves the former report whole.
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// Marks between which a page holds the figures of a run.
const (
	pageBegin = "<!-- figures: begin (written by make bench) -->"
	pageEnd   = "<!-- figures: end -->"
)

// publish puts the figures into a page.
func (r *Report) publish(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the page for the figures: %w", err)
	}
	changed, err := place(string(page), r.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return fmt.Errorf("writing the page with the figures: %w", err)
	}
	return nil
}

// place replaces what stands between the marks.
func place(page, figures string) (string, error) {
	before, rest, opened := strings.Cut(page, pageBegin)
	_, after, closed := strings.Cut(rest, pageEnd)
	if !opened || !closed {
		return "", fmt.Errorf("the page does not have the lines %q and %q", pageBegin, pageEnd)
	}
	return before + pageBegin + "\n" + figures + pageEnd + after, nil
}
