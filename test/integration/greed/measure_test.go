package greed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"liqo.io/liqo/test/integration/fixture"
)

// memoryOf is memory of a process in MiB: what it has (VmRSS), or the most that it ever had (VmHWM).
func memoryOf(t *testing.T, pid int, what string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	fixture.Must(t, "reading the memory of a process", err)
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, what+": %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	t.Fatalf("process %d does not say its %s", pid, what)
	return 0
}

// processorOf is the processor time that a process has used.
func processorOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fixture.Must(t, "reading what a process used", err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	var user, system int64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	fixture.Must(t, "reading what a process used", err)
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// spent is the processor time that a process uses for something, also after its answer: until it needs less than a quarter of a processor
// again, but no longer than two minutes.
func spent(t *testing.T, pid int, something func()) time.Duration {
	t.Helper()
	before := processorOf(t, pid)
	something()
	last, since := processorOf(t, pid), time.Now()
	end := since.Add(2 * time.Minute)
	fixture.Await(t, 3*time.Minute, "the process to be idle", func(context.Context) (bool, string) {
		if time.Since(since) < 2*time.Second {
			return false, "it is watched"
		}
		now := processorOf(t, pid)
		idle := now-last < time.Second/2
		last, since = now, time.Now()
		return idle || since.After(end), fmt.Sprint(now - before)
	})
	return processorOf(t, pid) - before
}
