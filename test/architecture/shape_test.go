package architecture

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines      = 400
	maxFunctionLines  = 60
	longFileShare     = 0.03
	longFunctionShare = 0.01
)

var (
	noun        = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	meaningless = []string{"util", "utils", "common", "helper", "helpers", "misc", "consts", "constants", "forge", "shared", "base"}
)

func TestPackagesAreNamedAsTheirFolder(t *testing.T) {
	var offenders []string
	for _, file := range sources(t) {
		folder, name := path.Base(file.folder()), file.ast.Name.Name
		if name == "main" {
			continue
		}
		if name != folder && name != folder+"_test" {
			offenders = append(offenders, fmt.Sprintf("%s: package %s in folder %s", file.path, name, folder))
		}
		if !noun.MatchString(folder) || slices.Contains(meaningless, folder) {
			offenders = append(offenders, fmt.Sprintf("%s: folder %s is not one lower-case noun of the domain", file.path, folder))
		}
	}
	report(t, "a package is named as its folder, with one lower-case noun that says what it holds", offenders)
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range sources(t) {
		if !file.isTest() {
			documented[file.folder()] = documented[file.folder()] || file.ast.Doc != nil
		}
	}
	var offenders []string
	for folder, ok := range documented {
		if !ok {
			offenders = append(offenders, folder)
		}
	}
	slices.Sort(offenders)
	report(t, "every package has a package comment", offenders)
}

func TestFilesAreShort(t *testing.T) {
	var long []string
	total := 0
	for _, file := range sources(t) {
		if file.isTest() || file.isGenerated() {
			continue
		}
		total++
		if file.lines > maxFileLines {
			long = append(long, fmt.Sprintf("%s: %d lines", file.path, file.lines))
		}
	}
	if allowed := int(longFileShare * float64(total)); len(long) > allowed {
		report(t, fmt.Sprintf("at most %d of %d files may be longer than %d lines", allowed, total, maxFileLines), long)
	}
}

func TestFunctionsAreShort(t *testing.T) {
	var long, longReconcile []string
	total := 0
	for _, file := range sources(t) {
		if file.isTest() || file.isGenerated() {
			continue
		}
		for _, declaration := range file.ast.Decls {
			function, isFunction := declaration.(*ast.FuncDecl)
			if !isFunction || function.Body == nil {
				continue
			}
			total++
			// As the linter counts: what stands between the braces.
			length := lines(function.Body) - 2
			if length <= maxFunctionLines {
				continue
			}
			offender := fmt.Sprintf("%s: %s has %d lines", file.path, function.Name.Name, length)
			long = append(long, offender)
			if function.Name.Name == "Reconcile" {
				longReconcile = append(longReconcile, offender)
			}
		}
	}
	report(t, fmt.Sprintf("Reconcile is a table of contents of at most %d lines", maxFunctionLines), longReconcile)
	if allowed := int(longFunctionShare * float64(total)); len(long) > allowed {
		report(t, fmt.Sprintf("at most %d of %d functions may be longer than %d lines", allowed, total, maxFunctionLines), long)
	}
}

// inProduct calls visit for every node of the product's hand-written code.
func inProduct(t *testing.T, visit func(file source, node ast.Node)) {
	t.Helper()
	for _, file := range sources(t) {
		if _, isProduct := unit(file.folder()); !isProduct || file.isTest() || file.isGenerated() {
			continue
		}
		ast.Inspect(file.ast, func(node ast.Node) bool {
			visit(file, node)
			return true
		})
	}
}

func at(node ast.Node, file source) string {
	return fmt.Sprintf("%s:%d", file.path, fileSet.Position(node.Pos()).Line)
}

func TestAnErrorIsLoggedOrReturned(t *testing.T) {
	var offenders []string
	inProduct(t, func(file source, node ast.Node) {
		list := statements(node)
		for position := 1; position < len(list); position++ {
			logged, isReturn := loggedError(list[position-1]), list[position]
			if logged != "" && returns(isReturn, logged) {
				offenders = append(offenders, at(isReturn, file))
			}
		}
	})
	report(t, "an error is logged or returned, never both: return it, and let who handles it write the log", offenders)
}

// statements are those that follow each other in a node: a block has some, and each case of a switch or select, which is no block.
func statements(node ast.Node) []ast.Stmt {
	switch of := node.(type) {
	case *ast.BlockStmt:
		return of.List
	case *ast.CaseClause:
		return of.Body
	case *ast.CommClause:
		return of.Body
	default:
		return nil
	}
}

// loggedError returns the name of the error that a statement such as log.Error(err, "…") writes to a log.
func loggedError(statement ast.Stmt) string {
	expression, isExpression := statement.(*ast.ExprStmt)
	if !isExpression {
		return ""
	}
	call, isCall := expression.X.(*ast.CallExpr)
	if !isCall || len(call.Args) < 2 {
		return ""
	}
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	logged, isName := call.Args[0].(*ast.Ident)
	if !isMethod || method.Sel.Name != "Error" || !isName {
		return ""
	}
	return logged.Name
}

func returns(statement ast.Stmt, name string) bool {
	result, isReturn := statement.(*ast.ReturnStmt)
	if !isReturn {
		return false
	}
	found := false
	ast.Inspect(result, func(node ast.Node) bool {
		identifier, isName := node.(*ast.Ident)
		found = found || isName && identifier.Name == name
		return !found
	})
	return found
}

// newReaction are the ways of client-go's fakes to take a reaction without their lock; those for watches take it.
var newReaction = regexp.MustCompile(`^(Add|Prepend)(Proxy)?Reactor$`)

// A race that shows only now and then: the test is refused on somebody else's machine.
func TestFakesTakeReactionsUnderTheirLock(t *testing.T) {
	var offenders []string
	for _, file := range sources(t) {
		if file.folder() == "test/fakeapi" {
			continue
		}
		ast.Inspect(file.ast, func(node ast.Node) bool {
			switch of := node.(type) {
			case *ast.SelectorExpr:
				if newReaction.MatchString(of.Sel.Name) {
					offenders = append(offenders, at(of, file)+": "+of.Sel.Name)
				}
			case *ast.AssignStmt:
				if selector, is := of.Lhs[0].(*ast.SelectorExpr); is && strings.HasSuffix(selector.Sel.Name, "ReactionChain") {
					offenders = append(offenders, at(of, file)+": "+selector.Sel.Name)
				}
			}
			return true
		})
	}
	report(t, "reactions are given to client-go's fakes by fakeapi.React, which holds the fake's lock", offenders)
}
