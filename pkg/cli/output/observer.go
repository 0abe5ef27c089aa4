package output

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pterm/pterm"
	"golang.org/x/term"
	"k8s.io/utils/clock"

	"liqo.io/liqo/pkg/cli/progress"
)

const (
	reminder     = 15 * time.Second
	spinnerPause = 100 * time.Millisecond
	maxLine      = 160
	// aroundSpinner are the columns of a spinner's sign and of the longest time: " (1h59m59s)", and one that stays free.
	aroundSpinner = 14
	// minText are the columns that a text needs to say anything.
	minText  = 20
	ellipsis = "..."
	// fallbackWidth is that of a terminal which does not tell its own.
	fallbackWidth = 80
)

// Observer shows progress.
type Observer struct {
	writer io.Writer
	style  Style
	clock  clock.PassiveClock
	mu     sync.Mutex
}

// NewObserver returns an Observer that writes to a stream, which is standard error.
func NewObserver(writer io.Writer, style Style, passing clock.PassiveClock) *Observer {
	if style.Color {
		pterm.EnableStyling()
	}
	return &Observer{writer: writer, style: style, clock: passing}
}

// Begin implements progress.Observer.
func (o *Observer) Begin(cluster, title string) progress.Task {
	now := o.clock.Now()
	t := &task{observer: o, cluster: cluster, title: title, begun: now, told: now}
	if o.style.Terminal {
		t.spin(title)
		return t
	}
	o.line(signWork, cluster, title)
	return t
}

// Note implements progress.Observer.
func (o *Observer) Note(level progress.Level, cluster, message string) {
	kind := signInfo
	if level == progress.Warning {
		kind = signWarn
	}
	o.line(kind, cluster, message)
}

func (o *Observer) line(kind sign, cluster, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	printStyled(o.writer, o.style.sign(kind)+" "+o.prefix(cluster)+plain(text))
}

func (o *Observer) prefix(cluster string) string {
	if cluster == "" {
		return ""
	}
	return o.style.Bold(plain(cluster)) + ": "
}

type task struct {
	observer       *Observer
	cluster, title string
	begun, told    time.Time
	spinner        *pterm.SpinnerPrinter
}

func (t *task) spin(text string) {
	sequence := []string{"-", "\\", "|", "/"}
	if t.observer.style.Unicode {
		sequence = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	}
	style := pterm.NewStyle()
	if t.observer.style.Color {
		style = pterm.NewStyle(pterm.FgBlue)
	}
	spinner, err := pterm.DefaultSpinner.WithWriter(t.observer.writer).WithRemoveWhenDone(true).WithSequence(sequence...).
		WithDelay(spinnerPause).WithShowTimer(true).WithStyle(style).WithMessageStyle(pterm.NewStyle()).WithTimerStyle(pterm.NewStyle()).
		Start(t.observer.fit(t.observer.width(), t.cluster, text))
	if err == nil {
		t.spinner = spinner
	}
}

// Waiting implements progress.Task.
func (t *task) Waiting(message string) {
	if t.spinner != nil {
		t.spinner.UpdateText(t.observer.fit(t.observer.width(), t.cluster, t.title+": "+message))
		return
	}
	if now := t.observer.clock.Now(); now.Sub(t.told) >= reminder {
		t.told = now
		t.observer.line(signWork, t.cluster, fmt.Sprintf("%s (%s): waiting: %s", t.title, t.elapsed(), message))
	}
}

// fit keeps a spinner on one line of the terminal, so that it can be rewritten: what goes around the text, the sign and the time that
// passed, has its place there too.
func (o *Observer) fit(width int, cluster, text string) string {
	room := min(width-aroundSpinner, maxLine)
	if cluster != "" {
		if room -= len([]rune(cluster)) + len(": "); room < minText {
			// A narrow terminal tells what is waited for, not where.
			cluster, room = "", room+len([]rune(cluster))+len(": ")
		}
	}
	text = strings.Join(strings.Fields(plain(text)), " ")
	if letters := []rune(text); len(letters) > room {
		text = string(letters[:max(room-len(ellipsis), 0)]) + ellipsis
	}
	return o.prefix(cluster) + text
}

// width of the terminal that the observer writes to.
func (o *Observer) width() int {
	if file, ok := o.writer.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return fallbackWidth
}

func (t *task) elapsed() time.Duration { return t.observer.clock.Since(t.begun).Round(time.Second) }

func (t *task) end(kind sign, message string) {
	if t.spinner != nil {
		_ = t.spinner.Stop()
	}
	t.observer.line(kind, t.cluster, fmt.Sprintf("%s (%s)", message, t.elapsed()))
}

// Done implements progress.Task.
func (t *task) Done(message string) {
	if message == "" {
		message = t.title
	}
	t.end(signDone, message)
}

// Warn implements progress.Task.
func (t *task) Warn(message string) { t.end(signWarn, message) }

// Fail implements progress.Task. The error itself is told once, when the command ends.
func (t *task) Fail(error) { t.end(signFail, t.title) }
