package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Spec says how to run a program.
type Spec struct {
	// Component is the program's name within the lab, such as rome/kube-apiserver.
	Component string `json:"component"`
	// Args are the path of the program and its arguments.
	Args []string `json:"args"`
	// Env are variables added to the caller's environment, as NAME=value.
	Env []string `json:"env,omitempty"`
	// Namespace is the network namespace to run in; empty for the caller's.
	Namespace string `json:"namespace,omitempty"`
	// Cgroups are folders of cgroup hierarchies which the program enters before it starts.
	Cgroups []string `json:"cgroups,omitempty"`
	// Log is the file that output is appended to.
	Log string `json:"log"`
}

// record is what is remembered of a started program.
type record struct {
	Spec
	PID       int    `json:"pid"`
	StartTime string `json:"startTime"` // field 22 of /proc/<pid>/stat
	BootID    string `json:"bootID"`
}

// Table is the set of programs of one lab, stored as one file per program.
type Table struct {
	dir string
}

// NewTable returns the table stored in a folder, which is created when needed.
func NewTable(dir string) *Table { return &Table{dir: dir} }

func (t *Table) path(component string) string {
	return filepath.Join(t.dir, strings.ReplaceAll(component, "/", "+")+".json")
}

// Start runs the program and remembers it. It does nothing when the component is
// alive already with the same arguments, and replaces it when they differ.
func (t *Table) Start(ctx context.Context, s Spec) error {
	if old, err := t.read(s.Component); err == nil && old.alive() {
		if slices.Equal(old.Args, s.Args) && slices.Equal(old.Env, s.Env) && old.Namespace == s.Namespace {
			return nil
		}
		if err := t.Stop(ctx, 10*time.Second, s.Component); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of process records: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o755); err != nil {
		return fmt.Errorf("creating the folder of logs: %w", err)
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", s.Component, err)
	}
	defer log.Close()

	argv := s.command()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.Component, err)
	}
	go func() { _ = cmd.Wait() }() // reaps it while this process lives; afterwards init does
	started, _, err := stat(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("starting %s: it ended at once: %s", s.Component, Tail(s.Log, 400))
	}
	return t.write(record{Spec: s, PID: cmd.Process.Pid, StartTime: started, BootID: bootID()})
}

// command wraps the program so that it enters its cgroups and namespace first.
// Every wrapper replaces itself by exec: the process id stays the program's own.
func (s Spec) command() []string {
	argv := s.Args
	if s.Namespace != "" {
		argv = append([]string{"nsenter", "--net=" + filepath.Join("/run/netns", s.Namespace), "--"}, argv...)
	}
	if len(s.Cgroups) > 0 {
		var script strings.Builder
		for _, dir := range s.Cgroups {
			fmt.Fprintf(&script, "echo $$ > '%s/cgroup.procs' && ", dir)
		}
		script.WriteString(`exec "$@"`)
		argv = append([]string{"/bin/sh", "-c", script.String(), "sh"}, argv...)
	}
	return argv
}

// Restart starts the component again as it was started last, ending it first when it runs.
func (t *Table) Restart(ctx context.Context, component string) error {
	r, err := t.read(component)
	if err != nil {
		return err
	}
	if err := t.Stop(ctx, 10*time.Second, component); err != nil {
		return err
	}
	return t.Start(ctx, r.Spec)
}

// RestartWith is Restart with some flags, named without their leading dashes, changed or added.
func (t *Table) RestartWith(ctx context.Context, component string, flags map[string]string) error {
	r, err := t.read(component)
	if err != nil {
		return err
	}
	args := slices.DeleteFunc(slices.Clone(r.Args), func(arg string) bool {
		name, _, isFlag := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		_, changed := flags[name]
		return isFlag && changed
	})
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+flags[name])
	}
	if err := t.Stop(ctx, 10*time.Second, component); err != nil {
		return err
	}
	s := r.Spec
	s.Args = args
	return t.Start(ctx, s)
}

