package upstream

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Marks between which a page has the figures.
const (
	pageBegin = "<!-- figures: begin (written by make conformance) -->"
	pageEnd   = "<!-- figures: end -->"
)

// Report is what became of the tests at the provider and on the virtual node.
type Report struct {
	// Tests are the tests that were run.
	Tests []Test `json:"-"`
	// Processes is how many ran at a time.
	Processes int `json:"processes"`
	// Control are the outcomes straight at the provider, by name; nil without that run.
	Control map[string]Outcome `json:"control,omitempty"`
	// Virtual are the outcomes on the virtual node, by name; nil without that run.
	Virtual map[string]Outcome `json:"virtual,omitempty"`
	// ControlTook and VirtualTook are how long the two runs took.
	ControlTook time.Duration `json:"controlTook,omitempty"`
	VirtualTook time.Duration `json:"virtualTook,omitempty"`
	// Pods are those that started during the run on the virtual node.
	Pods Pods `json:"pods"`
}

// run is one of the two runs of a report.
type run struct {
	name     string
	outcomes map[string]Outcome
	expected func(Test) bool
	took     time.Duration
}

func (r *Report) runs() []run {
	var list []run
	if r.Control != nil {
		list = append(list, run{"at the provider", r.Control, func(t Test) bool { return t.FailsEverywhere }, r.ControlTook})
	}
	if r.Virtual != nil {
		list = append(list, run{"on the virtual node", r.Virtual, func(t Test) bool { return t.Fails != "" }, r.VirtualTook})
	}
	return list
}

// Err names the tests whose outcome was not expected, and pods that ran elsewhere than at the provider.
func (r *Report) Err() error {
	var errs []error
	for _, run := range r.runs() {
		for _, t := range r.Tests {
			if verdict, finding := Judge(run.outcomes[t.Name], run.expected(t)); finding {
				errs = append(errs, fmt.Errorf("%s, %s: %s", verdict, run.name, t.Name))
			}
		}
	}
	if r.Pods.Local > 0 {
		errs = append(errs, fmt.Errorf("%d pods of the tests did not run on the virtual node", r.Pods.Local))
	}
	return errors.Join(errs...)
}

// Write writes report.json and report.md into a folder.
func (r *Report) Write(folder string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder for the report: %w", err)
	}
	for name, content := range map[string]string{"report.json": string(data), "report.md": r.Markdown()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// Markdown renders the figures: how many passed, every test that did not, and the pods.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("| tests | run | passed | of them only when run again | expected failures | findings |\n|---|---|--:|--:|--:|--:|\n")
	for _, set := range []string{Conformance, Node} {
		for _, run := range r.runs() {
			r.row(&b, set, run)
		}
	}
	fmt.Fprintf(&b, "\n%d tests ran at a time", r.Processes)
	for _, run := range r.runs() {
		fmt.Fprintf(&b, ", %s for %s", run.name, run.took.Round(time.Second))
	}
	b.WriteString(".\n")
	if r.Virtual != nil {
		total := 0
		for _, n := range r.Pods.Remote {
			total += n
		}
		fmt.Fprintf(&b, "\n%d pods of the tests started at the provider (%s), %d on other nodes of the consumer.\n", total, byNode(r.Pods.Remote), r.Pods.Local)
	}
	r.failures(&b)
	return b.String()
}

// row is the line of one set of tests in one run.
func (r *Report) row(b *strings.Builder, set string, run run) {
	count := map[Verdict]int{}
	findings, all, again := 0, 0, 0
	for _, t := range r.Tests {
		if t.Set != set {
			continue
		}
		all++
		verdict, finding := Judge(run.outcomes[t.Name], run.expected(t))
		count[verdict]++
		if finding {
			findings++
		}
		if o := run.outcomes[t.Name]; o.Passed() && o.Before != "" {
			again++
		}
	}
	if all == 0 {
		return
	}
	fmt.Fprintf(b, "| %d %s | %s | %d | %d | %d | %d |\n", all, set, run.name, count[Passed]+count[PassedUnexpectedly], again,
		count[FailedAsExpected], findings)
}

// failures lists all tests that did not simply pass.
func (r *Report) failures(b *strings.Builder) {
	for _, run := range r.runs() {
		var rows []string
		for _, t := range r.Tests {
			outcome := run.outcomes[t.Name]
			verdict, _ := Judge(outcome, run.expected(t))
			why := cmp.Or(t.Fails, first(outcome.Message))
			if verdict == Passed {
				if outcome.Before == "" {
					continue
				}
				verdict, why = "passed when run again", outcome.Before
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", cell(t.Name), verdict, cell(why)))
		}
		if len(rows) > 0 {
			fmt.Fprintf(b, "\nWhat did not simply pass %s:\n\n| test | verdict | why |\n|---|---|---|\n%s", run.name, strings.Join(rows, ""))
		}
	}
}

// Publish puts the figures into a page.
func (r *Report) Publish(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the page for the figures: %w", err)
	}
	before, rest, opened := strings.Cut(string(page), pageBegin)
	_, after, closed := strings.Cut(rest, pageEnd)
	if !opened || !closed {
		return fmt.Errorf("%s does not have the lines %q and %q", path, pageBegin, pageEnd)
	}
	if err := os.WriteFile(path, []byte(before+pageBegin+"\n"+r.Markdown()+pageEnd+after), 0o644); err != nil {
		return fmt.Errorf("writing the page with the figures: %w", err)
	}
	return nil
}

// byNode renders counts in the order of their names.
func byNode(counts map[string]int) string {
	var parts []string
	for node, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", node, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// first is the first line of a message, of at most 200 characters.
func first(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if runes := []rune(line); len(runes) > 200 {
		line = string(runes[:200]) + "…"
	}
	return line
}

// cell makes a text fit into a table.
func cell(text string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text) }
