package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
	"liqo.io/liqo/test/lab/step"
)

// grace is how long a program may take to end before it is killed.
const grace = 3 * time.Second

// Down ends the lab and removes everything of it: processes, containers, mounts,
// network, control groups and files. It succeeds when nothing is left.
func (l *Lab) Down(ctx context.Context, o step.Observer) error {
	unlock, err := state.Lock(ctx, l.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := step.Run(o, "ending processes", func() error { return l.endProcesses(ctx) }); err != nil {
		return err
	}
	return step.Run(o, "removing network, mounts and files", func() error { return l.removeTraces(ctx) })
}

// endProcesses ends agents first, then pods, then what they depend on.
func (l *Lab) endProcesses(ctx context.Context) error {
	all := l.processes.Components()
	last := func(names ...string) []string {
		var list []string
		for _, c := range all {
			if slices.Contains(names, filepath.Base(c)) {
				list = append(list, c)
			}
		}
		return list
	}
	stages := [][]string{
		last(binary.Kubelet, binary.Proxy, binary.Flannel, binary.Kwok, binary.Provisioner, binary.ControllerManager, binary.Scheduler),
		last(programContainerd), last(binary.APIServer), last(binary.Etcd), all,
	}
	for i, stage := range stages {
		if len(stage) == 0 {
			continue
		}
		if err := l.processes.Stop(ctx, grace, stage...); err != nil {
			return err
		}
		if i > 0 || l.state.Plan == nil {
			continue
		}
		for _, c := range l.state.Lab.Clusters {
			if err := l.cgroups.Kill(ctx, filepath.Join(l.clusterGroup(c.Name), "nodes")); err != nil {
				return err
			}
		}
	}
	if l.state.Plan == nil {
		return nil
	}
	return l.cgroups.Kill(ctx, l.labGroup())
}

func (l *Lab) removeTraces(ctx context.Context) error {
	if l.state.Plan != nil {
		for _, c := range l.state.Lab.Clusters {
			for _, n := range c.NodesOf(spec.Real) {
				if err := l.clearRuntime(c.Name, n.Name); err != nil {
					return err
				}
			}
		}
		if err := errors.Join(unmountBelow(l.dir), l.state.Plan.Remove(ctx), l.cgroups.Remove(ctx, l.labGroup())); err != nil {
			return err
		}
		if err := l.removeOutside(ctx); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("removing the lab's folder: %w", err)
	}
	_ = os.Remove(filepath.Dir(l.dir)) // fails while other labs are there
	return nil
}

// removeOutside removes what node software wrote beyond the lab's folder.
func (l *Lab) removeOutside(ctx context.Context) error {
	links, _ := filepath.Glob("/var/log/containers/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, l.dir+"/") {
			_ = os.Remove(link)
		}
	}
	for _, e := range l.state.Plan.Endpoints {
		if e.Node == "" {
			continue
		}
		results, _ := filepath.Glob("/var/lib/cni/results/" + e.Namespace + "-*-eth0")
		for _, path := range results {
			sandbox := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), e.Namespace+"-"), "-eth0")
			_ = os.Remove(filepath.Join(filepath.Dir(path), "cni-loopback-"+sandbox+"-lo"))
			_ = os.Remove(path)
		}
	}
	// Only folders that a lab brought into being, and only what is known to be in them.
	known := map[string][]string{
		"/var/lib/kubelet": {"device-plugins/kubelet.sock", "device-plugins/kubelet_internal_checkpoint", "device-plugins"},
		"/var/lib/cni":     {"results"},
		"/run/containerd":  {"s", "fifo"},
	}
	root := filepath.Dir(l.dir)
	unlock, err := state.Lock(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	if others, err := l.otherRealLabs(); err != nil || others {
		return err // their nodes use the same folders; the last lab removes them
	}
	created, err := state.LoadCreated(root)
	if err != nil {
		return err
	}
	for _, dir := range created {
		for _, name := range known[dir] {
			_ = os.Remove(filepath.Join(dir, name))
		}
		_ = os.Remove(dir)
	}
	return state.SaveCreated(root, nil)
}

// otherRealLabs says whether another lab of this machine has real nodes.
func (l *Lab) otherRealLabs() (bool, error) {
	names, err := state.Names()
	if err != nil {
		return false, err
	}
	for _, name := range names {
		dir := filepath.Join(filepath.Dir(l.dir), name)
		if s, found, err := state.Load(dir); dir != l.dir && err == nil && found && s.Plan != nil {
			return true, nil
		}
	}
	return false, nil
}

// unmountBelow unmounts everything mounted on or below a folder, newest first.
func unmountBelow(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mounts: %w", err)
	}
	points := mountsBelow(string(data), dir)
	var errs []error
	for _, point := range slices.Backward(points) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow lists the mount points on or below a folder in order of mounting.
func mountsBelow(mountinfo, dir string) []string {
	var points []string
	for line := range strings.SplitSeq(mountinfo, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	return points
}