// Signal sends a signal to the component; it fails when the component does not run.
func (t *Table) Signal(component string, signal syscall.Signal) error {
	r, err := t.read(component)
	if err != nil {
		return err
	}
	if !r.alive() {
		return fmt.Errorf("%s does not run: see %s, or start the lab again with up", component, r.Log)
	}
	if err := syscall.Kill(r.PID, signal); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, component, err)
	}
	return nil
}

// Stop ends the components together: SIGTERM, then SIGKILL for those that are
// still alive after grace. Records stay, so that Restart works.
func (t *Table) Stop(ctx context.Context, grace time.Duration, components ...string) error {
	var live []record
	for _, c := range components {
		if r, err := t.read(c); err == nil && r.alive() {
			live = append(live, r)
			// A stopped (SIGSTOP) program acts on SIGTERM only once it continues.
			_ = syscall.Kill(r.PID, syscall.SIGTERM)
			_ = syscall.Kill(r.PID, syscall.SIGCONT)
		}
	}
	if waitDead(ctx, live, grace) == nil {
		return nil
	}
	for _, r := range live {
		if r.alive() {
			_ = syscall.Kill(r.PID, syscall.SIGKILL)
		}
	}
	if err := waitDead(ctx, live, 10*time.Second); err != nil {
		return fmt.Errorf("ending %s: %w", strings.Join(components, ", "), err)
	}
	return nil
}

func waitDead(ctx context.Context, records []record, timeout time.Duration) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		for _, r := range records {
			if r.alive() {
				return false, nil
			}
		}
		return true, nil
	})
}

// Alive says whether the component runs.
func (t *Table) Alive(component string) bool {
	r, err := t.read(component)
	return err == nil && r.alive()
}

// PID returns the process id of a running component, 0 for others.
func (t *Table) PID(component string) int {
	if r, err := t.read(component); err == nil && r.alive() {
		return r.PID
	}
	return 0
}

// Log returns the path of the component's log.
func (t *Table) Log(component string) string {
	r, err := t.read(component)
	if err != nil {
		return ""
	}
	return r.Log
}

// Components lists all remembered components in alphabetical order, running or not.
func (t *Table) Components() []string {
	files, _ := filepath.Glob(filepath.Join(t.dir, "*.json"))
	var names []string
	for _, f := range files {
		names = append(names, strings.ReplaceAll(strings.TrimSuffix(filepath.Base(f), ".json"), "+", "/"))
	}
	slices.Sort(names)
	return names
}

func (t *Table) read(component string) (record, error) {
	data, err := os.ReadFile(t.path(component))
	if errors.Is(err, os.ErrNotExist) {
		return record{}, fmt.Errorf("the lab has no component %q: it has %s", component, strings.Join(t.Components(), ", "))
	}
	if err != nil {
		return record{}, fmt.Errorf("reading the record of %s: %w", component, err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("parsing the record of %s: %w", component, err)
	}
	return r, nil
}

func (t *Table) write(r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the record of %s: %w", r.Component, err)
	}
	temporary := t.path(r.Component) + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("writing the record of %s: %w", r.Component, err)
	}
	if err := os.Rename(temporary, t.path(r.Component)); err != nil {
		return fmt.Errorf("writing the record of %s: %w", r.Component, err)
	}
	return nil
}

// alive says whether the very process that was started still runs.
func (r record) alive() bool {
	started, state, err := stat(r.PID)
	return err == nil && state != "Z" && state != "X" && started == r.StartTime && r.BootID == bootID()
}

// stat returns start time and state of a process.
func stat(pid int) (started, state string, err error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", "", err
	}
	return parseStat(string(data))
}

// parseStat reads /proc/<pid>/stat. The program's name stands in parentheses and
// may itself contain blanks and parentheses, so fields are counted after the last one.
func parseStat(line string) (started, state string, err error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	if end < 0 || len(fields) < 20 {
		return "", "", fmt.Errorf("unexpected form of a process status: %q", line)
	}
	return fields[19], fields[0], nil
}

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// Tail returns the last n bytes of a log, for error messages.
func Tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data[max(0, len(data)-n):]))
}
