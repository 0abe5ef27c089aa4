package heartbeat

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestHeartbeat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "beat", "heartbeat")
	if err := Check(file, time.Now(), false); err == nil {
		t.Error("a process that never lived is alive")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	prepared := make(chan struct{})
	living := func(time.Time) bool { return true }
	if err := Beat(ctx, file, living, prepared); err != nil {
		t.Fatal(err)
	}
	if err := Check(file, time.Now(), false); err != nil {
		t.Errorf("a living process is dead: %v", err)
	}
	if err := Check(file, time.Now(), true); err == nil {
		t.Error("a process that is not prepared is ready")
	}
	close(prepared)
	if err := Beat(ctx, file, living, prepared); err != nil {
		t.Fatal(err)
	}
	if err := Check(file, time.Now(), true); err != nil {
		t.Errorf("a prepared process is not ready: %v", err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if err := Check(file, time.Now(), false); err == nil {
		t.Error("a silent process is alive")
	}
}
