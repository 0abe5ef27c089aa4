package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const troubleshooting = "troubleshooting"

var (
	quoted        = regexp.MustCompile("`([A-Z][A-Za-z]+)`")
	oneWord       = regexp.MustCompile(`^"[A-Z][A-Za-z0-9]*"$`)
	conditionName = regexp.MustCompile(`Condition$`)
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
	report(t, "docs/troubleshooting.md explains only reasons that there are: take the row out, or correct the word", unknown)
	report(t, "docs/troubleshooting.md names every exported reason: add a row to the table of the object that has the condition", missing)
}

// exportedReasons are the values of all exported constants that are named Reason..., with the file that declares each.
func exportedReasons(t *testing.T) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	inProduct(t, func(file source, node ast.Node) {
		constants, is := node.(*ast.GenDecl)
		if !is || constants.Tok != token.CONST {
			return
		}
		for _, spec := range constants.Specs {
			for name, value := range textConstants(t, spec) {
				if strings.HasPrefix(name, "Reason") {
					reasons[value] = file.path
				}
			}
		}
	})
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
	report(t, "every reason is given by some code: name the constant where the condition or Event is made, or take it out", offenders)
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

// eventReasons is which argument of the functions that write Events is the reason: of both generations of client-go's recorder.
var eventReasons = map[string][]int{"Event": {2}, "Eventf": {2, 3}}

// A word that is written twice is misspelt once: whoever gives or looks for one of ours names its constant.
func TestConditionTypesAndReasonsAreConstants(t *testing.T) {
	ours, takes := exportedReasons(t), reasonArguments(t)
	found := map[string][]string{}
	inProduct(t, func(file source, node ast.Node) {
		given := givenWords(node, takes)
		for _, word := range given {
			found[file.path] = append(found[file.path], fmt.Sprintf("%s %s", at(word, file), word.Value))
		}
		for _, word := range otherWords(node) {
			if value, err := strconv.Unquote(word.Value); err == nil && ours[value] != "" && !slices.Contains(given, word) {
				found[file.path] = append(found[file.path], fmt.Sprintf("%s %s, which is a constant of %s", at(word, file), word.Value, ours[value]))
			}
		}
	})
	shrinksAt(t, "reasons", "condition types and reasons are exported constants beside their API group, and are named, not written out", found)
}

// reasonArguments is which arguments of the product's functions, by their names, are reasons.
func reasonArguments(t *testing.T) map[string][]int {
	t.Helper()
	takes := maps.Clone(eventReasons)
	note := func(name string, of *ast.FuncType) {
		i := 0
		for _, field := range of.Params.List {
			for _, parameter := range field.Names {
				if isReason(parameter) && !slices.Contains(takes[name], i) {
					takes[name] = append(takes[name], i)
				}
				i++
			}
		}
	}
	inProduct(t, func(_ source, node ast.Node) {
		switch of := node.(type) {
		case *ast.FuncDecl:
			note(of.Name.Name, of.Type)
		case *ast.AssignStmt:
			name, isName := of.Lhs[0].(*ast.Ident)
			if function, is := of.Rhs[0].(*ast.FuncLit); is && isName {
				note(name.Name, function.Type)
			}
		}
	})
	return takes
}

// givenWords are the literals that a node makes a reason, or the type of a condition.
func givenWords(node ast.Node, takes map[string][]int) (words []*ast.BasicLit) {
	add := func(of bool, value ast.Expr) {
		if literal := filledText(value); of && literal != nil {
			words = append(words, literal)
		}
	}
	switch of := node.(type) {
	case *ast.CompositeLit:
		for _, element := range of.Elts {
			if pair, is := element.(*ast.KeyValueExpr); is {
				add(isReason(pair.Key) || isCondition(of.Type) && isNamed(pair.Key, "type"), pair.Value)
			}
		}
	case *ast.AssignStmt:
		for i, value := range of.Rhs {
			add(isReason(of.Lhs[i]), value)
		}
	case *ast.ValueSpec:
		for i, value := range of.Values {
			add(isReason(of.Names[i]), value)
		}
	case *ast.CallExpr:
		for i, value := range of.Args {
			add(slices.Contains(takes[called(of)], i) && isWord(value), value)
		}
	}
	return words
}

// otherWords are the literals that a node compares something with, hands on or hands back: reasons, or any other texts.
func otherWords(node ast.Node) (words []*ast.BasicLit) {
	var values []ast.Expr
	switch of := node.(type) {
	case *ast.BinaryExpr:
		values = []ast.Expr{of.X, of.Y}
	case *ast.CaseClause:
		values = of.List
	case *ast.CallExpr:
		values = of.Args
	case *ast.ReturnStmt:
		values = of.Results
	}
	for _, value := range values {
		if literal := filledText(value); literal != nil {
			words = append(words, literal)
		}
	}
	return words
}

// filledText is the literal that an expression is; nil if it is no text, or the empty one.
func filledText(expression ast.Expr) *ast.BasicLit {
	if literal, is := expression.(*ast.BasicLit); is && literal.Kind == token.STRING && literal.Value != `""` {
		return literal
	}
	return nil
}

// isWord tells a reason from the sentences and keys that other functions of the same name take.
func isWord(expression ast.Expr) bool {
	literal, is := expression.(*ast.BasicLit)
	return is && oneWord.MatchString(literal.Value)
}

// called is the name of the function that is called, without its package or value.
func called(call *ast.CallExpr) string {
	switch of := call.Fun.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	default:
		return ""
	}
}

// isReason tells whether a variable or field holds a reason.
func isReason(expression ast.Expr) bool { return isNamed(expression, "reason") }

// isNamed tells whether a variable or field has a name, in capitals or not.
func isNamed(expression ast.Expr, name string) bool {
	switch of := expression.(type) {
	case *ast.Ident:
		return strings.EqualFold(of.Name, name)
	case *ast.SelectorExpr:
		return isNamed(of.Sel, name)
	default:
		return false
	}
}

func isCondition(expression ast.Expr) bool {
	switch named := expression.(type) {
	case *ast.Ident:
		return conditionName.MatchString(named.Name)
	case *ast.SelectorExpr:
		return conditionName.MatchString(named.Sel.Name)
	default:
		return false
	}
}
