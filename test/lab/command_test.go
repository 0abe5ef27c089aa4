package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/state"
)

// call runs the command line without any lab on the machine.
func call(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	t.Setenv(state.EnvRoot, t.TempDir())
	c := command()
	var out, talk bytes.Buffer
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&talk)
	err = c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	for sentence, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":          {[]string{"start"}, `unknown command "start"`},
		"file that is not there":   {[]string{"up", "-f", "/nonexistent.yaml"}, "reading the lab's declaration"},
		"name with capitals":       {[]string{"up", "--name", "Demo"}, "lower-case letters"},
		"kubeconfig without a lab": {[]string{"kubeconfig", "rome"}, `unknown lab "demo": start it with up`},
		"load without archives":    {[]string{"load"}, "requires at least 1 arg"},
		"shell without a lab":      {[]string{"--name", "x", "shell", "rome"}, `unknown lab "x"`},
		"unknown program":          {[]string{"prepare", "emacs"}, `real nodes need no program "emacs"`},
		"unknown output":           {[]string{"status", "-o", "xml"}, "use table or json"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := call(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestNothingThere(t *testing.T) {
	if _, err := call(t, "down"); err != nil {
		t.Errorf("down: %v", err)
	}
	out, err := call(t, "status", "-o", "json")
	if err != nil || strings.TrimSpace(out) != "[]" {
		t.Errorf("status printed %q, error %v, want []", out, err)
	}
}

func TestStatusTable(t *testing.T) {
	var out bytes.Buffer
	err := printStatus(&out, "table", []cluster.Status{{Lab: "demo", Clusters: []cluster.OneStatus{
		{Name: "rome", Kubeconfig: "/r", Real: 2, MemoryMB: 400},
		{Name: "milan", Kubeconfig: "/m", Waiting: "node milan-1", Simulated: 3},
		{Name: "oslo", Kubeconfig: "/o", Waiting: "its API server", Dead: []string{"oslo/etcd"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `LAB    CLUSTER   STATUS                     REAL   SIMULATED   MEMORY   KUBECONFIG
demo   rome      Ready                      2      0           400 MB   /r
demo   milan     waiting for node milan-1   0      3           -        /m
demo   oslo      dead: oslo/etcd            0      0           -        /o
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table differs (-want +got):\n%s", diff)
	}
}
