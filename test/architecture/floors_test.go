package architecture

import (
	"fmt"
	"os"
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
	"reflection": 2, "addressing": 2, "capacity": 2, "placement": 2, "identity": 2, "dataplane": 2, "check": 2,
	"networking": 3,
	// Mechanism.
	"kube": 4,
	"peer": 5, "mirror": 5, "netlink": 5,
	// Actors.
	"controller": 6, "webhook": 6, "virtualkubelet": 6, "gateway": 6, "fabric": 6,
	// Faces.
	"cli": 7,
}

// confined maps libraries to the only package that may import them.
var confined = map[string]string{
	"github.com/vishvananda/netlink": "pkg/netlink",
	"github.com/google/nftables":     "pkg/netlink",
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

func TestEveryPackageImportsOnlyLowerFloors(t *testing.T) {
	var offenders []string
	for _, file := range sources(t) {
		importer, isProduct := unit(file.folder())
		// Tests may use what they like of the product: they prove it together.
		if !isProduct || file.isTest() {
			continue
		}
		for _, path := range file.imports() {
			imported, isProduct := unit(path)
			allowed := isProduct && (imported == importer || floors[imported] < floors[importer])
			if !allowed {
				offenders = append(offenders, fmt.Sprintf("%s imports %s", file.path, path))
			}
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
	report(t, "a new folder of pkg/ needs its floor here, in .golangci.yml and in docs/architecture.md", offenders)
}

func TestTheLinterKnowsEveryFloor(t *testing.T) {
	config, err := os.ReadFile(root + "/.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name := range floors {
		if !strings.Contains(string(config), "\n        floor-"+name+":\n") {
			t.Errorf(".golangci.yml has no depguard rule floor-%s", name)
		}
	}
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
