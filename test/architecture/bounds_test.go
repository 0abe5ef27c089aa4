package architecture

import (
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxMethods     = 25
	maxFields      = 20
	maxFiles       = 15
	maxLineLength  = 160
	budgetTable    = "test/architecture/testdata/budget.tsv"
	budgetStep     = 50
	minBudgetSlack = 2 * budgetStep
)

// isHandWritten tells code that somebody reads and changes from tests and from what is generated.
func (s source) isHandWritten() bool { return !s.isTest() && !s.isGenerated() }

func TestTypesHaveFewMethods(t *testing.T) {
	methods := map[string]int{}
	for _, file := range sources(t) {
		for _, declaration := range file.ast.Decls {
			if function, is := declaration.(*ast.FuncDecl); is && function.Recv != nil && file.isHandWritten() {
				methods[file.folder()+"."+receiver(function.Recv.List[0].Type)]++
			}
		}
	}
	shrinks(t, "methods", fmt.Sprintf("a type has at most %d methods: a value is missing that takes some of them along", maxMethods), above(methods, maxMethods))
}

// receiver is the name of the type that a method belongs to.
func receiver(expression ast.Expr) string {
	switch of := expression.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	default:
		return ""
	}
}

// What users write is as large as they need it, so types of the API do not count.
func TestStructsHaveFewFields(t *testing.T) {
	fields := map[string]int{}
	for _, file := range sources(t) {
		if !file.isHandWritten() || strings.HasPrefix(file.path, "pkg/apis/") {
			continue
		}
		ast.Inspect(file.ast, func(node ast.Node) bool {
			declared, is := node.(*ast.TypeSpec)
			if !is {
				return true
			}
			if structure, is := declared.Type.(*ast.StructType); is {
				fields[file.folder()+"."+declared.Name.Name] = structure.Fields.NumFields()
			}
			return true
		})
	}
	shrinks(t, "fields", fmt.Sprintf("a struct has at most %d fields: those that change together are a value of their own", maxFields), above(fields, maxFields))
}

func TestPackagesHaveFewFiles(t *testing.T) {
	count := map[string]int{}
	for _, file := range sources(t) {
		if file.isHandWritten() {
			count[file.folder()]++
		}
	}
	shrinks(t, "files", fmt.Sprintf("a package has at most %d files, tests aside: put two small ones together, or move a part to a package of its own", maxFiles), above(count, maxFiles))
}

// above leaves out what is within a limit.
func above(counted map[string]int, limit int) map[string]int {
	over := map[string]int{}
	for name, count := range counted {
		if count > limit {
			over[name] = count
		}
	}
	return over
}

// Markers for generators cannot be broken. Tests have tables whose rows are best read as one line each.
func TestLinesAreShort(t *testing.T) {
	long := map[string][]string{}
	for _, file := range sources(t) {
		if !file.isHandWritten() || strings.HasPrefix(file.path, "test/") {
			continue
		}
		for i, line := range strings.Split(readFile(t, file.path), "\n") {
			if utf8.RuneCountInString(line) > maxLineLength && !strings.HasPrefix(strings.TrimSpace(line), "// +kubebuilder:") {
				long[file.path] = append(long[file.path], fmt.Sprintf("%s:%d", file.path, i+1))
			}
		}
	}
	shrinksAt(t, "lines", fmt.Sprintf("a line has at most %d characters: break it; a file with longer ones is named with their number", maxLineLength), long)
}

// A room is a folder of the product with all below it that is no room of its own. It has a budget of lines, tests and generated code aside,
// with some air. Whoever needs more raises it, in the same commit, and says in the last column what for.
func TestRoomsKeepTheirBudgets(t *testing.T) {
	rooms := budgets(t, readFile(t, budgetTable))
	lines, homeless := map[string]int{}, map[string]int{}
	for _, file := range sources(t) {
		if !file.isHandWritten() || !strings.HasPrefix(file.path, "pkg/") && !strings.HasPrefix(file.path, "cmd/") {
			continue
		}
		folder := file.folder()
		for _, known := rooms[folder]; !known && folder != "."; _, known = rooms[folder] {
			folder = path.Dir(folder)
		}
		if folder == "." {
			homeless[file.folder()] += file.lines
		} else {
			lines[folder] += file.lines
		}
	}
	var complaints []string
	for room, budget := range rooms {
		if complaint := spend(lines[room], budget.lines); complaint != "" {
			complaints = append(complaints, room+" "+complaint)
		}
	}
	for folder, count := range homeless {
		complaints = append(complaints, fmt.Sprintf("%s has %d lines and is no room: give it a line of %s, with %d and why", folder, count, budgetTable, fitting(count)))
	}
	slices.Sort(complaints)
	report(t, "a room of the product grows by an edit of "+budgetTable+", with a reason in its last column", complaints)
}

