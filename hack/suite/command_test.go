package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// A test below one that waits for it hears of the interruption, too.
func TestTheTestsOfARunAreInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	folder := t.TempDir()
	began, ended := filepath.Join(folder, "began"), filepath.Join(folder, "ended")
	run := interruptible(ctx, "bash", "-c", `trap : INT; bash -c 'trap "touch $1; exit" INT; touch $0; while :; do sleep 0.1; done' "$0" "$1"; true`, began, ended)
	if err := run.Start(); err != nil {
		t.Fatal("starting a shell in a shell:", err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, err := os.Stat(began)
		return err == nil, nil
	})
	if err != nil {
		t.Fatal("waiting for the inner shell to begin:", err)
	}
	interrupt()
	_ = run.Wait() // says that it was interrupted
	if _, err := os.Stat(ended); err != nil {
		t.Error("the inner shell has not heard of it:", err)
	}
}
