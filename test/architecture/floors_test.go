package architecture

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors maps each folder of pkg/ to its height: a package imports only lower ones, and its own sub-packages.
// Floor 0 has two levels, because configuration is spelled with the words of the API; so has floor 1, because what the API's objects
// mean for the data plane is said with its words; and so has floor 2, because what we add to client-go serves the other mechanisms.
var floors = map[string]int{
	// Words.
	"apis": 0, "version": 0,
	"config": 1,
	// Pure decisions.
	"reflection": 2, "addressing": 2, "capacity": 2, "partition": 2, "placement": 2, "identity": 2, "dataplane": 2, "check": 2,
	"networking": 3,
	// Mechanism.
	"kube": 4,
	"peer": 5, "mirror": 5, "netlink": 5,
	// Actors.
	"controller": 6, "webhook": 6, "virtualkubelet": 6, "gateway": 6, "fabric": 6,
	// Faces.
	"cli": 7,
}

// confined maps libraries to the only package that may import them, so that another library, or its next major version, is a change of one
// package.
var confined = map[string]string{
	"github.com/vishvananda/netlink": "pkg/netlink",
	"github.com/google/nftables":     "pkg/netlink",
	"sigs.k8s.io/knftables":          "pkg/netlink",
	"golang.zx2c4.com/wireguard":     "pkg/netlink",
	"github.com/pterm/pterm":         "pkg/cli/output",
	"helm.sh/helm":                   "pkg/cli/helm",
}

// unit returns the folder of pkg/ that a path below the module's root belongs to.
func unit(path string) (string, bool) {
	rest, isProduct := strings.CutPrefix(path, "pkg/")
	name, _, _ := strings.Cut(rest, "/")
	return name, isProduct
}

// proven are tests that need a higher floor than their package's, and why.
var proven = map[string]string{
	"pkg/dataplane/kernel_changes_test.go imports pkg/netlink": "the kernel is what Walk has to agree with",
	"pkg/dataplane/lab_test.go imports pkg/netlink":            "the kernel is what Walk has to agree with",
	"pkg/dataplane/spy_test.go imports pkg/netlink":            "the kernel is what is tried",
	"pkg/dataplane/worlds_test.go imports pkg/addressing":      "worlds get their ranges where clusters get theirs",
}

func TestEveryPackageImportsOnlyLowerFloors(t *testing.T) {
	var offenders []string
	needed := map[string]bool{}
	for _, file := range sources(t) {
		importer, isProduct := unit(file.folder())
		if !isProduct {
			continue
		}
		for _, path := range file.imports() {
			imported, isProduct := unit(path)
			// What serves tests alone belongs to no floor.
			allowed := isProduct && (imported == importer || floors[imported] < floors[importer]) || !isProduct && file.isTest()
			what := fmt.Sprintf("%s imports %s", file.path, path)
			if needed[what] = true; !allowed && proven[what] == "" {
				offenders = append(offenders, what)
			}
		}
	}
	for what := range proven {
		if !needed[what] {
			offenders = append(offenders, what+" no more, and is listed")
		}
	}
	report(t, "a package imports only lower floors and its own sub-packages", offenders)
}

func TestEveryPackageStandsOnAFloor(t *testing.T) {
	seen := map[string]bool{}
	var offenders []string
	for _, file := range sources(t) {
		name, isProduct := unit(file.folder())
		if _, known := floors[name]; isProduct && !known && !seen[name] {
			offenders = append(offenders, "pkg/"+name)
		}
		seen[name] = true
	}
	report(t, "a new folder of pkg/ needs its floor here and in docs/architecture.md", offenders)
}

func TestConfinedLibrariesHaveOneImporter(t *testing.T) {
	var offenders []string
	for _, file := range sources(t) {
		if !strings.HasPrefix(file.path, "pkg/") && !strings.HasPrefix(file.path, "cmd/") {
			continue
		}
		for _, spec := range file.ast.Imports {
			for library, home := range confined {
				foreign := strings.HasPrefix(strings.Trim(spec.Path.Value, `"`), library)
				if foreign && file.folder() != home && !strings.HasPrefix(file.folder(), home+"/") {
					offenders = append(offenders, fmt.Sprintf("%s imports %s, which belongs to %s", file.path, library, home))
				}
			}
		}
	}
	report(t, "a library stands behind one package", offenders)
}

// replaced maps packages to what is used in their place, everywhere.
var replaced = map[string]string{
	"math/rand":                   "math/rand/v2, or crypto/rand for secrets",
	"io/ioutil":                   "io and os",
	"github.com/pkg/errors":       "fmt.Errorf with %w",
	"github.com/stretchr/testify": "cmp.Diff, which compares whole values",
}

func TestReplacedLibrariesAreNotUsed(t *testing.T) {
	var offenders []string
	for _, file := range sources(t) {
		for _, spec := range file.ast.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			for library, use := range replaced {
				// Of the standard library a package below another one is something else, such as math/rand/v2.
				below := strings.Contains(library, ".") && strings.HasPrefix(imported, library+"/")
				if imported == library || below {
					offenders = append(offenders, fmt.Sprintf("%s imports %s: use %s", file.path, imported, use))
				}
			}
		}
	}
	report(t, "some libraries have better successors", offenders)
}

func TestTheProductDoesNotKnowItsTests(t *testing.T) {
	var offenders []string
	for _, file := range sources(t) {
		product := strings.HasPrefix(file.path, "pkg/") || strings.HasPrefix(file.path, "cmd/")
		if !product || file.isTest() {
			continue
		}
		for _, path := range file.imports() {
			if strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "hack/") {
				offenders = append(offenders, fmt.Sprintf("%s imports %s", file.path, path))
			}
		}
	}
	report(t, "pkg and cmd import neither test nor hack", offenders)
}

// heavy are packages that a program of which every cluster runs several must not be linked with, and why.
var heavy = map[string]string{
	"html/template":                                  "it calls methods by name, so that the linker keeps every exported method of every library: some 20 MB",
	"google.golang.org/grpc":                         "only the controller manager speaks it",
	"github.com/google/cel-go/cel":                   "only API servers evaluate CEL",
	"go.opentelemetry.io/otel/sdk/trace":             "nothing here sends traces",
	"github.com/prometheus/prometheus/promql/parser": "only tests read alert rules",
}

// needed are the exceptions.
var needed = map[string]string{"liqo-controller-manager google.golang.org/grpc": "resource plugins speak it"}

// shippedTags are those that programs are built with: without the first, gRPC brings html/template, for pages that nobody serves.
const shippedTags = "-tags=grpcnotrace"

func TestProgramsAreLight(t *testing.T) {
	var offenders []string
	for _, program := range []string{"virtual-kubelet", "liqo-controller-manager", "liqo-gateway", "liqo-fabric"} {
		list := exec.CommandContext(t.Context(), "go", "list", shippedTags, "-deps", "./cmd/"+program)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("listing what %s is linked with: %v", program, err)
		}
		linked := strings.Fields(string(out))
		for name, why := range heavy {
			if slices.Contains(linked, name) && needed[program+" "+name] == "" {
				offenders = append(offenders, fmt.Sprintf("%s is linked with %s (%s); go mod why -m, or go list -deps, tells by whom", program, name, why))
			}
		}
	}
	for _, file := range []string{"Makefile", "deployments/images/assembly/compile.go", "docs/contributing.md"} {
		if !strings.Contains(readFile(t, file), shippedTags) {
			offenders = append(offenders, fmt.Sprintf("%s does not build with %s", file, shippedTags))
		}
	}
	report(t, "programs are not linked with what they do not need", offenders)
}
