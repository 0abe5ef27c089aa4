package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// space is a network namespace. It ends with the program, whatever becomes of that.
type space struct {
	file *os.File
	// log is where its programs tell what they do; nil is where this one does.
	log io.Writer
}

func newSpace() (*space, error) {
	s, made := &space{}, make(chan error, 1)
	go func() {
		// Never unlocked: the thread that has another namespace ends with the goroutine.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			s.file, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("making a network namespace: %w", err)
	}
	return s, s.run("ip link set lo up\nfor each in all default; do echo 0 > /proc/sys/net/ipv4/conf/$each/rp_filter; done\n")
}

// path is the namespace as other programs open it.
func (s *space) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.file.Fd()) }

// in calls a function on a thread in the namespace.
func (s *space) in(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// run runs a script of the shell.
func (s *space) run(script string) error {
	command := exec.Command("nsenter", "--net="+s.path(), "sh", "-eu")
	command.Stdin = strings.NewReader(script)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s\n%s", err, out, script)
	}
	return nil
}

// child is a process in a namespace that is told by lines what to do, and answers by lines.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// start runs a program in the namespace, until the context ends or this program does.
func (s *space) start(ctx context.Context, environment []string, program string, args ...string) (*child, error) {
	c := &child{command: exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + s.path(), program}, args...)...)}
	c.command.Env = append(os.Environ(), environment...)
	var log io.Writer = os.Stderr
	if s.log != nil {
		log = s.log
	}
	c.command.Stderr = log
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return c, nil
}

// again runs this program in the namespace in another role.
func (s *space) again(ctx context.Context, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := s.start(ctx, nil, self, args...)
	if err != nil {
		return nil, err
	}
	if line, err := c.line(); err != nil || line != ready {
		return nil, fmt.Errorf("%v said %q: %w", args, line, err)
	}
	return c, nil
}

// ready is what a child says first, once it does its work.
const ready = "ready"

func (c *child) line() (string, error) {
	if !c.out.Scan() {
		return "", fmt.Errorf("it ended: %w", io.ErrUnexpectedEOF)
	}
	return c.out.Text(), nil
}

// ask tells a child something, and returns what it answers.
func (c *child) ask(line string) (string, error) {
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		return "", err
	}
	return c.line()
}

func (c *child) pid() int { return c.command.Process.Pid }

// kill ends a child as a crash does.
func (c *child) kill() {
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
}
