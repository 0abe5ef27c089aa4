package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tiersTable says which tests `make test` leaves out and which it runs although they take long.
const tiersTable = "test/tiers.tsv"

// Tiers of tests; whatever has no row runs in `make test`, and quickly.
const (
	tierCore = "core"
	tierAll  = "all"
)

// sibling is the reason of a row of tier all: the smaller test that sees the same promise broken.
var sibling = regexp.MustCompile(`^sibling: (\S+) (\S+): \S`)

func TestTheTableOfTiersIsSound(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, tiersTable))
	if os.IsNotExist(err) && !strings.Contains(readFile(t, "Makefile"), tiersTable) {
		t.Skip("nothing is picked by the table yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	report(t, "a row of "+tiersTable+" is a tier, a folder, a test there and why, once; what `make test` leaves out has a sibling in it",
		unsoundTiers(tableRows(t, tiersTable, string(text), 4), testsByFolder(t)))
}

// unsoundTiers tells what is wrong with the rows of the table, given the tests of each folder.
func unsoundTiers(rows [][]string, tests map[string][]string) []string {
	left, seen := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		if row[0] == tierAll {
			left[row[1]+" "+row[2]] = true
		}
	}
	var problems []string
	for _, row := range rows {
		tier, folder, test, why := row[0], row[1], row[2], row[3]
		complain := func(format string, args ...any) {
			problems = append(problems, folder+" "+test+": "+fmt.Sprintf(format, args...))
		}
		if seen[folder+" "+test] {
			complain("there is a row about it already")
		}
		seen[folder+" "+test] = true
		if problem := noTest(tests, folder, test); problem != "" {
			complain("%s", problem)
		}
		if strings.TrimSpace(why) == "" {
			complain("say why")
		}
		named := sibling.FindStringSubmatch(why)
		switch {
		case tier == tierCore:
		case tier != tierAll:
			complain("a tier is %s or %s, not %q", tierCore, tierAll, tier)
		case named == nil:
			complain("write `sibling: <folder> <test>: <what it sees>`")
		case noTest(tests, named[1], named[2]) != "":
			complain("of its sibling: %s", noTest(tests, named[1], named[2]))
		case left[named[1]+" "+named[2]] || left[named[1]+" "+function(named[2])]:
			complain("its sibling %s is left out as well", named[2])
		}
	}
	return problems
}

// function is the test function of a name such as TestA/with_b.
func function(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}

// noTest says what is not there: the folder, or a test function in it. Names of subtests are not known before they run.
func noTest(tests map[string][]string, folder, test string) string {
	switch names, known := tests[folder]; {
	case !known:
		return "there is no folder " + folder + " with tests"
	case !slices.Contains(names, function(test)):
		return "there is no test " + function(test) + " in " + folder
	default:
		return ""
	}
}

// testsByFolder are the test functions of each folder.
func testsByFolder(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for _, file := range sources(t) {
		if !file.isTest() {
			continue
		}
		for _, declaration := range file.ast.Decls {
			if f, is := declaration.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[file.folder()] = append(tests[file.folder()], f.Name.Name)
			}
		}
	}
	return tests
}

// One expression leaves tests out of all suites, so a name stands for one test.
func TestNamesOfSystemTestsAreUnique(t *testing.T) {
	folders := map[string][]string{}
	tests := testsByFolder(t)
	for _, folder := range slices.Sorted(maps.Keys(tests)) {
		if strings.HasPrefix(folder, "test/integration/") || folder == "test/e2e" {
			for _, name := range tests[folder] {
				folders[name] = append(folders[name], folder)
			}
		}
	}
	maps.DeleteFunc(folders, func(_ string, of []string) bool { return len(of) == 1 })
	shrinksAt(t, "names", "a test of test/integration and test/e2e has a name that no other one of them has: say more in one of the names", folders)
}

func TestUnsoundTiersAreFound(t *testing.T) {
	tests := map[string][]string{"test/a": {"TestLong", "TestShort", "TestOther"}, "test/b": {"TestMedium"}}
	const good = "sibling: test/a TestShort: a pod that is not told"
	for name, tc := range map[string]struct {
		rows [][]string
		want string
	}{
		"sound":                              {[][]string{{"all", "test/a", "TestLong", good}, {"core", "test/b", "TestMedium", "the only test of upgrades"}}, ""},
		"one case of a test":                 {[][]string{{"all", "test/a", "TestLong/with_many", "sibling: test/a TestLong/with_few: the same"}}, ""},
		"an unknown tier":                    {[][]string{{"nightly", "test/a", "TestLong", "it is long"}}, "a tier is core or all"},
		"an unknown folder":                  {[][]string{{"core", "test/c", "TestLong", "why"}}, "no folder test/c"},
		"an unknown test":                    {[][]string{{"core", "test/a", "TestGone", "why"}}, "no test TestGone"},
		"a test of another folder":           {[][]string{{"core", "test/b", "TestLong/x", "why"}}, "no test TestLong in test/b"},
		"no reason":                          {[][]string{{"core", "test/a", "TestLong", " "}}, "say why"},
		"no sibling":                         {[][]string{{"all", "test/a", "TestLong", "it takes an hour"}}, "write `sibling:"},
		"a sibling that sees nothing":        {[][]string{{"all", "test/a", "TestLong", "sibling: test/a TestShort: "}}, "write `sibling:"},
		"a sibling that is not there":        {[][]string{{"all", "test/a", "TestLong", "sibling: test/a TestGone: x"}}, "of its sibling: there is no test TestGone"},
		"a sibling that is left out":         {[][]string{{"all", "test/a", "TestLong", good}, {"all", "test/a", "TestShort", "sibling: test/a TestOther: x"}}, "its sibling TestShort is left out as well"},
		"a sibling of a test that is out":    {[][]string{{"all", "test/a", "TestLong", "sibling: test/a TestOther/b: x"}, {"all", "test/a", "TestOther", good}}, "its sibling TestOther/b is left out"},
		"a test that is its own sibling":     {[][]string{{"all", "test/a", "TestLong", "sibling: test/a TestLong: x"}}, "left out as well"},
		"two rows about one test":            {[][]string{{"core", "test/a", "TestLong", "why"}, {"all", "test/a", "TestLong", good}}, "there is a row about it already"},
		"a sibling of which one case is out": {[][]string{{"all", "test/a", "TestLong", good}, {"all", "test/a", "TestShort/x", "sibling: test/b TestMedium: x"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(unsoundTiers(tc.rows, tests), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
