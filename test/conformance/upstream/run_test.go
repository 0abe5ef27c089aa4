package upstream

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/test/lab/binary"
)

func TestFocusMatchesExactly(t *testing.T) {
	pattern := regexp.MustCompile(focus([]string{"[sig-node] Pods should run (once)", "[sig-apps] Job"}))
	for name, want := range map[string]bool{
		"[sig-node] Pods should run (once)":       true,
		"[sig-apps] Job":                          true,
		"[sig-node] Pods should run (once) again": false,
		"a [sig-apps] Job":                        false,
		"[sig-node] Pods should run once":         false,
	} {
		if got := pattern.MatchString(description + " " + name); got != want {
			t.Errorf("%s: matches %t, want %t", name, got, want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	got, err := outcomes([]byte(`[{"SpecReports": [
		{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "should run", "State": "passed", "RunTime": 1500000000},
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "should fail", "State": "failed", "RunTime": 1000000000, "Failure": {"Message": "no"}},
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "skips itself", "State": "skipped", "Failure": {"Message": "not here"}},
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "was not asked for", "State": "skipped"},
		{"LeafNodeType": "It", "LeafNodeText": "is not written", "State": "pending"}
	]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Outcome{
		"[sig-node] Pods should run":   {State: "passed", Seconds: 1.5},
		"[sig-node] Pods should fail":  {State: "failed", Message: "no", Seconds: 1},
		"[sig-node] Pods skips itself": {State: "skipped", Message: "not here"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes differ (-want +got):\n%s", diff)
	}
	if _, err := outcomes([]byte("no report")); err == nil {
		t.Error("what is no report is read")
	}
}

// fakeGinkgo writes a report: at first "works" passes and the others fail; in a folder called again all pass.
const fakeGinkgo = `#!/bin/sh
state=failed
case $PWD in */again) state=passed ;; esac
for argument; do case $argument in --focus=*) echo "$argument" ;; esac; done
cat > report.json <<END
[{"SpecReports": [
  {"LeafNodeType": "It", "LeafNodeText": "works", "State": "passed"},
  {"LeafNodeType": "It", "LeafNodeText": "is slow", "State": "$state", "Failure": {"Message": "too late\nfor it"}},
  {"LeafNodeType": "It", "LeafNodeText": "cannot", "State": "failed", "Failure": {"Message": "no"}}
]}]
END
[ $state = passed ]
`

func TestWhatFailsUnexpectedlyIsRunOnceMore(t *testing.T) {
	folder := t.TempDir()
	ginkgo := filepath.Join(folder, "ginkgo")
	if err := os.WriteFile(ginkgo, []byte(fakeGinkgo), 0o755); err != nil {
		t.Fatal(err)
	}
	r := Run{Programs: binary.Set{binary.Ginkgo: ginkgo}, Processes: 10, Folder: filepath.Join(folder, "run"), Timeout: time.Minute}
	r = r.Of([]Test{{Name: "works"}, {Name: "is slow"}, {Name: "cannot", Fails: "It needs more."}}, func(t Test) bool { return t.Fails != "" })
	got, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(folder, "run", "again", "log.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "--focus=^Kubernetes e2e suite (is slow)$\n"; string(log) != want {
		t.Errorf("run once more: %q, want %q", log, want)
	}
	if o := got["is slow"]; !o.Passed() || o.Before != "too late" {
		t.Errorf("the slow test: %+v, want it passed and what was before", o)
	}
}
