package state_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/test/lab/network"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
)

func TestSavedStateIsReadBack(t *testing.T) {
	root := t.TempDir()
	t.Setenv(state.EnvRoot, root)
	dir, err := state.Dir("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lab := spec.Demo(2).Complete()
	plan := network.NewPlan(lab, netip.MustParsePrefix("172.30.0.0/24"))
	want := state.State{Lab: lab, Plan: &plan, Faults: []network.Fault{{A: "milan", B: "rome", Cut: true}}, Ports: map[string]state.Ports{"rome": {API: 1, Etcd: 2, EtcdPeer: 3}}}
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, found, err := state.Load(dir)
	if err != nil || !found {
		t.Fatalf("found %t, error %v", found, err)
	}
	equal := cmp.Options{cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("state differs (-want +got):\n%s", diff)
	}
	names, err := state.Names()
	if diff := cmp.Diff([]string{"demo"}, names); diff != "" || err != nil {
		t.Errorf("error %v, names differ (-want +got):\n%s", err, diff)
	}
}

func TestALabThatIsNotThere(t *testing.T) {
	if _, found, err := state.Load(t.TempDir()); found || err != nil {
		t.Errorf("found %t, error %v", found, err)
	}
}

func TestTheLockExcludes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	unlock, err := state.Lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := state.Lock(short, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	// The holder removes the folder: the next one must not lock the removed one.
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	again, err := state.Lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
	unlock()
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the lock's folder: %v", err)
	}
}

func TestCreatedFolders(t *testing.T) {
	root := t.TempDir()
	for _, want := range [][]string{{"/var/lib/cni"}, nil, nil} {
		if err := state.SaveCreated(root, want); err != nil {
			t.Fatal(err)
		}
		got, err := state.LoadCreated(root)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
	}
	if entries, _ := os.ReadDir(root); len(entries) > 0 {
		t.Errorf("left %v", entries)
	}
}
