package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// outcome is what a program did.
type outcome struct {
	command        string
	stdout, stderr string
	code           int
	took           time.Duration
}

func (o outcome) String() string {
	return fmt.Sprintf("%s\nexit code %d after %s\nstdout: %s\nstderr: %s", o.command, o.code, o.took.Round(time.Millisecond),
		strings.TrimSpace(o.stdout), strings.TrimSpace(o.stderr))
}

// succeeds requires exit code 0.
func (o outcome) succeeds(t *testing.T) outcome {
	t.Helper()
	return o.exits(t, 0)
}

// exits requires an exit code.
func (o outcome) exits(t *testing.T, code int) outcome {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d wanted: %s", code, o)
	}
	return o
}

// says requires that a text is in the output.
func (o outcome) says(t *testing.T, text string) outcome {
	t.Helper()
	if !strings.Contains(o.stdout+o.stderr, text) {
		t.Fatalf("%q wanted in the output: %s", text, o)
	}
	return o
}

// liqoctl runs liqoctl, which has to end in time. What it does has to be the test's own business.
func (s *suite) liqoctl(t *testing.T, within time.Duration, args ...string) outcome {
	t.Helper()
	if !slices.Contains(harmless, args[0]) {
		s.solitary(t, "liqoctl "+args[0])
	}
	return s.runsLiqoctl(t, within, args...)
}

func (s *suite) runsLiqoctl(t *testing.T, within time.Duration, args ...string) outcome {
	t.Helper()
	return execute(t, within, exec.Command(s.liqoctlPath, args...))
}

// kubectl runs kubectl at one cluster, which has to end in time.
func (s *suite) kubectl(t *testing.T, c *side, within time.Duration, args ...string) outcome {
	t.Helper()
	if slices.Contains(aboutNodes, args[0]) {
		s.solitary(t, "kubectl "+args[0])
	}
	return execute(t, within, s.kubectlCommand(c, args...))
}

// within runs a command in the network namespace of a node.
func (s *suite) within(t *testing.T, c *side, node string, argv ...string) outcome {
	t.Helper()
	argv, err := s.breaks(t).Within(c.name, node, argv)
	if err != nil {
		t.Fatal(err)
	}
	return execute(t, soon, exec.Command(argv[0], argv[1:]...))
}

func (s *suite) kubectlCommand(c *side, args ...string) *exec.Cmd {
	command := exec.Command(s.kubectlPath, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	command.Env = os.Environ()
	return command
}

// sideBySide runs liqoctl for several clusters at once. Each has to succeed.
func (s *suite) sideBySide(t *testing.T, within time.Duration, clusters []*side, args func(c *side) []string) {
	t.Helper()
	var group sync.WaitGroup
	outcomes, errs := make([]outcome, len(clusters)), make([]error, len(clusters))
	for i, c := range clusters {
		command := exec.Command(s.liqoctlPath, args(c)...)
		group.Go(func() { outcomes[i], errs[i] = perform(within, command) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		o.succeeds(t)
	}
}

func execute(t *testing.T, within time.Duration, command *exec.Cmd) outcome {
	t.Helper()
	o, err := perform(within, command)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// perform runs a program to its end. An error says that it did not start, or did not end in time.
func perform(within time.Duration, command *exec.Cmd) (outcome, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	o := outcome{command: filepath.Base(command.Path) + " " + strings.Join(command.Args[1:], " ")}
	begin := time.Now()
	if err := command.Start(); err != nil {
		return o, fmt.Errorf("starting %s: %w", o.command, err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	timer := time.NewTimer(within)
	defer timer.Stop()
	var err error
	late := false
	select {
	case err = <-done:
	case <-timer.C:
		late = true
		_ = command.Process.Kill()
		err = <-done
	}
	o.took, o.stdout, o.stderr, o.code = time.Since(begin), stdout.String(), stderr.String(), codeOf(err)
	if late {
		return o, fmt.Errorf("did not end within %s: %s", within, o)
	}
	return o, nil
}

func codeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// session is a program that runs while the test talks to it.
type session struct {
	command *exec.Cmd
	in      interface{ Write([]byte) (int, error) }
	tty     *os.File // nil without a terminal
	out     *transcript
	done    chan error
}

// transcript collects output while it comes.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// String returns what came so far.
func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// talk starts a program with pipes; it is ended with the test.
func talk(t *testing.T, command *exec.Cmd) *session {
	t.Helper()
	x := &session{command: command, out: &transcript{}, done: make(chan error, 1)}
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatalf("opening stdin: %v", err)
	}
	x.in, command.Stdout, command.Stderr = stdin, x.out, x.out
	if err := command.Start(); err != nil {
		t.Fatalf("starting %v: %v", command.Args, err)
	}
	go func() { x.done <- command.Wait() }()
	t.Cleanup(func() { _ = command.Process.Kill() })
	return x
}

// terminal starts a program on a terminal of its own; it is ended with the test.
func terminal(t *testing.T, command *exec.Cmd, rows, columns uint16) *session {
	t.Helper()
	tty, err := pty.StartWithSize(command, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		t.Fatalf("starting %v on a terminal: %v", command.Args, err)
	}
	x := &session{command: command, in: tty, tty: tty, out: &transcript{}, done: make(chan error, 1)}
	go func() {
		// Reading a terminal ends with an error once the program has ended: that is its end of file.
		buffer := make([]byte, 4096)
		for {
			n, err := tty.Read(buffer)
			_, _ = x.out.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		x.done <- command.Wait()
	}()
	t.Cleanup(func() { _ = command.Process.Kill(); _ = tty.Close() })
	return x
}

// resize changes the size of the terminal.
func (x *session) resize(t *testing.T, rows, columns uint16) {
	t.Helper()
	if err := pty.Setsize(x.tty, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		t.Fatalf("changing the size of the terminal: %v", err)
	}
}

// send types a line.
func (x *session) send(t *testing.T, line string) {
	t.Helper()
	if _, err := x.in.Write([]byte(line + "\n")); err != nil {
		t.Fatalf("writing to %v: %v\n%s", x.command.Args, err, x.out)
	}
}

// shows waits until a text is in the output.
func (x *session) shows(t *testing.T, text string) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%q in the output of %v", text, x.command.Args[3:]), func(context.Context) (bool, string) {
		seen := x.out.String()
		return strings.Contains(seen, text), fmt.Sprintf("%q", seen)
	})
}

// exits waits until the program ended by itself and requires its exit code.
func (x *session) exits(t *testing.T, code int) {
	t.Helper()
	timer := time.NewTimer(soon)
	defer timer.Stop()
	select {
	case err := <-x.done:
		if got := codeOf(err); got != code {
			t.Fatalf("%v: exit code %d, want %d\n%s", x.command.Args, got, code, x.out)
		}
	case <-timer.C:
		t.Fatalf("%v did not end within %s\n%s", x.command.Args, soon, x.out)
	}
}
