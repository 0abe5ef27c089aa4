package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// Tiers of tests, as their make targets are called.
const (
	tierTest = "test"
	tierAll  = "all"
)

// row is a line of test/tiers.tsv, whose header says what the columns mean.
type row struct{ tier, folder, test, why string }

// readTiers reads the table of tiers; without a table there is nothing to leave out.
func readTiers(path string) ([]row, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the tiers of tests: %w", err)
	}
	var rows []row
	for number, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			return nil, fmt.Errorf("%s:%d: want 4 columns divided by tabs, found %d", path, number+1, len(columns))
		}
		rows = append(rows, row{columns[0], columns[1], columns[2], columns[3]})
	}
	return rows, nil
}

// skipped is the expression of go test's -skip for the tests that a tier leaves out; empty if it has all.
func skipped(rows []row, tier string) string {
	if tier == tierAll {
		return ""
	}
	var expressions []string
	for _, r := range rows {
		if r.tier != tierAll {
			continue
		}
		parts := strings.Split(r.test, "/")
		for i, part := range parts {
			// As package testing shows names of subtests.
			parts[i] = "^" + regexp.QuoteMeta(strings.ReplaceAll(part, " ", "_")) + "$"
		}
		expressions = append(expressions, strings.Join(parts, "/"))
	}
	return strings.Join(expressions, "|")
}
