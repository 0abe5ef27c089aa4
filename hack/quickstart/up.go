package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"liqo.io/liqo/deployments/images/assembly"
	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/step"
)

const (
	consumer  = "rome"
	provider  = "milan"
	namespace = "liqo-demo"
	tag       = "quickstart"
	manager   = "liqo-controller-manager"
	kubelet   = "virtual-kubelet"
	mover     = "liqo-volume"
	gateway   = "liqo-gateway"
	fabric    = "liqo-fabric"
	// patience is how long the demo's pods may take: their images are on the nodes, so it is the clusters' own time.
	patience = 3 * time.Minute
)

//go:embed demo.yaml
var demo string

// tour is what the steps share.
type tour struct {
	lab     *cluster.Lab
	liqoctl string
	// archives and digests are the images', the latter by name.
	archives []string
	digests  map[string]string
	// kubectlPath is the lab's own kubectl.
	kubectlPath string
	steps       step.Observer
}

func up(ctx context.Context) error {
	begin := time.Now()
	t := &tour{steps: step.NewLines(os.Stdout, clock.RealClock{})}
	fmt.Println("Two Kubernetes clusters, rome and milan, on this machine; rome borrows resources from milan.\n" +
		"Both have the same ranges of addresses, and neither's pods are routed to the other: Liqo connects them.")
	// Compiling and starting clusters each leave processors idle that the other one uses.
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return step.Run(t.steps, "compile liqoctl and the images", func() error { return t.compile(groupCtx) })
	})
	var err error
	// The clusters start to their end even if nothing can be built for them: half a lab could not be taken down.
	t.lab, err = cluster.Up(ctx, clusters(), t.steps)
	if err = errors.Join(err, group.Wait()); err != nil {
		return fmt.Errorf("starting the clusters: %w", err)
	}
	programs, err := binary.Ensure(ctx, []string{binary.Kubectl}, t.steps)
	if err != nil {
		return fmt.Errorf("finding kubectl: %w", err)
	}
	t.kubectlPath = programs[binary.Kubectl]
	for _, s := range []struct {
		name string
		work func(context.Context) error
	}{
		{"load the images into the nodes", t.load},
		{"install Liqo on rome", t.install(consumer)},
		{"install Liqo on milan", t.install(provider)},
		{"peer rome with milan", t.peer},
		{"offload namespace " + namespace, t.offload},
		{"run the demo application", t.demo},
	} {
		if err := step.Run(t.steps, s.name, func() error { return s.work(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return t.screen(ctx, time.Since(begin))
}

// clusters are two whose pods and Services have the same addresses.
func clusters() spec.Lab {
	one := func(name string) spec.Cluster {
		return spec.Cluster{
			Name: name, PodCIDR: netip.MustParsePrefix("10.10.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.11.0.0/16"), Nodes: []spec.Node{{Kind: spec.Real}},
		}
	}
	return spec.Lab{Name: spec.Demo(1).Name, Routed: true, Clusters: []spec.Cluster{one(consumer), one(provider)}}
}

func down(ctx context.Context) error {
	lab, err := cluster.Open(clusters().Name)
	if errors.Is(err, cluster.ErrUnknown) {
		fmt.Println("Nothing runs.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the clusters: %w", err)
	}
	return lab.Down(ctx, step.NewLines(os.Stdout, clock.RealClock{}))
}

// compile makes liqoctl and the images.
func (t *tour) compile(ctx context.Context) error {
	binaries, err := assembly.Select(manager, kubelet, mover, gateway, fabric)
	if err != nil {
		return err
	}
	artifacts, err := assembly.Assemble(ctx, assembly.Options{
		Root: ".", Out: filepath.Join("bin", "images"), Format: assembly.DockerArchive, Tag: tag,
		Architectures: []string{runtime.GOARCH}, RepositoryPrefix: assembly.DefaultRepositoryPrefix,
	}, binaries...)
	if err != nil {
		return err
	}
	t.digests = map[string]string{}
	for _, artifact := range artifacts {
		t.archives = append(t.archives, artifact.Path)
		t.digests[artifact.Name] = artifact.Digest
	}
	t.liqoctl = filepath.Join("bin", "liqoctl")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w",
		"-o", t.liqoctl, "./cmd/liqoctl")
	// As the images are compiled, so that what they have in common is compiled once.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOGC=300")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling liqoctl: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (t *tour) load(ctx context.Context) error {
	if err := t.lab.Load(ctx, t.archives); err != nil {
		return fmt.Errorf("loading the images into the nodes: %w", err)
	}
	return nil
}

func (t *tour) install(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, c := range t.lab.Spec().Clusters {
			if c.Name == name {
				return t.execute(ctx, t.liqoctl, "install", "--kubeconfig", t.lab.Kubeconfig(name), "--cluster-id", name,
					"--pod-cidr", c.PodCIDR.String(), "--service-cidr", c.ServiceCIDR.String(), "--set", "tag="+tag,
					// The tag is always the same: the annotations have pods with an image of older code replaced.
					"--set", "controllerManager.pod.annotations.quickstart-image="+t.digests[manager],
					"--set", "virtualKubelet.extra.annotations.quickstart-image="+t.digests[kubelet],
					"--set", "networking.fabric.pod.annotations.quickstart-image="+t.digests[fabric])
			}
		}
		return fmt.Errorf("the lab has no cluster %s", name)
	}
}

func (t *tour) peer(ctx context.Context) error {
	// There is no load balancer in these clusters.
	return t.execute(ctx, t.liqoctl, "peer", "--kubeconfig", t.lab.Kubeconfig(consumer), "--remote-kubeconfig", t.lab.Kubeconfig(provider),
		"--gw-server-service-type", "NodePort")
}

func (t *tour) offload(ctx context.Context) error {
	if err := t.apply(ctx, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n"); err != nil {
		return err
	}
	return t.execute(ctx, t.liqoctl, "offload", "namespace", namespace, "--kubeconfig", t.lab.Kubeconfig(consumer))
}

// demo applies the application and waits until all its pods are ready, in both clusters.
func (t *tour) demo(ctx context.Context) error {
	if err := t.apply(ctx, demo); err != nil {
		return err
	}
	var last string
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		out, err := t.kubectl(ctx, consumer, "get", "deployment", "-n", namespace, "web", "-o", "jsonpath={.status.readyReplicas}/{.spec.replicas}")
		if last = strings.TrimSpace(out); err != nil || last != "4/4" {
			if err != nil {
				last = err.Error()
			}
			return false, nil
		}
		done, err := t.spread(ctx)
		if !done {
			last += ", all in one cluster"
		}
		return done, err
	})
	if err != nil {
		return fmt.Errorf("waiting %s for the 4 pods of Deployment %s/web to be ready (last seen: %s): see 'kubectl describe pods -n %s'",
			patience, namespace, last, namespace)
	}
	return nil
}