// spend tells what is wrong with a budget; empty if nothing is. A few lines more or fewer never are.
func spend(lines, budget int) string {
	switch {
	case lines == 0:
		return "has no lines: remove its budget"
	case lines > budget:
		return fmt.Sprintf("has %d lines, %d more than its budget: make do with less, or raise it to %d and say why", lines, lines-budget, fitting(lines))
	case budget-lines > max(minBudgetSlack, budget/20):
		return fmt.Sprintf("has %d lines, %d fewer than its budget, thank you: lower that to %d", lines, budget-lines, fitting(lines))
	default:
		return ""
	}
}

// fitting is a budget with some air: from half a step to one and a half.
func fitting(lines int) int { return (lines + budgetStep/2 + budgetStep - 1) / budgetStep * budgetStep }

// budget of a room.
type budget struct {
	lines int
	why   string
}

func budgets(t *testing.T, text string) map[string]budget {
	t.Helper()
	rooms := map[string]budget{}
	for _, row := range tableRows(t, budgetTable, text, 3) {
		lines, err := strconv.Atoi(row[1])
		if _, twice := rooms[row[0]]; err != nil || twice || strings.TrimSpace(row[2]) == "" {
			t.Fatalf("%s: a room once, its lines as a number, and why it may have them: %q", budgetTable, row)
		}
		rooms[row[0]] = budget{lines, row[2]}
	}
	return rooms
}

// A reason is one for the growth that it stands by, so it changes with the budget: that before the last change of the table tells.
func TestGrowthHasItsReason(t *testing.T) {
	before, ok := earlier(budgetTable)
	if !ok {
		t.Skip("Git does not know an earlier state of the table")
	}
	report(t, "a larger budget has a new reason", unexplained(budgets(t, before), budgets(t, readFile(t, budgetTable))))
}

// unexplained are the rooms that grew and have the reason that they had before.
func unexplained(before, now map[string]budget) []string {
	var same []string
	for room, is := range now {
		if was, old := before[room]; old && is.lines > was.lines && is.why == was.why {
			same = append(same, fmt.Sprintf("%s grew from %d to %d lines: say in the last column what for, not %q", room, was.lines, is.lines, is.why))
		}
	}
	slices.Sort(same)
	return same
}

// earlier is a file as it was before its last change, committed or not; false if that is not known.
func earlier(file string) (string, bool) {
	git := func(arguments ...string) (string, error) {
		output, err := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", root}, arguments...)...).Output()
		return string(output), err
	}
	committed, err := git("show", "HEAD:"+file)
	now, readErr := os.ReadFile(filepath.Join(root, file))
	if err != nil || readErr != nil || committed != string(now) {
		return committed, err == nil && readErr == nil
	}
	last, err := git("log", "-1", "--format=%H", "--", file)
	if err != nil {
		return "", false
	}
	previous, err := git("show", strings.TrimSpace(last)+"^:"+file)
	return previous, err == nil
}

func TestBudgetsHaveAir(t *testing.T) {
	for name, tc := range map[string]struct {
		lines, budget int
		want          string
	}{
		"within":          {975, 1000, ""},
		"at its budget":   {1000, 1000, ""},
		"some fewer":      {900, 1000, ""},
		"over":            {1001, 1000, "raise it to 1050"},
		"over by much":    {1030, 1000, "raise it to 1100"},
		"far below":       {899, 1000, "lower that to 950"},
		"a large one":     {5750, 6000, ""},
		"far below large": {5690, 6000, "lower that to 5750"},
		"empty":           {0, 100, "remove its budget"},
	} {
		t.Run(name, func(t *testing.T) {
			got := spend(tc.lines, tc.budget)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if tc.lines > 0 && spend(tc.lines, fitting(tc.lines)) != "" {
				t.Errorf("the budget that is asked for does not fit: %q", spend(tc.lines, fitting(tc.lines)))
			}
		})
	}
	before := map[string]budget{"a": {100, "x"}, "b": {100, "x"}, "c": {100, "x"}}
	now := map[string]budget{"a": {150, "x"}, "b": {150, "y"}, "c": {50, "x"}, "d": {50, "new"}}
	if got := unexplained(before, now); len(got) != 1 || !strings.HasPrefix(got[0], "a grew from 100 to 150") {
		t.Errorf("grown without a reason: %q", got)
	}
}
