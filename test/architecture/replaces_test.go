package architecture

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// replaces are the places of the product where a JSON patch may get a step that replaces, each with why it may, by their file. API servers let
// the replacement of a key pass that is not there, if what would hold it is: it is no test of what a patch meets. Whoever means one writes
// "test", and "add" for the value.
var replaces = map[string][]string{
	"pkg/webhook/patch/patch.go": {
		"an answer to the API server, which applies it to what it asked about: a key that it left out gets the value that is wanted for it",
	},
	"charts/liqo/templates/elements.yaml": {
		"it is meant to fail, and does: what would hold the key is not there either. test/chart TestElementsAreCountedTogether sees the refusal",
	},
	"charts/liqo/templates/managerobjects.yaml": {
		"it is meant to fail, and does: what would hold the key is not there either. test/integration/greed TestTheManagerMakesNoPrivilegedPods sees the refusal",
	},
}

// replacing is how a step that replaces is written or made.
var replacing = regexp.MustCompile("[\"'`]replace\\\\?[\"'`]|PatchResponseFromRaw\\(|jsonpatch\\.CreatePatch|OpReplace")

func TestWhatReplacesByAJSONPatchIsListed(t *testing.T) {
	var offenders []string
	found := map[string]int{}
	for _, file := range repositoryFiles(t) {
		top, _, _ := strings.Cut(file, "/")
		product := slices.Contains([]string{"pkg", "cmd", "charts", "deployments"}, top) && !strings.Contains(file, "/testdata/")
		if kind := path.Ext(file); !product || strings.HasSuffix(file, "_test.go") || !slices.Contains([]string{".go", ".yaml", ".yml", ".tpl", ".sh"}, kind) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for number, line := range strings.Split(string(text), "\n") {
			for range replacing.FindAllString(line, -1) {
				if found[file]++; found[file] > len(replaces[file]) {
					offenders = append(offenders, fmt.Sprintf("%s:%d", file, number+1))
				}
			}
		}
	}
	for file, reasons := range replaces {
		if found[file] < len(reasons) {
			offenders = append(offenders, fmt.Sprintf("%s replaces in %d places, and %d are listed", file, found[file], len(reasons)))
		}
	}
	slices.Sort(offenders)
	report(t, `a JSON patch replaces where "replaces" says why: it passes where there is nothing to replace; take "test" and "add"`, offenders)
}
