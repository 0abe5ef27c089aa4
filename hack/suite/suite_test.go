package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheTableDecidesWhatIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiers.tsv")
	const text = "# a comment\n\ncore\ttest/e2e\tTestPods\tlogs and exec\nall\ttest/e2e\tTestChaos\tsibling: x\nall\ttest/integration/a\tTestEndings/by force\tsibling: y\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, err := readTiers(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := skipped(rows, tierTest), "^TestChaos$|^TestEndings$/^by_force$"; got != want {
		t.Errorf("make test leaves out %q, want %q", got, want)
	}
	if got := skipped(rows, tierAll); got != "" {
		t.Errorf("make test-all leaves out %q, want nothing", got)
	}
}

func TestALineOfTheTableThatIsNotWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiers.tsv")
	if err := os.WriteFile(path, []byte("all\ttest/e2e\tTestChaos\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readTiers(path); err == nil || !strings.Contains(err.Error(), "tiers.tsv:1: want 4 columns") {
		t.Errorf("a line of three columns was taken: %v", err)
	}
}

// As gotestsum writes it: what failed is run again, and its events follow.
const run = `{"Action":"start","Package":"liqo.io/liqo/test/a"}
{"Action":"run","Package":"liqo.io/liqo/test/a","Test":"TestOnce"}
{"Action":"pass","Package":"liqo.io/liqo/test/a","Test":"TestOnce","Elapsed":1.5}
{"Action":"fail","Package":"liqo.io/liqo/test/a","Test":"TestAgain/part","Elapsed":30}
{"Action":"fail","Package":"liqo.io/liqo/test/a","Test":"TestAgain","Elapsed":31}
{"Action":"fail","Package":"liqo.io/liqo/test/a","Test":"TestNever","Elapsed":2}
{"Action":"skip","Package":"liqo.io/liqo/test/a","Test":"TestElsewhere","Elapsed":0}
{"Action":"fail","Package":"liqo.io/liqo/test/a","Elapsed":35}
{"Action":"pass","Package":"liqo.io/liqo/test/a","Test":"TestAgain","Elapsed":3}
{"Action":"fail","Package":"liqo.io/liqo/test/a","Test":"TestNever","Elapsed":2}
`

