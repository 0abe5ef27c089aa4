// Package step reports the progress of long work: what started, what ended,
// how long it took. The lab calls an Observer; who watches decides how it looks.
// Observers are called from several goroutines.
package step

import (
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Observer is told what the lab does.
type Observer interface {
	// Start announces a step. The returned function is called exactly once when
	// the step ended, with its error or nil.
	Start(name string) (done func(error))
}

// Silent is an Observer that says nothing.
type Silent struct{}

// Start implements Observer.
func (Silent) Start(string) func(error) { return func(error) {} }

// Lines is an Observer that writes one plain line when a step starts and one when it ended.
type Lines struct {
	out   io.Writer
	clock clock.PassiveClock
	mu    sync.Mutex
}

// NewLines returns an Observer that writes lines to out.
func NewLines(out io.Writer, c clock.PassiveClock) *Lines {
	return &Lines{out: out, clock: c}
}

// Start implements Observer.
func (l *Lines) Start(name string) func(error) {
	begin := l.clock.Now()
	l.print("  … %s\n", name)
	return func(err error) {
		elapsed := l.clock.Now().Sub(begin).Round(100 * time.Millisecond)
		if err != nil {
			l.print("  ✗ %s (%s)\n", name, elapsed)
			return
		}
		l.print("  ✓ %s (%s)\n", name, elapsed)
	}
}

func (l *Lines) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Progress that cannot be shown must not stop the work.
	_, _ = fmt.Fprintf(l.out, format, args...)
}

// Run runs one step under the observer.
func Run(o Observer, name string, work func() error) error {
	done := o.Start(name)
	err := work()
	done(err)
	return err
}
