// Package peering measures how long liqoctl takes to peer two real clusters of this machine, networks included.
package peering

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"liqo.io/liqo/deployments/images/assembly"
	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/step"
)

const (
	labName  = "bench-peering"
	consumer = "rome"
	provider = "milan"
	tag      = "bench"
)

// Took is how long commands took, in seconds: until packets pass and the virtual node is ready, and until all is gone.
type Took struct {
	Peer   float64 `json:"peer"`
	Unpeer float64 `json:"unpeer"`
}

// clusters are two real ones with the same ranges.
type clusters struct {
	lab     *cluster.Lab
	folder  string
	liqoctl string
}

// Measure peers two real clusters a number of times, and ends that. What it builds goes to a folder.
func Measure(ctx context.Context, folder string, times int, out io.Writer) (all []Took, err error) {
	steps := step.NewLines(out, clock.RealClock{})
	one := func(name string) spec.Cluster {
		return spec.Cluster{
			Name: name, PodCIDR: netip.MustParsePrefix("10.10.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.11.0.0/16"), Nodes: []spec.Node{{Kind: spec.Real}},
		}
	}
	p := &clusters{folder: folder, liqoctl: filepath.Join(folder, "liqoctl")}
	if p.lab, err = cluster.Up(ctx, spec.Lab{Name: labName, Routed: true, Clusters: []spec.Cluster{one(consumer), one(provider)}}, steps); err != nil {
		return nil, fmt.Errorf("starting the clusters: %w", err)
	}
	defer func() { err = errors.Join(err, p.lab.Down(context.WithoutCancel(ctx), steps)) }()
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{{"make liqoctl and the images", p.build}, {"install Liqo", p.install}} {
		if err := step.Run(steps, s.name, func() error { return s.do(ctx) }); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	// The first peering fills caches, of names and of what quotas count.
	for round := range times + 1 {
		took, err := p.once(ctx)
		if err != nil {
			return all, err
		}
		fmt.Fprintf(out, "peering %d: %+v\n", round, took)
		if round > 0 {
			all = append(all, took)
		}
	}
	return all, nil
}

func (p *clusters) build(ctx context.Context) error {
	compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", p.liqoctl, "liqo.io/liqo/cmd/liqoctl")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling liqoctl: %w: %s", err, out)
	}
	binaries, err := assembly.Select("liqo-controller-manager", "virtual-kubelet", "liqo-gateway", "liqo-fabric")
	if err != nil {
		return err
	}
	artifacts, err := assembly.Assemble(ctx, assembly.Options{
		Root: ".", Out: filepath.Join(p.folder, "images"), Format: assembly.DockerArchive, Tag: tag,
		Architectures: []string{runtime.GOARCH}, RepositoryPrefix: assembly.DefaultRepositoryPrefix,
	}, binaries...)
	if err != nil {
		return err
	}
	var archives []string
	for _, artifact := range artifacts {
		archives = append(archives, artifact.Path)
	}
	return p.lab.Load(ctx, archives)
}

func (p *clusters) install(ctx context.Context) error {
	for _, c := range p.lab.Spec().Clusters {
		if err := p.run(ctx, "install", "--kubeconfig", p.lab.Kubeconfig(c.Name), "--cluster-id", c.Name,
			"--pod-cidr", c.PodCIDR.String(), "--service-cidr", c.ServiceCIDR.String(), "--set", "tag="+tag); err != nil {
			return err
		}
	}
	return nil
}

// once peers the clusters, and ends that.
func (p *clusters) once(ctx context.Context) (took Took, err error) {
	both := []string{"--kubeconfig", p.lab.Kubeconfig(consumer), "--remote-kubeconfig", p.lab.Kubeconfig(provider)}
	for _, command := range []struct {
		args []string
		took *float64
	}{
		{[]string{"peer", "--gw-server-service-type", "NodePort"}, &took.Peer},
		{[]string{"unpeer", "--delete-namespaces", "--skip-confirm"}, &took.Unpeer},
	} {
		begin := time.Now()
		if err := p.run(ctx, append(command.args, both...)...); err != nil {
			return took, err
		}
		*command.took = time.Since(begin).Seconds()
	}
	return took, nil
}

// run runs liqoctl.
func (p *clusters) run(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, p.liqoctl, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("liqoctl %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
