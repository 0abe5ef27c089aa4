package architecture

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// creates are where controllers create something other than by pkg/kube/keep, what, and why. It may only shrink: what is to be there is said
// as a value, and kept.
var creates = map[string]string{
	// Questions and requests, which the API server answers and nobody keeps.
	"authentication/certificate/issuer.go review":         "a question",
	"authentication/tenantnamespace/reconciler.go review": "a question",
	"replication/sync.go review":                          "a question",
	"offloading/virtualnode/drain.go pod":                 "an eviction",
	"authentication/certificate/issuer.go csr":            "it is checked, approved and deleted, and never changed",
	// Objects that are not brought back to what they were made as.
	"offloading/shadowpod/phases.go pod":    "a pod is made once, and the consumer is told why it cannot be",
	"offloading/namespacemap/twin.go ns":    "a twin may be an earlier one's, and is refused in words of its own",
	"storage/provisioner/claim.go want":     "a claim only grows",
	"offloading/virtualnode/phases.go node": "a Node is patched: kubelets, schedulers and users write to it, too",
	// Objects that others keep changing, or of another cluster.
	"offloading/shadowendpointslice/reconciler.go made": "field managers tell who changes it, and it is put back at a pace",
	"replication/sync.go object":                        "it is the peer's API server that may refuse it",
}

func TestControllersMakeObjectsByTheKeeper(t *testing.T) {
	var offenders []string
	seen := map[string]bool{}
	inProduct(t, func(file source, node ast.Node) {
		below, isController := strings.CutPrefix(file.path, "pkg/controller/")
		call, isCall := node.(*ast.CallExpr)
		if !isController || !isCall || len(call.Args) < 2 {
			return // without a context and an object it creates nothing
		}
		if method, isMethod := call.Fun.(*ast.SelectorExpr); !isMethod || method.Sel.Name != "Create" {
			return
		}
		what := below + " " + types.ExprString(call.Args[1])
		if creates[what] == "" || seen[what] {
			offenders = append(offenders, fmt.Sprintf("%s: %s", at(node, file), types.ExprString(call)))
		}
		seen[what] = true
	})
	for what := range creates {
		if !seen[what] {
			offenders = append(offenders, what+" is created no more, and is listed")
		}
	}
	slices.Sort(offenders)
	report(t, "controllers have objects of ours be there by pkg/kube/keep", offenders)
}
