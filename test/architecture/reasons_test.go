package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const troubleshooting = "troubleshooting"

var (
	quoted = regexp.MustCompile("`([A-Z][A-Za-z]+)`")
	// firstCell is the first column of a table's row.
	firstCell = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|")
)

// Whoever meets a reason in a condition or an Event finds on one page what it means and what to do, and finds no reason
// there that nobody gives.
func TestTroubleshootingExplainsEveryReason(t *testing.T) {
	reasons := exportedReasons(t)
	if len(reasons) < 100 {
		t.Fatalf("found only %d reasons", len(reasons))
	}
	page := readPage(t, troubleshooting)
	explained := map[string]bool{}
	for _, cell := range firstCell.FindAllStringSubmatch(page, -1) {
		for _, word := range quoted.FindAllStringSubmatch(cell[1], -1) {
			explained[word[1]] = true
		}
	}
	var unknown, missing []string
	for word := range explained {
		if _, known := reasons[word]; !known {
			unknown = append(unknown, word)
		}
	}
	for reason, where := range reasons {
		if !strings.Contains(page, "`"+reason+"`") {
			missing = append(missing, fmt.Sprintf("%s (%s)", reason, where))
		}
	}
	slices.Sort(unknown)
	slices.Sort(missing)
	report(t, "docs/troubleshooting.md explains only reasons that are given", unknown)
	report(t, "docs/troubleshooting.md names every exported reason", missing)
}

// exportedReasons are the values of all exported constants that are named Reason..., with the file that declares each.
func exportedReasons(t *testing.T) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	for _, file := range repositoryFiles(t) {
		if !strings.HasPrefix(file, "pkg/") || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			constants, ok := declaration.(*ast.GenDecl)
			if !ok || constants.Tok != token.CONST {
				continue
			}
			for _, spec := range constants.Specs {
				for name, value := range textConstants(t, spec) {
					if strings.HasPrefix(name, "Reason") {
						reasons[value] = file
					}
				}
			}
		}
	}
	return reasons
}

// textConstants are the constants of a declaration whose value is a text.
func textConstants(t *testing.T, spec ast.Spec) map[string]string {
	t.Helper()
	values := map[string]string{}
	declared, ok := spec.(*ast.ValueSpec)
	if !ok {
		return values
	}
	for i, name := range declared.Names {
		if i >= len(declared.Values) {
			continue
		}
		literal, ok := declared.Values[i].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatalf("reading constant %s: %v", name.Name, err)
		}
		values[name.Name] = value
	}
	return values
}

// A reason that no code gives is a promise that nobody keeps.
func TestReasonsAreGiven(t *testing.T) {
	aliases := map[string]string{
		"authentication": "authv1beta1", "core": "corev1beta1", "ipam": "ipamv1alpha1", "networking": "networkingv1beta1", "offloading": "offloadingv1beta1",
	}
	given := map[string]bool{}
	use := regexp.MustCompile(`\b[a-z]+v1(?:alpha|beta)1\.Reason\w+`)
	for _, file := range repositoryFiles(t) {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && (strings.HasPrefix(file, "pkg/") || strings.HasPrefix(file, "cmd/")) {
			for _, name := range use.FindAllString(readFile(t, file), -1) {
				given[name] = true
			}
		}
	}
	declaration := regexp.MustCompile(`(?m)^\t(Reason\w+) =`)
	var offenders []string
	for _, file := range repositoryFiles(t) {
		if !strings.HasPrefix(file, "pkg/apis/") || !strings.HasPrefix(filepath.Base(file), "words") {
			continue
		}
		group := strings.Split(file, "/")[2]
		for _, name := range declaration.FindAllStringSubmatch(readFile(t, file), -1) {
			if !given[aliases[group]+"."+name[1]] {
				offenders = append(offenders, file+": "+name[1])
			}
		}
	}
	report(t, "every reason is given by some code", offenders)
}

var (
	// conflicts are the reasons for objects that have a name which is needed, and are somebody else's.
	conflicts = regexp.MustCompile(`^Reason(NotOurs|\w+Conflict|\w+NameTaken)$`)
	// notOurs are ways to say of an object that it is somebody else's.
	notOurs = regexp.MustCompile(`(?i)(\b(is|are) not (ours|Liqo's|this \w+'s)\b|\bnot made (by Liqo|for this|for it)\b|\bexists(?: [^:]*)? and (is|was) not\b|does not belong to this)`)
)

// An error that an object is not ours has one class, in which it is retried, and one text.
func TestWhatIsNotOursIsSaidInOneWay(t *testing.T) {
	found := map[string][]string{}
	inProduct(t, func(file source, node ast.Node) {
		if file.folder() == "pkg/kube/reconcile" {
			return
		}
		switch is := node.(type) {
		case *ast.CallExpr:
			if classes := []string{"Refuse", "RefuseAgain", "Terminate", "Wait", "Retry"}; slices.Contains(classes, selected(is.Fun, "reconcile")) && conflicts.MatchString(selected(is.Args[0], "")) {
				found[file.path] = append(found[file.path], at(is, file))
			}
		case *ast.BasicLit:
			if is.Kind == token.STRING && notOurs.MatchString(is.Value) {
				found[file.path] = append(found[file.path], at(is, file))
			}
		}
	})
	shrinksAt(t, "ours", "that an object is not ours is said by reconcile.NotOurs, or NotOursAt, alone", found)
}

// selected is the name after the dot of an expression such as pkg.Name; empty if it is none, or of another package than the one that is given.
func selected(expression ast.Expr, of string) string {
	selector, is := expression.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	if left, is := selector.X.(*ast.Ident); !is || of != "" && left.Name != of {
		return ""
	}
	return selector.Sel.Name
}