func TestWhatPassedOnlyWhenRunAgainIsTold(t *testing.T) {
	all, err := read(strings.NewReader(run))
	if err != nil {
		t.Fatal(err)
	}
	want := []outcome{
		{Folder: "test/a", Test: "TestOnce", Seconds: 1.5, Passed: true},
		{Folder: "test/a", Test: "TestAgain", Seconds: 31, Failures: 1, Passed: true},
		{Folder: "test/a", Test: "TestNever", Seconds: 2, Failures: 2},
		{Folder: "test/a", Test: "TestElsewhere", Skipped: true},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("how the tests went (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"test/a TestNever"}, failures(all)); diff != "" {
		t.Errorf("what failed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:2], passedAgain(all)); diff != "" {
		t.Errorf("what passed when run again (-want +got):\n%s", diff)
	}
	var told bytes.Buffer
	describe(&told, all, passedAgain(all), []row{{tierAll, "test/a", "TestOnce", ""}})
	for _, line := range []string{
		"over 20 s without a line in test/tiers.tsv (a busy machine, or a test to mend):\n    31.0 s  test/a TestAgain\n",
		"passed when run again:\n  test/a TestAgain\n",
	} {
		if !strings.Contains(told.String(), line) {
			t.Errorf("%q is not told:\n%s", line, &told)
		}
	}
	told.Reset()
	describe(&told, all, nil, []row{{"core", "test/a", "TestAgain", ""}})
	if strings.Contains(told.String(), "without a line") {
		t.Errorf("a test that has a line is said to have none:\n%s", &told)
	}
}

// inCheckout has the test work in a checkout of its own, with results of one suite.
func inCheckout(t *testing.T, results string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for path, text := range map[string]string{".gitignore": "/dist/\n", "dist/test/clusters.json": results, "dist/test/clusters.seconds": "35\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, "first")
}

func commit(t *testing.T, subject string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", subject},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
}

// What gotestsum forgives: the clusters of one package do not start, those of another one do not end, and no test of theirs failed.
func TestAPackageThatFailsWithoutATestIsAFailure(t *testing.T) {
	const results = `{"Action":"start","Package":"liqo.io/liqo/test/a"}
{"Action":"fail","Package":"liqo.io/liqo/test/a","Elapsed":9}
{"Action":"start","Package":"liqo.io/liqo/test/a"}
{"Action":"pass","Package":"liqo.io/liqo/test/a","Elapsed":0}
{"Action":"start","Package":"liqo.io/liqo/test/b"}
{"Action":"pass","Package":"liqo.io/liqo/test/b","Test":"TestB","Elapsed":1}
{"Action":"fail","Package":"liqo.io/liqo/test/b","Elapsed":9}
`
	inCheckout(t, results)
	err := reportAll(t.Context(), &bytes.Buffer{}, true)
	for _, folder := range []string{"test/a", "test/b"} {
		if err == nil || !strings.Contains(err.Error(), folder+" "+withoutTest) {
			t.Errorf("package %s: %v", folder, err)
		}
	}
	if _, err := os.Stat("dist/test/passed"); err == nil {
		t.Error("there is a receipt all the same")
	}
}

func TestAReceiptIsForOneCommit(t *testing.T) {
	inCheckout(t, regexp.MustCompile(`.*TestNever.*\n`).ReplaceAllString(run, ""))
	var told bytes.Buffer
	if err := passed(t.Context(), &told); err == nil || !strings.Contains(err.Error(), "no commit passed here") {
		t.Errorf("a commit without a receipt: %v", err)
	}
	if err := reportAll(t.Context(), &told, true); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile("dist/test/passed")
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{40} 35 s \d{4}-\d\d-\d\dT[0-9:]+Z\n$`).Match(line) {
		t.Fatalf("the receipt is %q (%v), want commit, seconds and date", line, err)
	}
	if err := passed(t.Context(), &told); err != nil {
		t.Errorf("the commit that passed: %v", err)
	}
	if err := os.WriteFile("more.go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := passed(t.Context(), &told); err == nil || !strings.Contains(err.Error(), "more.go") {
		t.Errorf("a file that is not committed: %v", err)
	}
	if err := os.Remove("dist/test/passed"); err != nil {
		t.Fatal(err)
	}
	if err := reportAll(t.Context(), &told, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("dist/test/passed"); err == nil {
		t.Error("a work tree with changes has a receipt")
	}
	if err := os.WriteFile("dist/test/passed", line, 0o600); err != nil {
		t.Fatal(err)
	}
	commit(t, "second")
	if err := passed(t.Context(), &told); err == nil || !strings.Contains(err.Error(), "second") {
		t.Errorf("a later commit: %v", err)
	}
}

func TestMoreThanChanceIsAFailure(t *testing.T) {
	var results strings.Builder
	for _, name := range []string{"A", "B", "C", "D"} {
		for _, action := range []string{"fail", "pass"} {
			results.WriteString(`{"Action":"` + action + `","Package":"liqo.io/liqo/test/a","Test":"Test` + name + `","Elapsed":1}` + "\n")
		}
	}
	inCheckout(t, results.String())
	err := reportAll(t.Context(), &bytes.Buffer{}, true)
	if err == nil || !strings.Contains(err.Error(), "4 tests passed only when they were run again") {
		t.Errorf("four tests that passed when run again: %v", err)
	}
	if _, err := os.Stat("dist/test/passed"); err == nil {
		t.Error("there is a receipt all the same")
	}
	if text, err := os.ReadFile("dist/test/again.json"); err != nil || strings.Count(string(text), `"folder": "test/a"`) != 4 {
		t.Errorf("again.json: %s (%v)", text, err)
	}
}