// spread tells whether both clusters have pods of the application. Those of an earlier tour that came home, as with the end of a peering, stay
// where they are: half of them are made anew.
func (t *tour) spread(ctx context.Context) (bool, error) {
	out, err := t.kubectl(ctx, consumer, "get", "pods", "-n", namespace, "-l", "app=web", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.metadata.deletionTimestamp}{"\n"}{end}`)
	if err != nil {
		return false, nil //nolint:nilerr // It is asked again.
	}
	surplus := tooMany(out)
	if len(surplus) == 0 {
		return true, nil
	}
	_, err = t.kubectl(ctx, consumer, append([]string{"delete", "pods", "-n", namespace, "--wait=true"}, surplus...)...)
	return false, err
}

// tooMany are half of the pods, each a line with its name, its node, and when it was deleted, if all are on one node.
func tooMany(pods string) []string {
	var names []string
	nodes := map[string]bool{}
	for line := range strings.Lines(pods) {
		if words := strings.Fields(line); len(words) == 2 {
			names, nodes[words[1]] = append(names, words[0]), true
		}
	}
	if len(nodes) != 1 {
		return nil
	}
	return names[:len(names)/2]
}

func (t *tour) apply(ctx context.Context, manifests string) error {
	command := exec.CommandContext(ctx, t.kubectlPath, "--kubeconfig", t.lab.Kubeconfig(consumer), "apply", "-f", "-")
	command.Stdin = strings.NewReader(manifests)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("applying manifests to %s: %w: %s", consumer, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (t *tour) kubectl(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, t.kubectlPath, append([]string{"--kubeconfig", t.lab.Kubeconfig(name)}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// execute runs a command whose own progress the user sees, indented.
func (t *tour) execute(ctx context.Context, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	out := &indented{out: os.Stdout}
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), args[0], err)
	}
	return nil
}
