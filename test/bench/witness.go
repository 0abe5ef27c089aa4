package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// witness lets the fixtures of the integration tests be used by a program: what would fail a test ends one scenario.
type witness struct {
	testing.TB // only for the method that keeps others from implementing the interface; never called
	ctx        context.Context
	out        io.Writer

	mu      sync.Mutex
	problem string
}

// attempt runs f, and returns what kept it from coming to its end.
func attempt(ctx context.Context, out io.Writer, f func(*witness)) error {
	w := &witness{ctx: ctx, out: out}
	done, ended := make(chan struct{}), false
	go func() {
		defer close(done)
		defer w.survive()
		f(w)
		ended = true
	}()
	<-done
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.problem != "":
		return fmt.Errorf("%s", w.problem)
	case !ended:
		return fmt.Errorf("it ended early without a word")
	default:
		return nil
	}
}

// survive has a defect of one scenario end that scenario, and not the whole run with what it measured.
func (w *witness) survive() {
	if defect := recover(); defect != nil {
		w.Errorf("a defect of the benchmark: %v\n%s", defect, debug.Stack())
	}
}

// Helper implements testing.TB.
func (w *witness) Helper() {}

// Context implements testing.TB.
func (w *witness) Context() context.Context { return w.ctx }

// Cleanup implements testing.TB: everything is cleaned up at the end of the program anyway.
func (w *witness) Cleanup(func()) {}

// Logf implements testing.TB.
func (w *witness) Logf(format string, args ...any) {
	fmt.Fprintf(w.out, "%s  "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}

// Errorf implements testing.TB.
func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem = fmt.Sprintf(format, args...)
}

// Fatalf implements testing.TB: it ends the goroutine.
func (w *witness) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal implements testing.TB.
func (w *witness) Fatal(args ...any) { w.Fatalf("%s", fmt.Sprint(args...)) }

// Failed implements testing.TB.
func (w *witness) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem != ""
}

// reason is what failed.
func (w *witness) reason() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem
}

// pause waits, or ends the scenario when the program is told to stop.
func (w *witness) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
		w.Fatalf("told to stop")
	}
}
