package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"k8s.io/utils/clock"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/host"
	"liqo.io/liqo/test/lab/network"
	"liqo.io/liqo/test/lab/pki"
	"liqo.io/liqo/test/lab/process"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
	"liqo.io/liqo/test/lab/step"
)

// errSimulated is returned for faults that need real nodes.
var errSimulated = errors.New("a lab that is simulated only has no network and no real nodes to break: declare a real node")

// Signal sends a signal to a component, for instance SIGSTOP and SIGCONT to rome/kube-apiserver.
func (l *Lab) Signal(component string, signal syscall.Signal) error {
	return l.processes.Signal(component, signal)
}

// Kill ends a component at once, as kill -9 does. It stays down until Restart or Up.
func (l *Lab) Kill(component string) error {
	return l.processes.Signal(component, syscall.SIGKILL)
}

// Restart starts a component again as it was started last, ending it first when it runs.
func (l *Lab) Restart(ctx context.Context, component string) error {
	return l.processes.Restart(ctx, component)
}

// RestartWith starts a component again with some flags, named without their leading dashes, changed or added. It stays so
// until the lab is started again.
func (l *Lab) RestartWith(ctx context.Context, component string, flags map[string]string) error {
	return l.processes.RestartWith(ctx, component, flags)
}

// PID returns the process id of a running component, 0 for others.
func (l *Lab) PID(component string) int { return l.processes.PID(component) }

// Components lists the names of all components.
func (l *Lab) Components() []string { return l.processes.Components() }

// CutLink drops everything between two clusters; both stay reachable from the host.
func (l *Lab) CutLink(ctx context.Context, a, b string) error {
	return l.BreakLink(ctx, network.Fault{A: a, B: b, Cut: true})
}

// RestoreLink undoes CutLink and BreakLink.
func (l *Lab) RestoreLink(ctx context.Context, a, b string) error {
	return l.BreakLink(ctx, network.Fault{A: a, B: b})
}

// BreakLink makes a fault all that is wrong with the link between its clusters.
func (l *Lab) BreakLink(ctx context.Context, fault network.Fault) error {
	a, b := fault.A, fault.B
	for _, name := range []string{a, b} {
		if _, err := l.cluster(name); err != nil {
			return err
		}
	}
	if a == b {
		return fmt.Errorf("a link has two ends and both are %q: name two clusters", a)
	}
	return l.update(ctx, func(s *state.State) error {
		s.Faults = slices.DeleteFunc(s.Faults, func(f network.Fault) bool { return f.A == a && f.B == b || f.A == b && f.B == a })
		if !fault.None() {
			s.Faults = append(s.Faults, fault)
		}
		if err := s.Plan.SetFaults(ctx, s.Faults); err != nil {
			return err
		}
		return l.delay(ctx, s.Plan, fault)
	})
}

// delay runs the program that makes a link slow, or ends it.
func (l *Lab) delay(ctx context.Context, plan *network.Plan, fault network.Fault) error {
	relay, needed := plan.Relay(fault)
	if !needed {
		return l.processes.Stop(ctx, 0, relay.Device)
	}
	programs, err := binary.Ensure(ctx, []string{binary.Relay}, step.Silent{})
	if err != nil {
		return err
	}
	return l.processes.Start(ctx, process.Spec{
		Component: relay.Device, Namespace: plan.Switch(), Log: l.log(relay.Device),
		Args: []string{programs[binary.Relay], "--device", relay.Device, "--delay", relay.Delay.String()},
	})
}

// KillNode takes the power from a real node: its daemons, its containers and its
// cable end at once, its disk stays. It is down until StartNode.
func (l *Lab) KillNode(ctx context.Context, cluster, node string) error {
	if err := l.checkNode(cluster, node); err != nil {
		return err
	}
	return l.update(ctx, func(s *state.State) error {
		if err := s.Plan.SetUp(ctx, s.Plan.Node(cluster, node), false); err != nil {
			return err
		}
		if !slices.Contains(s.Down, cluster+"/"+node) {
			s.Down = append(s.Down, cluster+"/"+node)
		}
		if err := l.cgroups.Kill(ctx, l.nodeGroup(cluster, node)); err != nil {
			return err
		}
		return l.clearRuntime(cluster, node)
	})
}

// StartNode boots a node that KillNode took down. It returns when its kubelet
// was started; the Node becomes Ready some seconds later.
func (l *Lab) StartNode(ctx context.Context, cluster, node string) error {
	if err := l.checkNode(cluster, node); err != nil {
		return err
	}
	err := l.update(ctx, func(s *state.State) error {
		s.Down = slices.DeleteFunc(s.Down, func(name string) bool { return name == cluster+"/"+node })
		return s.Plan.SetUp(ctx, s.Plan.Node(cluster, node), true)
	})
	if err != nil {
		return err
	}
	return l.boot(ctx, cluster, node)
}

func (l *Lab) boot(ctx context.Context, cluster, node string) error {
	c, err := l.cluster(cluster)
	if err != nil {
		return err
	}
	b := &builder{Lab: l, observer: step.Silent{}, plugins: host.This().PluginDir()}
	if b.programs, err = binary.Ensure(ctx, wanted(l.state.Lab), b.observer); err != nil {
		return err
	}
	cache, err := binary.CacheDir()
	if err != nil {
		return err
	}
	if err := b.makeImages(ctx, filepath.Join(cache, "images")); err != nil {
		return err
	}
	keys, err := pki.New(filepath.Join(l.clusterDir(cluster), "pki"), clock.RealClock{})
	if err != nil {
		return err
	}
	cp, err := b.controlPlane(c, keys)
	if err != nil {
		return err
	}
	for _, n := range b.realNodes(c, keys) {
		if n.Name != node {
			continue
		}
		if err := b.runtimeUp(ctx, n); err != nil {
			return err
		}
		if err := b.registerNodes(ctx, c); err != nil {
			return err
		}
		return b.agentsUp(ctx, n, keys, cp.URL())
	}
	return nil
}

// PauseNode stops every process of a real node without ending it, as a hung machine.
func (l *Lab) PauseNode(cluster, node string) error {
	if err := l.checkNode(cluster, node); err != nil {
		return err
	}
	l.cgroups.Signal(l.nodeGroup(cluster, node), syscall.SIGSTOP)
	return nil
}

// ResumeNode undoes PauseNode.
func (l *Lab) ResumeNode(cluster, node string) error {
	if err := l.checkNode(cluster, node); err != nil {
		return err
	}
	l.cgroups.Signal(l.nodeGroup(cluster, node), syscall.SIGCONT)
	return nil
}

func (l *Lab) checkNode(cluster, node string) error {
	c, err := l.cluster(cluster)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(c.NodesOf(spec.Real), func(n spec.Node) bool { return n.Name == node }) {
		return fmt.Errorf("%w real node %q in cluster %s", ErrUnknown, node, cluster)
	}
	return nil
}

func (l *Lab) nodeDown(cluster, node string) bool {
	return slices.Contains(l.state.Down, cluster+"/"+node)
}

// update changes the lab's state under its lock, as read from disk: several
// processes may hold the same lab open.
func (l *Lab) update(ctx context.Context, change func(*state.State) error) error {
	if l.state.Plan == nil {
		return errSimulated
	}
	unlock, err := state.Lock(ctx, l.dir)
	if err != nil {
		return err
	}
	defer unlock()
	s, found, err := state.Load(l.dir)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w lab %q: it was taken down", ErrUnknown, l.state.Lab.Name)
	}
	if err := change(&s); err != nil {
		return err
	}
	l.state = s
	return s.Save(l.dir)
}
