package progress

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Level of a note.
type Level int

// The levels of notes.
const (
	// Info is good to know.
	Info Level = iota
	// Warning needs the user's attention, and does not stop the command.
	Warning
)

// Observer is told what a verb does.
type Observer interface {
	// Begin announces a step on a cluster.
	Begin(cluster, title string) Task
	// Note tells something that is not a step.
	Note(level Level, cluster, message string)
}

// Task is one step that has begun.
type Task interface {
	// Waiting says what the step waits for at present.
	Waiting(message string)
	// Done ends the step; the message replaces the title unless it is empty.
	Done(message string)
	// Warn ends the step with something that the user should look at.
	Warn(message string)
	// Fail ends the step with what went wrong.
	Fail(err error)
}

// Warned is returned by a step's function to end the step with Warn while the verb goes on.
type Warned string

// Error implements error.
func (w Warned) Error() string { return string(w) }

// Run runs a step and ends its Task according to the result: the returned text is what was done.
func Run(ctx context.Context, observer Observer, cluster, title string, step func(context.Context, Task) (string, error)) error {
	task := observer.Begin(cluster, title)
	message, err := "", ctx.Err()
	if err == nil {
		message, err = step(ctx, task)
	}
	var warned Warned
	switch {
	case errors.As(err, &warned):
		task.Warn(string(warned))
		return nil
	case err != nil:
		task.Fail(err)
		return err
	default:
		task.Done(message)
		return nil
	}
}

// Discard is an Observer that listens to nothing.
var Discard Observer = discard{}

type discard struct{}

func (discard) Begin(string, string) Task  { return discard{} }
func (discard) Note(Level, string, string) {}
func (discard) Waiting(string)             {}
func (discard) Done(string)                {}
func (discard) Warn(string)                {}
func (discard) Fail(error)                 {}

// Recorder is an Observer that keeps one line for everything it is told, for tests and reports.
type Recorder struct {
	mu    sync.Mutex
	lines []string
}

// Lines returns what was told so far.
func (r *Recorder) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

func (r *Recorder) add(cluster, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cluster != "" {
		cluster += ": "
	}
	r.lines = append(r.lines, cluster+fmt.Sprintf(format, args...))
}

// Begin implements Observer.
func (r *Recorder) Begin(cluster, title string) Task {
	return &recorded{recorder: r, cluster: cluster, title: title}
}

// Note implements Observer.
func (r *Recorder) Note(level Level, cluster, message string) {
	if level == Warning {
		message = "warning: " + message
	}
	r.add(cluster, "%s", message)
}

type recorded struct {
	recorder             *Recorder
	cluster, title, last string
}

// Waiting implements Task.
func (t *recorded) Waiting(message string) {
	if message != t.last {
		t.recorder.add(t.cluster, "%s: waiting: %s", t.title, message)
	}
	t.last = message
}

// Done implements Task.
func (t *recorded) Done(message string) {
	if message == "" {
		message = t.title
	}
	t.recorder.add(t.cluster, "done: %s", message)
}

// Warn implements Task.
func (t *recorded) Warn(message string) { t.recorder.add(t.cluster, "warned: %s", message) }

// Fail implements Task.
func (t *recorded) Fail(err error) { t.recorder.add(t.cluster, "failed: %s: %s", t.title, err) }
