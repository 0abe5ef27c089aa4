package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root of the repository.
const root = "../.."

// rows are those of a table, each of so many cells. Lines that begin with # are comments.
func rows(t *testing.T, name string, cells int) [][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for i, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != cells {
			t.Fatalf("%s:%d: not a row of %d cells with tabs between them: %q", name, i+1, cells, line)
		}
		all = append(all, row)
	}
	return all
}

// exceptions is a table of what is not as in v1: the difference, and why. A difference that ends with * stands for all that begin so.
type exceptions struct {
	file string
	// atMost is how many rows the table has: lower it with each that goes.
	atMost int
}

// explain fails the test for each difference that the table does not explain, and for each row that explains none.
func (e exceptions) explain(t *testing.T, of int, differences []string) {
	t.Helper()
	table := map[string]string{}
	for _, row := range rows(t, e.file, 2) {
		if table[row[0]] != "" {
			t.Errorf("%s: a second row about %q", e.file, row[0])
		}
		table[row[0]] = row[1]
	}
	for _, problem := range unexplained(table, e.atMost, differences) {
		t.Errorf("%s: %s", e.file, problem)
	}
	t.Logf("of %d facts of Liqo v1.2, %d are otherwise here, for %d reasons", of, len(differences), len(table))
}

// unexplained tells what is wrong with a table of exceptions.
func unexplained(table map[string]string, atMost int, differences []string) (problems []string) {
	used := map[string]bool{}
	for _, difference := range differences {
		key := difference
		if table[key] == "" {
			for row := range table {
				if begin, is := strings.CutSuffix(row, "*"); is && strings.HasPrefix(difference, begin) {
					key = row
				}
			}
		}
		if used[key] = true; table[key] == "" {
			problems = append(problems, difference+": not as in Liqo v1, and no row says why")
		}
	}
	for row, reason := range table {
		if !used[row] {
			problems = append(problems, row+": as in Liqo v1, thank you: remove its row")
		}
		if !strings.HasSuffix(reason, ".") || len(strings.Fields(reason)) < 4 {
			problems = append(problems, row+": the reason is no sentence: "+reason)
		}
	}
	if len(table) > atMost {
		problems = append(problems, fmt.Sprintf("%d rows, and there were %d: the table may only shrink", len(table), atMost))
	}
	if len(table) < atMost {
		problems = append(problems, fmt.Sprintf("%d rows, thank you: lower the number %d in the test", len(table), atMost))
	}
	slices.Sort(problems)
	return problems
}

func TestTablesOfExceptionsShrink(t *testing.T) {
	why := "It has a good reason."
	for sentence, test := range map[string]struct {
		table       map[string]string
		atMost      int
		differences []string
		want        string
	}{
		"nothing differs":                    {nil, 0, nil, ""},
		"what differs is explained":          {map[string]string{"a": why}, 1, []string{"a"}, ""},
		"one row explains several":           {map[string]string{"a.*": why}, 1, []string{"a.b", "a.c"}, ""},
		"nobody says why":                    {nil, 0, []string{"a"}, "a: not as in Liqo v1, and no row says why"},
		"a row that explains nothing":        {map[string]string{"a": why}, 1, nil, "a: as in Liqo v1, thank you: remove its row"},
		"a row more":                         {map[string]string{"a": why, "b": why}, 1, []string{"a", "b"}, "2 rows, and there were 1: the table may only shrink"},
		"a row less":                         {map[string]string{"a": why}, 2, []string{"a"}, "1 rows, thank you: lower the number 2 in the test"},
		"a word in place of a sentence":      {map[string]string{"a": "because"}, 1, []string{"a"}, "a: the reason is no sentence: because"},
		"a row for others that begin alike":  {map[string]string{"a.*": why}, 1, []string{"a.b", "ab"}, "ab: not as in Liqo v1, and no row says why"},
		"a row of several that explain none": {map[string]string{"a.*": why}, 1, nil, "a.*: as in Liqo v1, thank you: remove its row"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := strings.Join(unexplained(test.table, test.atMost, test.differences), "\n"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
