package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// walks is how many files each way through the code that docs/architecture.md walks may have: who looks for a fault reads all of them.
var walks = map[string]int{"A ConfigMap that changes": 6, "A pod": 8, "The isolation of a network": 9}

var (
	walkStep = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")
	walkName = regexp.MustCompile("`([A-Za-z.]+)`")
)

// elsewhere stands in a step that an API server or a channel leads to: nothing before it calls what it names.
var elsewhere = regexp.MustCompile(`\((another process|by a channel)\)`)

// TestWalksThroughTheCode holds that the page shows each way as it is: every file has what is named of it, and that is used in a file before it.
func TestWalksThroughTheCode(t *testing.T) {
	page := readFile(t, "docs/architecture.md")
	trees := map[string]*ast.File{}
	for _, s := range sources(t) {
		trees[s.path] = s.ast
	}
	for title, most := range walks {
		_, text, found := strings.Cut(page, "\n### "+title+"\n")
		if !found {
			t.Errorf("docs/architecture.md has no %q", title)
			continue
		}
		text, _, _ = strings.Cut(text, "\n#")
		report(t, title, walk(walkStep.FindAllStringSubmatch(text, -1), trees, most))
	}
}

// walk returns what is wrong with the steps, each of which is a file and what happens there.
func walk(steps [][]string, trees map[string]*ast.File, most int) (problems []string) {
	if len(steps) < 3 || len(steps) > most {
		problems = append(problems, fmt.Sprintf("it has %d files; at most %d, and three at least", len(steps), most))
	}
	used := map[string]bool{}
	for i, step := range steps {
		path, tree := step[1], trees[step[1]]
		if tree == nil {
			problems = append(problems, "there is no file "+path)
			continue
		}
		uses(tree, used)
		declared := map[string]bool{}
		for _, d := range tree.Decls {
			if f, is := d.(*ast.FuncDecl); is {
				declared[f.Name.Name] = true
			}
		}
		names := walkName.FindAllStringSubmatch(step[2], -1)
		if len(names) == 0 {
			problems = append(problems, path+": no function is named")
		}
		for _, name := range names {
			switch function := name[1][strings.LastIndex(name[1], ".")+1:]; {
			case !declared[function]:
				problems = append(problems, path+" has no function "+name[1])
			case i > 0 && !used[function] && !elsewhere.MatchString(step[2]):
				problems = append(problems, path+": nothing before uses "+name[1])
			}
		}
	}
	return problems
}

// uses adds the names that a file uses, without those of the functions that it declares.
func uses(tree *ast.File, names map[string]bool) {
	for _, d := range tree.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			if name, is := n.(*ast.Ident); is && !isNameOf(name, d) {
				names[name.Name] = true
			}
			return true
		})
	}
}

func isNameOf(name *ast.Ident, d ast.Decl) bool {
	f, is := d.(*ast.FuncDecl)
	return is && f.Name == name
}

func TestWalksThatAreNotAsTheCodeAreSeen(t *testing.T) {
	trees := map[string]*ast.File{}
	for path, text := range map[string]string{
		"a.go": "package a\nfunc first() { second() }", "b.go": "package b\nfunc second() { third() }\nfunc alone() {}", "c.go": "package c\nfunc third() {}",
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		trees[path] = tree
	}
	way := func(last ...string) [][]string {
		return [][]string{{"", "a.go", "`first`"}, {"", "b.go", "`x.second` does it"}, append([]string{""}, last...)}
	}
	for name, tc := range map[string]struct {
		steps [][]string
		most  int
		want  string
	}{
		"as the code":   {way("c.go", "`third`"), 3, ""},
		"too many":      {way("c.go", "`third`"), 2, "it has 3 files; at most 2, and three at least"},
		"no file":       {way("d.go", "`third`"), 3, "there is no file d.go"},
		"no function":   {way("c.go", "`fourth`"), 3, "c.go has no function fourth"},
		"nothing named": {way("c.go", "does it"), 3, "c.go: no function is named"},
		"not used":      {way("b.go", "`alone`"), 3, "b.go: nothing before uses alone"},
		"elsewhere":     {way("b.go", "(another process) `alone`"), 3, ""},
	} {
		if got := strings.Join(walk(tc.steps, trees, tc.most), "; "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
