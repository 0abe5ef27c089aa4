package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestParseStat(t *testing.T) {
	rest := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	for sentence, line := range map[string]string{
		"plain name":             "42 (etcd)" + rest,
		"name with parentheses":  "42 (a) (b)" + rest,
		"name that looks like a": "42 (x) S 9 9" + ")" + rest,
	} {
		t.Run(sentence, func(t *testing.T) {
			started, state, err := parseStat(line)
			if diff := cmp.Diff([]string{"4711", "S"}, []string{started, state}); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, _, err := parseStat("nonsense"); err == nil {
		t.Error("nonsense was accepted")
	}
}

func TestCommandEntersCgroupsThenNamespace(t *testing.T) {
	s := Spec{Args: []string{"/bin/x", "--a"}, Namespace: "ns", Cgroups: []string{"/cg/a", "/cg/b"}}
	want := []string{
		"/bin/sh", "-c", `echo $$ > '/cg/a/cgroup.procs' && echo $$ > '/cg/b/cgroup.procs' && exec "$@"`, "sh",
		"nsenter", "--net=/run/netns/ns", "--", "/bin/x", "--a",
	}
	if diff := cmp.Diff(want, s.command()); diff != "" {
		t.Errorf("command differs (-want +got):\n%s", diff)
	}
}

// sleeper starts a long-running program under a fresh table.
func sleeper(t *testing.T, args ...string) *Table {
	t.Helper()
	dir := t.TempDir()
	table := NewTable(filepath.Join(dir, "processes"))
	start(t, table, Spec{Component: "rome/x", Args: args, Log: filepath.Join(dir, "x.log")})
	t.Cleanup(func() { _ = table.Stop(context.Background(), 0, "rome/x") })
	return table
}

func start(t *testing.T, table *Table, s Spec) {
	t.Helper()
	if err := table.Start(context.Background(), s); err != nil {
		t.Fatal(err)
	}
}

func TestLifeOfAProgram(t *testing.T) {
	ctx := context.Background()
	table := sleeper(t, "sleep", "1000")
	pid := table.PID("rome/x")
	if pid == 0 {
		t.Fatal("the program does not run")
	}
	r, err := table.read("rome/x")
	if err != nil {
		t.Fatal(err)
	}
	start(t, table, r.Spec)
	if got := table.PID("rome/x"); got != pid {
		t.Errorf("starting it again changed the process from %d to %d", pid, got)
	}
	other := r.Spec
	other.Args = []string{"sleep", "1001"}
	start(t, table, other)
	if got := table.PID("rome/x"); got == pid || got == 0 {
		t.Errorf("other arguments kept the process %d", got)
	}
	if err := table.Signal("rome/x", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := waitDead(ctx, []record{mustRead(t, table)}, 5*time.Second); err != nil {
		t.Fatalf("the program survived SIGKILL: %v", err)
	}
	if err := table.Signal("rome/x", syscall.SIGTERM); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("signalling a dead program: %v", err)
	}
	if err := table.Restart(ctx, "rome/x"); err != nil {
		t.Fatal(err)
	}
	if err := table.Signal("rome/x", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := table.Stop(ctx, 5*time.Second, "rome/x"); err != nil {
		t.Errorf("ending a stopped program: %v", err)
	}
	if diff := cmp.Diff([]string{"rome/x"}, table.Components()); diff != "" {
		t.Errorf("components differ (-want +got):\n%s", diff)
	}
}

func mustRead(t *testing.T, table *Table) record {
	t.Helper()
	r, err := table.read("rome/x")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAStubbornProgramIsKilled(t *testing.T) {
	table := sleeper(t, "/bin/sh", "-c", `trap "" TERM; echo ready; while :; do sleep 1; done`)
	err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return Tail(table.Log("rome/x"), 100) == "ready", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Stop(context.Background(), 100*time.Millisecond, "rome/x"); err != nil {
		t.Fatal(err)
	}
	if table.Alive("rome/x") {
		t.Error("it is still alive")
	}
}

func TestARecycledProcessIDIsNotOurs(t *testing.T) {
	table := sleeper(t, "sleep", "1000")
	for sentence, change := range map[string]func(*record){
		"other start time": func(r *record) { r.StartTime = "1" },
		"other boot":       func(r *record) { r.BootID = "another" },
		"this test itself": func(r *record) { r.PID = os.Getpid() },
	} {
		t.Run(sentence, func(t *testing.T) {
			r := mustRead(t, table)
			change(&r)
			if r.alive() {
				t.Error("a foreign process was taken for ours")
			}
		})
	}
}

func TestUnknownComponentNamesTheKnownOnes(t *testing.T) {
	err := sleeper(t, "sleep", "1000").Signal("rome/y", syscall.SIGTERM)
	if err == nil || err.Error() != `the lab has no component "rome/y": it has rome/x` {
		t.Errorf("error = %v", err)
	}
}

func TestRestartWithOtherFlags(t *testing.T) {
	table := sleeper(t, "/bin/sh", "-c", "echo \"$@\"; exec sleep 1000", "sh", "--kept=1", "--changed=1")
	if err := table.RestartWith(context.Background(), "rome/x", map[string]string{"changed": "2", "added": "3"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"/bin/sh", "-c", "echo \"$@\"; exec sleep 1000", "sh", "--kept=1", "--added=3", "--changed=2"}
	if diff := cmp.Diff(want, mustRead(t, table).Args); diff != "" {
		t.Errorf("arguments differ (-want +got):\n%s", diff)
	}
	if !table.Alive("rome/x") {
		t.Error("it does not run")
	}
}
