package output

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

// The types of lines.
const (
	lineBegin   = "begin"
	lineWaiting = "waiting"
	lineDone    = "done"
	lineWarned  = "warned"
	lineFailed  = "failed"
	lineInfo    = "info"
	lineWarning = "warning"
	lineError   = "error"
)

// Line is one thing that a command tells programs while it works, written as JSON on a line of its own. Fields are added to
// it, not renamed.
type Line struct {
	// Time it happened.
	Time time.Time `json:"time"`
	// Type: begin, waiting, done, warned and failed tell of a step; info and warning of none; error ends the command.
	Type string `json:"type"`
	// ID tells steps apart that run at the same time; 0 is no step.
	ID int `json:"id,omitempty"`
	// Cluster that the step works on, empty for none.
	Cluster string `json:"cluster,omitempty"`
	// Step is the title of the step.
	Step string `json:"step,omitempty"`
	// Seconds since the step began.
	Seconds float64 `json:"seconds,omitempty"`
	// Message for people: what is waited for, what was done, or what is wrong.
	Message string `json:"message,omitempty"`
	// Next is the way out of an error.
	Next string `json:"next,omitempty"`
	// Code that the command exits with, of an error.
	Code failure.Code `json:"code,omitempty"`
}

// Lines is an Observer for programs. Make it with NewLines.
type Lines struct {
	writer io.Writer
	clock  clock.PassiveClock
	mu     sync.Mutex
	last   int
}

// NewLines returns an Observer that writes to a stream, which is standard error.
func NewLines(writer io.Writer, passing clock.PassiveClock) *Lines {
	return &Lines{writer: writer, clock: passing}
}

func (l *Lines) write(line Line) {
	line.Time = l.clock.Now().UTC()
	// A Line always has a JSON form. As with all talk, nobody is told if standard error cannot be written to.
	data, _ := json.Marshal(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.writer.Write(append(escaped(data), '\n'))
}

// Begin implements progress.Observer.
func (l *Lines) Begin(cluster, title string) progress.Task {
	l.mu.Lock()
	l.last++
	t := &lineTask{lines: l, id: l.last, cluster: cluster, title: title, begun: l.clock.Now()}
	l.mu.Unlock()
	t.write(lineBegin, "")
	return t
}

// Note implements progress.Observer.
func (l *Lines) Note(level progress.Level, cluster, message string) {
	kind := lineInfo
	if level == progress.Warning {
		kind = lineWarning
	}
	l.write(Line{Type: kind, Cluster: cluster, Message: message})
}

// Error writes an error that ends the command and the way out; of joined errors each. executable is how the user calls us, which
// suggestions then begin with.
func (l *Lines) Error(executable string, err error) {
	code := failure.CodeOf(err)
	each(err, func(single error) {
		text, next := failure.NextOf(single)
		l.write(Line{Type: lineError, Message: text, Next: strings.ReplaceAll(next, "liqoctl ", executable+" "), Code: code})
	})
}

// lineTask is a step that tells programs how it goes.
type lineTask struct {
	lines          *Lines
	id             int
	cluster, title string
	begun, told    time.Time
	waiting        string
}

func (t *lineTask) write(kind, message string) {
	t.lines.write(Line{
		Type: kind, ID: t.id, Cluster: t.cluster, Step: t.title, Message: message,
		Seconds: t.lines.clock.Since(t.begun).Round(time.Millisecond).Seconds(),
	})
}

// Waiting implements progress.Task: it says what is new, and repeats itself seldom.
func (t *lineTask) Waiting(message string) {
	now := t.lines.clock.Now()
	if message == t.waiting && now.Sub(t.told) < reminder {
		return
	}
	t.waiting, t.told = message, now
	t.write(lineWaiting, message)
}

// Done implements progress.Task.
func (t *lineTask) Done(message string) { t.write(lineDone, message) }

// Warn implements progress.Task.
func (t *lineTask) Warn(message string) { t.write(lineWarned, message) }

// Fail implements progress.Task. The error itself is told once, when the command ends.
func (t *lineTask) Fail(error) { t.write(lineFailed, "") }
