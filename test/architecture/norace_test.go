package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noRace is the list of packages that `make unit` tests without the race detector.
var noRace = regexp.MustCompile(`(?m)^NO_RACE = \$\(addprefix \$\(MODULE\)/,(.*)\)$`)

// TestWhatIsTestedWithoutTheRaceDetectorHasNothingToRaceWith looks at code, not at tests: those of the dataplane have
// servers beside the kernel that they ask.
func TestWhatIsTestedWithoutTheRaceDetectorHasNothingToRaceWith(t *testing.T) {
	list := noRace.FindStringSubmatch(readFile(t, "Makefile"))
	if list == nil {
		t.Fatal("the Makefile has no NO_RACE")
	}
	folders := strings.Fields(list[1])
	var problems []string
	known := map[string]bool{}
	for _, s := range sources(t) {
		if !slices.Contains(folders, s.folder()) {
			continue
		}
		known[s.folder()] = true
		if !s.isTest() && concurrent(s.ast) {
			problems = append(problems, s.path+" does things at the same time")
		}
	}
	for _, folder := range folders {
		if !known[folder] {
			problems = append(problems, folder+" has no code")
		}
	}
	report(t, "what NO_RACE in the Makefile names starts no goroutine and takes no lock", problems)
}

func TestConcurrentCodeIsSeen(t *testing.T) {
	for text, want := range map[string]bool{
		"package a\nfunc f() { go f() }":               true,
		"package a\nimport \"sync\"\nvar m sync.Mutex": true,
		"package a\nfunc f() { f() }":                  false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := concurrent(file); got != want {
			t.Errorf("%q is concurrent: %v, want %v", text, got, want)
		}
	}
}

// concurrent says whether the file starts goroutines or has something that only those who do need.
func concurrent(file *ast.File) bool {
	for _, spec := range file.Imports {
		if path := strings.Trim(spec.Path.Value, `"`); path == "sync" || strings.HasPrefix(path, "sync/") || path == "golang.org/x/sync/errgroup" {
			return true
		}
	}
	found := false
	ast.Inspect(file, func(node ast.Node) bool {
		if _, is := node.(*ast.GoStmt); is {
			found = true
		}
		return !found
	})
	return found
}
