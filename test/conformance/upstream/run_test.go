package upstream

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
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
