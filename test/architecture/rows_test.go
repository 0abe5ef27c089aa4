package architecture

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	tableRow = regexp.MustCompile(`(?m)^\| ([A-Z]+\d+) \|.*$`)
	// inWords are rows that a sentence below the tables answers: faults and threats of what is not there yet.
	inWords = regexp.MustCompile(`^N[67]$`)
	named   = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	// labelled is the name of a test that begins with rows, and labels are rows that the comment of a test begins with.
	labelled = regexp.MustCompile(`^(?:Test|Fuzz)((?:[A-Z]\d+)+)[A-Z]`)
	labels   = regexp.MustCompile(`^[A-Z]\d+(?:(?:,| and|) \(?[A-Z]\d+\)?)*:`)
	label    = regexp.MustCompile(`[A-Z]\d+`)
	// inText are rows that a line speaks of, but not by the name of a test.
	inText = regexp.MustCompile(`\b[A-Z]\d+\b`)
)

// catalogues are the pages with tables of rows, and how many rows there are of each letter.
var catalogues = map[string]map[string]int{
	"docs/faults-and-threats.md": {"A": 15, "B": 9, "C": 16, "D": 13, "E": 5, "F": 13, "G": 6, "H": 5},
	"docs/security.md":           {"V": 15, "W": 9, "N": 12},
}

// scattered are the rows of pages that kept the numbers of a longer list.
var scattered = map[string][]string{
	"docs/security.md": {"T9", "T10", "T11", "T12", "T13", "T14", "T25", "T31", "T33", "T37", "T38", "T39", "T40"},
}

// Each row of the two catalogues is on its page, and each test that a page names is there: a claim is as good as its test.
func TestRowsNameTheirTests(t *testing.T) {
	known := map[string]bool{}
	for _, file := range sources(t) {
		for _, declaration := range file.ast.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil {
				known[f.Name.Name] = true
			}
		}
	}
	var offenders []string
	for page, rows := range catalogues {
		offenders = append(offenders, wrongRows(page, readFile(t, page), rows)...)
	}
	slices.Sort(offenders)
	for _, page := range pages(t) {
		for _, name := range named.FindAllStringSubmatch(readFile(t, page), -1) {
			if !known[name[1]] && !strings.HasSuffix(name[1], "X") {
				offenders = append(offenders, page+": there is no test "+name[1])
			}
		}
	}
	report(t, "pages name tests that are there, and each row has one", offenders)
}

// wrongRows tells what is wrong with the rows of a page: those without a test, those that are missing, and those that nobody counted.
func wrongRows(page, text string, rows map[string]int) (offenders []string) {
	seen := map[string]int{}
	for _, row := range tableRow.FindAllStringSubmatch(text, -1) {
		seen[row[1]]++
		if !named.MatchString(row[0]) && !strings.Contains(row[0], "`make ") {
			offenders = append(offenders, page+": row "+row[1]+" names no test")
		}
	}
	counted := slices.Clone(scattered[page])
	for letter, count := range rows {
		for i := 1; i <= count; i++ {
			counted = append(counted, fmt.Sprintf("%s%d", letter, i))
		}
	}
	for _, row := range counted {
		if seen[row] != 1 && !inWords.MatchString(row) {
			offenders = append(offenders, fmt.Sprintf("%s: row %s is there %d times", page, row, seen[row]))
		}
	}
	for row := range seen {
		if !slices.Contains(counted, row) {
			offenders = append(offenders, fmt.Sprintf("%s: row %s is in no catalogue: give it the next number of its letter, and count it in rows_test.go", page, row))
		}
	}
	return offenders
}

// A row's letter has one meaning: a test that has a row in its name is named where its page speaks of that row, and a comment speaks of rows
// that are there. Tests that follow a packet are called TestWalk.
func TestRowsHaveOneMeaning(t *testing.T) {
	about := map[string]string{}
	for page := range catalogues {
		for line := range strings.Lines(readFile(t, page)) {
			for _, row := range inText.FindAllString(line, -1) {
				about[row] += line
			}
		}
	}
	found := map[string]int{}
	for _, file := range sources(t) {
		for _, declaration := range file.ast.Decls {
			f, is := declaration.(*ast.FuncDecl)
			if !is || !file.isTest() {
				continue
			}
			if name := labelled.FindStringSubmatch(f.Name.Name); name != nil {
				for _, row := range label.FindAllString(name[1], -1) {
					if !strings.Contains(about[row], "`"+f.Name.Name+"`") {
						found[file.path+" "+f.Name.Name+" "+row]++
					}
				}
			}
			for _, row := range label.FindAllString(labels.FindString(f.Doc.Text()), -1) {
				if about[row] == "" {
					found[file.path+" "+f.Name.Name+" "+row]++
				}
			}
		}
	}
	shrinks(t, "rows", "a row that a test has in its name or comment is one of docs/faults-and-threats.md or docs/security.md, which names the test there", found)
}
