// Package cgroup owns the branch of the machine's control groups that a lab
// uses: one group per cluster and below it one for its control plane and one
// per node. It works with the v1 hierarchies and with v2.
//
// Groups tell which processes belong to what, so that a node can be killed as a
// whole and nothing survives the end of a lab.
package cgroup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Root is the group below which all labs of a machine live.
const Root = "/liqo-lab"

// Hierarchies are the mount points that groups must be made in.
type Hierarchies struct {
	// Mounts are the v1 controllers' mount points, or the single v2 one.
	Mounts []string
	// V2 tells which of both it is.
	V2 bool
	// Hybrid is the v2 mount point beside v1 controllers, where runc leaves empty groups.
	Hybrid string
}

// Detect reads the mounted hierarchies.
func Detect() (Hierarchies, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Hierarchies{}, fmt.Errorf("reading the mounts: %w", err)
	}
	h := parse(data)
	if len(h.Mounts) == 0 {
		return h, errors.New("no control groups are mounted: mount cgroup2 on /sys/fs/cgroup, real nodes need it")
	}
	return h, nil
}

// parse picks the v1 controllers if there are any (a hybrid system's v2 mount
// has no controllers), else the v2 mount.
func parse(mountinfo []byte) Hierarchies {
	var v1, v2 []string
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 {
			continue
		}
		switch kind, _, _ := strings.Cut(after, " "); kind {
		case "cgroup":
			v1 = append(v1, fields[4])
		case "cgroup2":
			v2 = append(v2, fields[4])
		}
	}
	if len(v1) > 0 {
		return Hierarchies{Mounts: v1, Hybrid: strings.Join(v2[:min(1, len(v2))], "")}
	}
	return Hierarchies{Mounts: v2[:min(1, len(v2))], V2: true}
}

// Ensure creates the group (a path below Root) in every hierarchy.
func (h Hierarchies) Ensure(group string) error {
	for _, mount := range h.Mounts {
		dir := mount
		for part := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
			parent := dir
			dir = filepath.Join(dir, part)
			if h.V2 {
				enableControllers(parent)
			}
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("creating the control group %s: %w", dir, err)
			}
			if err := inheritCPUSet(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// enableControllers hands what it can of the parent's controllers to its children.
// A controller that the kernel refuses is one that the kubelet will not ask for either.
func enableControllers(parent string) {
	data, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, c := range strings.Fields(string(data)) {
		_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

// inheritCPUSet fills a new v1 cpuset group, which refuses processes while it is empty.
func inheritCPUSet(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || len(bytes.TrimSpace(own)) > 0 {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil || len(bytes.TrimSpace(value)) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return fmt.Errorf("filling %s of %s: %w", file, dir, err)
		}
	}
	return nil
}

// Dirs returns the group's folder in each hierarchy.
func (h Hierarchies) Dirs(group string) []string {
	var dirs []string
	for _, mount := range h.Mounts {
		dirs = append(dirs, filepath.Join(mount, group))
	}
	return dirs
}

// Processes lists the processes in the group and all groups below it.
func (h Hierarchies) Processes(group string) []int {
	found := map[int]bool{}
	for _, dir := range h.Dirs(group) {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "cgroup.procs" {
				return nil //nolint:nilerr // a group that vanishes meanwhile has no processes
			}
			data, _ := os.ReadFile(path)
			for _, field := range strings.Fields(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					found[pid] = true
				}
			}
			return nil
		})
	}
	pids := make([]int, 0, len(found))
	for pid := range found {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// Signal sends a signal to every process of the group.
func (h Hierarchies) Signal(group string, signal syscall.Signal) {
	for _, pid := range h.Processes(group) {
		_ = syscall.Kill(pid, signal)
	}
}

// Kill kills every process of the group and waits until none is left.
func (h Hierarchies) Kill(ctx context.Context, group string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		pids := h.Processes(group)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("killing the processes %v of control group %s: %w", h.Processes(group), group, err)
	}
	return nil
}

// Remove removes the group and those below it, which must have no processes.
// Ancestors up to and including Root are removed when they became empty.
func (h Hierarchies) Remove(ctx context.Context, group string) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		left := false
		mounts := h.Mounts
		if h.Hybrid != "" {
			mounts = append(slices.Clone(mounts), h.Hybrid)
		}
		for _, mount := range mounts {
			dir := filepath.Join(mount, group)
			removeTree(dir)
			if _, err := os.Stat(dir); err == nil {
				left = true
				continue
			}
			for parent := filepath.Dir(group); parent != "/" && parent != "."; parent = filepath.Dir(parent) {
				_ = os.Remove(filepath.Join(mount, parent)) // fails while another lab lives there
			}
		}
		return !left, nil
	})
}

// removeTree removes the folders of a group deepest first; a group's files go with it.
func removeTree(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			removeTree(filepath.Join(dir, e.Name()))
		}
	}
	_ = syscall.Rmdir(dir)
}

// Memory returns the bytes of memory charged to the group, without page cache that can be dropped.
func (h Hierarchies) Memory(group string) (int64, bool) {
	for _, dir := range h.Dirs(group) {
		if h.V2 {
			return statValue(filepath.Join(dir, "memory.stat"), "anon")
		}
		if v, ok := statValue(filepath.Join(dir, "memory.stat"), "total_rss"); ok {
			return v, true
		}
	}
	return 0, false
}

func statValue(path, key string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, value, ok := strings.Cut(line, " "); ok && name == key {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
