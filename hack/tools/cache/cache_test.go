package cache

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnUnknownToolListsTheKnownOnes(t *testing.T) {
	_, err := Path(context.Background(), t.TempDir(), "hammer", &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), strings.Join(Names(), ", ")) {
		t.Errorf("want an error that lists %v, got %v", Names(), err)
	}
}

func TestAToolThatIsThereIsNotBuiltAgain(t *testing.T) {
	root := t.TempDir()
	want := filepath.Join(root, "tools", "controller-gen-"+Known["controller-gen"].Version, "controller-gen")
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	// Any binary of the running toolchain will do: this test's own.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, want); err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	got, err := Path(context.Background(), root, "controller-gen", &progress)
	if err != nil || got != want {
		t.Errorf("want %s, got %s (error %v)", want, got, err)
	}
	if progress.Len() > 0 {
		t.Errorf("something was built: %s", &progress)
	}
}

func TestAFileThatIsNoGoBinaryIsNotUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "controller-gen")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if usable(path) {
		t.Error("a shell script was taken for a tool")
	}
}

func TestTheCacheFollowsItsVariable(t *testing.T) {
	t.Setenv("LIQO_CACHE", "/elsewhere")
	if got, err := Root(); err != nil || got != "/elsewhere" {
		t.Errorf("want /elsewhere, got %s (error %v)", got, err)
	}
	t.Setenv("LIQO_CACHE", "")
	t.Setenv("HOME", "/home/user")
	if got, err := Root(); err != nil || got != "/home/user/.cache/liqo" {
		t.Errorf("want /home/user/.cache/liqo, got %s (error %v)", got, err)
	}
}
