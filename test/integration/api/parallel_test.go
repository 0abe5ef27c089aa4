package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"liqo.io/liqo/test/integration/fixture"
)

// alone are the tests of these folders that change what all tests of their control planes share, and what that is. They run before the
// others, which wait until the last of them has ended.
var alone = map[string]map[string]string{
	".": {
		"TestAGatewayServerRunsAndGoes":         "its controllers take each GatewayServer of milan for their own",
		"TestIsolationFollowsPodsAndNamespaces": "its controllers take each Configuration of rome for their own",
		"TestNetworksAreConnectedAndTakenBack":  "its controllers take each Configuration and gateway of both clusters for their own",
		"TestWhatAgentsWriteIsTaken":            "its node's agent would put each InternalFabric of milan into the kernel of this machine",
	},
	"../reflection": {
		"TestD9IngressClassThatIsNotThere": "it gives milan a default IngressClass",
	},
}

// Tests of one control plane run side by side, each with namespaces and peers of its own.
func TestTestsRunSideBySide(t *testing.T) {
	t.Parallel()
	for folder, known := range alone {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		fixture.Must(t, "listing tests", err)
		found := 0
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			fixture.Must(t, "reading tests", err)
			for _, declaration := range parsed.Decls {
				function, is := declaration.(*ast.FuncDecl)
				if !is || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Test") || function.Name.Name == "TestMain" {
					continue
				}
				reason, listed := known[function.Name.Name]
				if listed {
					found++
				}
				if parallel := beginsParallel(function.Body); parallel == listed {
					t.Errorf("%s: %s begins with t.Parallel(): %v; it runs alone because %q", file, function.Name.Name, parallel, reason)
				}
			}
		}
		if found != len(known) {
			t.Errorf("%s: of the %d tests that run alone %d are there", folder, len(known), found)
		}
	}
}

// beginsParallel tells whether the first thing that a test does is t.Parallel().
func beginsParallel(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	statement, is := body.List[0].(*ast.ExprStmt)
	if !is {
		return false
	}
	call, is := statement.X.(*ast.CallExpr)
	if !is {
		return false
	}
	selector, is := call.Fun.(*ast.SelectorExpr)
	return is && selector.Sel.Name == "Parallel"
}
