package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	againFile = "again.json"
	// long is the time in seconds from which on a test of `make test` has a line in the table that says why.
	long = 20
	// shown is how many of the slowest tests are told.
	shown = 15
)

// outcome is how a top-level test went.
type outcome struct {
	Folder  string  `json:"folder"`
	Test    string  `json:"test"`
	Seconds float64 `json:"seconds"`
	// Failures is how often it failed, and Passed whether it passed at last.
	Failures int  `json:"failures"`
	Passed   bool `json:"-"`
	Skipped  bool `json:"-"`
}

// event is what go test -json writes (go doc test2json).
type event struct {
	Action, Package, Test string
	Elapsed               float64
}

const module = "liqo.io/liqo/"

func readFile(path string) ([]outcome, error) {
	results, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening results: %w", err)
	}
	defer results.Close()
	outcomes, err := read(results)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return outcomes, nil
}

// read gathers how top-level tests went, in the order in which they ended first, and how packages did that failed without one of their tests:
// because what they need did not start, or did not end. gotestsum runs none of their tests again, and is content.
func read(results io.Reader) ([]outcome, error) {
	var outcomes []outcome
	index := map[[2]string]int{}
	failed := map[string]bool{} // packages with a failed test since they started last
	of := func(folder, test string) *outcome {
		key := [2]string{folder, test}
		i, seen := index[key]
		if !seen {
			i = len(outcomes)
			index[key] = i
			outcomes = append(outcomes, outcome{Folder: folder, Test: test})
		}
		return &outcomes[i]
	}
	lines := bufio.NewScanner(results)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("parsing %q: %w", lines.Text(), err)
		}
		folder := strings.TrimPrefix(e.Package, module)
		switch {
		case e.Action == "start":
			failed[folder] = false
		case e.Test == "" && e.Action == "fail" && !failed[folder]:
			of(folder, withoutTest).Failures++
		case e.Test != "" && !strings.Contains(e.Test, "/") && slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
			o := of(folder, e.Test)
			o.Seconds = max(o.Seconds, e.Elapsed)
			o.Passed, o.Skipped = e.Action == "pass", e.Action == "skip"
			if e.Action == "fail" {
				o.Failures++
				failed[folder] = true
			}
		}
	}
	return outcomes, lines.Err()
}

// withoutTest stands for the test of a package that failed without one.
const withoutTest = "(the package, without one of its tests)"

// failures lists what failed and did not pass when it was run again.
func failures(all []outcome) (names []string) {
	for _, o := range all {
		if o.Failures > 0 && !o.Passed {
			names = append(names, o.Folder+" "+o.Test)
		}
	}
	return names
}

// passedAgain lists what failed and then passed.
func passedAgain(all []outcome) []outcome {
	again := []outcome{}
	for _, o := range all {
		if o.Passed && o.Failures > 0 {
			again = append(again, o)
		}
	}
	return again
}

// describe tells what took long, and what passed when run again.
func describe(out io.Writer, all, again []outcome, rows []row) {
	slowest := slices.Clone(all)
	slices.SortStableFunc(slowest, func(a, b outcome) int { return int(b.Seconds*100) - int(a.Seconds*100) })
	fmt.Fprintln(out, "\nslowest tests:")
	for _, o := range slowest[:min(shown, len(slowest))] {
		fmt.Fprintf(out, "  %6.1f s  %s %s\n", o.Seconds, o.Folder, o.Test)
	}
	listed := map[string]bool{}
	for _, r := range rows {
		name, _, _ := strings.Cut(r.test, "/")
		listed[r.folder+" "+name] = true
	}
	unlisted := slices.DeleteFunc(slowest, func(o outcome) bool { return o.Seconds <= long || listed[o.Folder+" "+o.Test] })
	if len(unlisted) > 0 {
		fmt.Fprintf(out, "\nover %d s without a line in %s (a busy machine, or a test to mend):\n", long, table)
		for _, o := range unlisted {
			fmt.Fprintf(out, "  %6.1f s  %s %s\n", o.Seconds, o.Folder, o.Test)
		}
	}
	fmt.Fprintln(out, "\npassed when run again:")
	for _, o := range again {
		fmt.Fprintf(out, "  %s %s\n", o.Folder, o.Test)
	}
	if len(again) == 0 {
		fmt.Fprintln(out, "  none")
	}
}

func readSeconds(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	seconds, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return seconds
}
