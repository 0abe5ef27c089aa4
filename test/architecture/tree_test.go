package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "liqo.io/liqo"
	root   = "../.."
)

// source is one parsed Go file.
type source struct {
	// path is slash-separated and relative to the module's root.
	path string
	ast  *ast.File
	// lines is the file's length.
	lines int
}

func (s source) folder() string    { return path.Dir(s.path) }
func (s source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isGenerated() bool { return ast.IsGenerated(s.ast) }

// imports lists the packages of this module that the file imports, relative to the module's root.
func (s source) imports() []string {
	var found []string
	for _, spec := range s.ast.Imports {
		if own, isOwn := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); isOwn {
			found = append(found, own)
		}
	}
	return found
}

var fileSet = token.NewFileSet()

// lines counts the lines that a node spans.
func lines(node ast.Node) int {
	return fileSet.Position(node.End()).Line - fileSet.Position(node.Pos()).Line + 1
}

// sources parses all Go files of the module once.
func sources(t *testing.T) []source {
	t.Helper()
	parsed, err := parseTree()
	if err != nil {
		t.Fatalf("parsing the source tree: %v", err)
	}
	return parsed
}

var parseTree = sync.OnceValues(func() ([]source, error) {
	var parsed []source
	err := filepath.WalkDir(root, func(file string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if item.IsDir() {
			return skipFolder(file, item)
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		tree, err := parser.ParseFile(fileSet, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		parsed = append(parsed, source{
			path: filepath.ToSlash(relative), ast: tree, lines: fileSet.File(tree.FileStart).LineCount(),
		})
		return err
	})
	return parsed, err
})

// skipFolder leaves out what is not code of this module: hidden folders, build output, test data, other modules.
func skipFolder(file string, item fs.DirEntry) error {
	if file == root {
		return nil
	}
	hidden := strings.HasPrefix(item.Name(), ".") || item.Name() == "testdata"
	output := file == filepath.Join(root, "bin") || file == filepath.Join(root, "dist")
	_, err := os.Stat(filepath.Join(file, "go.mod"))
	if otherModule := err == nil; hidden || output || otherModule {
		return filepath.SkipDir
	}
	return nil
}

// repositoryFiles lists the files that are or would be committed, relative to the module's root. Outside a Git
// checkout (an unpacked source archive) those are all files.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	output, err := exec.Command("git", "-c", "safe.directory=*", "-C", root,
		"ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err == nil {
		return strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 })
	}
	var files []string
	err = filepath.WalkDir(root, func(file string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			if err == nil && file != root && (item.Name() == "bin" || item.Name() == "dist" || item.Name() == ".git") {
				return filepath.SkipDir
			}
			return err
		}
		relative, err := filepath.Rel(root, file)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	return files
}

// report fails the test with one line per offender, under the rule that they break.
func report(t *testing.T, rule string, offenders []string) {
	t.Helper()
	if len(offenders) > 0 {
		t.Errorf("%s:\n  %s", rule, strings.Join(offenders, "\n  "))
	}
}

// offendersTable is the table of what breaks a rule today: rule, offender, how much. It may only shrink.
const offendersTable = "test/architecture/testdata/offenders.tsv"

// shrinks fails the test for each offender that the table does not list for the rule, or not as that bad; and for each line of the table
// whose offender is better or gone, so that no line allows what need not be allowed any more. found has how much each offender breaks the
// rule: a number of methods, or how often it does.
func shrinks(t *testing.T, key, rule string, found map[string]int) {
	t.Helper()
	shrink(t, key, rule, found, nil)
}

// shrinksAt is shrinks for what breaks a rule at places, by the offender: as often as it has some. An offender that is new or worse is
// told with all of them.
func shrinksAt(t *testing.T, key, rule string, places map[string][]string) {
	t.Helper()
	found := map[string]int{}
	for offender, where := range places {
		found[offender] = len(where)
	}
	shrink(t, key, rule, found, places)
}

func shrink(t *testing.T, key, rule string, found map[string]int, places map[string][]string) {
	t.Helper()
	table := map[string]int{}
	for _, row := range tableRows(t, offendersTable, readFile(t, offendersTable), 3) {
		if row[0] != key {
			continue
		}
		allowed, err := strconv.Atoi(row[2])
		if err != nil || table[row[1]] != 0 {
			t.Fatalf("%s: not a number, or a second line about one offender: %q", offendersTable, row)
		}
		table[row[1]] = allowed
	}
	report(t, rule+". What is too much already stands in "+offendersTable+", which gets no new line and no larger number", compareWithTable(key, table, found, places))
}

// compareWithTable tells how what was found differs from the table.
func compareWithTable(key string, table, found map[string]int, places map[string][]string) []string {
	var differences []string
	for offender, measure := range found {
		var where string
		if len(places[offender]) > 0 {
			where = " (" + strings.Join(places[offender], ", ") + ")"
		}
		switch allowed := table[offender]; {
		case allowed == 0:
			differences = append(differences, fmt.Sprintf("%s: %d%s", offender, measure, where))
		case measure > allowed:
			differences = append(differences, fmt.Sprintf("%s: %d, and it was %d%s", offender, measure, allowed, where))
		case measure < allowed:
			differences = append(differences, fmt.Sprintf("%s is better, thank you: change its line of %s to %q", offender, offendersTable, fmt.Sprintf("%s\t%s\t%d", key, offender, measure)))
		}
	}
	for offender := range table {
		if found[offender] == 0 {
			differences = append(differences, fmt.Sprintf("%s does not break the rule any more, thank you: remove its line %q from %s", offender, key+"\t"+offender, offendersTable))
		}
	}
	slices.Sort(differences)
	return differences
}

// tableRows splits a table into its rows of so many cells. Lines that begin with # are comments.
func tableRows(t *testing.T, name, text string, cells int) [][]string {
	t.Helper()
	var rows [][]string
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != cells {
			t.Fatalf("%s:%d: not a row of %d cells with tabs between them: %q", name, i+1, cells, line)
		}
		rows = append(rows, row)
	}
	return rows
}

// A table of offenders shrinks and does nothing else.
func TestTablesOfOffendersShrink(t *testing.T) {
	for name, tc := range map[string]struct {
		table, found map[string]int
		want         string
	}{
		"as listed":        {map[string]int{"a": 30}, map[string]int{"a": 30}, ""},
		"a new one":        {nil, map[string]int{"a": 26}, "a: 26 (here, there)"},
		"a worse one":      {map[string]int{"a": 30}, map[string]int{"a": 31}, "a: 31, and it was 30 (here, there)"},
		"a better one":     {map[string]int{"a": 30}, map[string]int{"a": 29}, `change its line of ` + offendersTable + ` to "k\ta\t29"`},
		"one that is gone": {map[string]int{"a": 30}, nil, `remove its line "k\ta"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(compareWithTable("k", tc.table, tc.found, map[string][]string{"a": {"here", "there"}}), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
