// Package flags keeps the lists of flags by which the chart checks arguments that users give to our programs: charts/liqo/files/flags, one
// file for each program, written by `go test ./cmd/... -run TestTheChartKnowsTheFlags -update`.
package flags

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the list of flags in the chart")

// Annotations of flags: the words that one takes, if it takes no others; the least and the largest number.
const (
	Words  = "words"
	Bounds = "bounds"
)

// Fresh fails the test unless the chart's list of a program's flags, each with its type, is that of the program. Flags that end the program
// are no arguments for users.
func Fresh(t *testing.T, program string, set *pflag.FlagSet) {
	t.Helper()
	var list strings.Builder
	fmt.Fprintf(&list, "# Generated from the flags of %s by its tests, with -update.\n", program)
	set.VisitAll(func(one *pflag.Flag) {
		if one.Name == "help" || one.Name == "version" {
			return
		}
		takes := one.Value.Type()
		if words := one.Annotations[Words]; len(words) > 0 {
			takes = strings.Join(words, "|")
		}
		if bounds := one.Annotations[Bounds]; len(bounds) > 0 {
			takes += " " + strings.Join(bounds, " ")
		}
		fmt.Fprintf(&list, "%s: %s\n", one.Name, takes)
		if one.Shorthand != "" && one.Shorthand != one.Name {
			fmt.Fprintf(&list, "%s: %s\n", one.Shorthand, takes)
		}
	})
	file := filepath.Join("..", "..", "charts", "liqo", "files", "flags", program+".yaml")
	if *update {
		if err := os.WriteFile(file, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), list.String()); diff != "" {
		t.Errorf("the chart knows other flags than %s has (-update writes them):\n%s", program, diff)
	}
}
