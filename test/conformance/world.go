package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"liqo.io/liqo/deployments/images/assembly"
	"liqo.io/liqo/test/conformance/upstream"
	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/step"
)

const (
	consumer = "rome"
	provider = "milan"
	// root is the checkout: the program is run there.
	root = "."
	// patience is how long Liqo may take to be installed and peered on a busy machine.
	patience = "8m"
)

// world is the lab with Liqo in it.
type world struct {
	lab      *cluster.Lab
	programs binary.Set
	folder   string // for what is compiled
	tag      string // of Liqo's images
	liqoctl  string
	images   []string // archives of Liqo's images
}

func declaration() spec.Lab {
	return spec.Lab{Name: "conformance", Flat: true, FlatServices: true, Clusters: []spec.Cluster{
		{
			Name: consumer, PodCIDR: netip.MustParsePrefix("10.140.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.141.0.0/16"),
			Nodes: []spec.Node{{Kind: spec.Real, Count: 1}},
		},
		{
			Name: provider, PodCIDR: netip.MustParsePrefix("10.150.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.151.0.0/16"),
			Nodes: []spec.Node{{Kind: spec.Real, Count: 2}},
		},
	}}
}

// start starts the lab, installs what is compiled from this checkout, and peers. In a lab that was kept Liqo is upgraded.
func (w *world) start(ctx context.Context, o step.Observer) error {
	w.tag = fmt.Sprintf("conformance-%d", time.Now().Unix())
	building := make(chan error, 1)
	go func() {
		building <- step.Run(o, "compile liqoctl and the images", func() error { return w.build(ctx) })
	}()
	var err error
	if w.lab, err = cluster.Up(ctx, declaration(), o); err != nil {
		err = fmt.Errorf("starting the clusters: %w", err)
	}
	if err = errors.Join(err, <-building); err != nil {
		return err
	}
	cache, err := binary.CacheDir()
	if err != nil {
		return err
	}
	if w.programs, err = binary.Ensure(ctx, upstream.Programs, o); err != nil {
		return err
	}
	archives, err := upstream.Archives(ctx, w.programs, filepath.Join(cache, "images"), o)
	if err != nil {
		return err
	}
	if err := step.Run(o, "load the images into the nodes", func() error {
		return errors.Join(w.lab.Load(ctx, w.images), w.lab.Load(ctx, archives, provider))
	}); err != nil {
		return err
	}
	return step.Run(o, "install Liqo and peer", func() error { return w.peer(ctx) })
}

// build compiles liqoctl and makes Liqo's images.
func (w *world) build(ctx context.Context) error {
	w.liqoctl = filepath.Join(w.folder, "liqoctl")
	compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X liqo.io/liqo/pkg/version.Version="+w.tag, "-o", w.liqoctl, "./cmd/liqoctl")
	compile.Dir, compile.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling liqoctl: %w: %s", err, strings.TrimSpace(string(out)))
	}
	binaries, err := assembly.Select("liqo-controller-manager", "virtual-kubelet")
	if err != nil {
		return err
	}
	artifacts, err := assembly.Assemble(ctx, assembly.Options{
		Root: root, Out: filepath.Join(w.folder, "images"), Format: assembly.DockerArchive, Tag: w.tag,
		Architectures: []string{runtime.GOARCH}, RepositoryPrefix: assembly.DefaultRepositoryPrefix,
	}, binaries...)
	for _, artifact := range artifacts {
		w.images = append(w.images, artifact.Path)
	}
	return err
}

// peer installs Liqo in both clusters and lets the consumer use the provider. Pods of the tests ask for more than there is, as a whole,
// and there are more namespaces at a time than a consumer may have by default, while those of ended tests go.
func (w *world) peer(ctx context.Context) error {
	for _, c := range w.lab.Spec().Clusters {
		config, err := w.lab.Config(c.Name)
		if err != nil {
			return err
		}
		api, err := url.Parse(config.Host)
		if err != nil {
			return fmt.Errorf("reading the address of the API server of %s: %w", c.Name, err)
		}
		if err := cordon(ctx, config, c.Name+"-1", false); err != nil {
			return err
		}
		if err := w.run(ctx, "install", "--kubeconfig", w.lab.Kubeconfig(c.Name), "--cluster-id", c.Name, "--timeout", patience,
			"--pod-cidr", c.PodCIDR.String(), "--service-cidr", c.ServiceCIDR.String(), "--set", "tag="+w.tag,
			"--set", "networking.enabled=false", // the networks of this lab are routed to each other
			"--set", "offloading.twinNamespaces.maxPerTenant=1000",
			"--set", "offloading.consumers.limits.resources.cpu=64,offloading.consumers.limits.resources.memory=128Gi",
			"--set", "offloading.consumers.limits.resources.pods=1000,offloading.consumers.limits.resources.ephemeral-storage=1Ti",
			"--set", fmt.Sprintf("virtualKubelet.extra.args={--home-api-server-host=%s,--home-api-server-port=%s}", api.Hostname(), api.Port())); err != nil {
			return err
		}
	}
	return w.run(ctx, "peer", "--kubeconfig", w.lab.Kubeconfig(consumer), "--remote-kubeconfig", w.lab.Kubeconfig(provider), "--timeout", patience,
		"--cpu", "64", "--memory", "128Gi", "--pods", "1000", "--resource", "ephemeral-storage=1Ti")
}

// run runs liqoctl.
func (w *world) run(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, w.liqoctl, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("liqoctl %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// stop takes the lab down, unless it is to be kept.
func (w *world) stop(ctx context.Context, out io.Writer, o step.Observer) error {
	err := os.RemoveAll(w.folder)
	if w.lab == nil {
		return err
	}
	if os.Getenv("LIQO_CONFORMANCE_KEEP") != "" {
		fmt.Fprintf(out, "The lab stays up (LIQO_CONFORMANCE_KEEP); 'go run ./test/lab down --name conformance' removes it.\n")
		return err
	}
	return errors.Join(err, w.lab.Down(ctx, o))
}

// cordon decides whether pods may not be bound to a node.
func cordon(ctx context.Context, config *rest.Config, node string, cordoned bool) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for node %s: %w", node, err)
	}
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned)
	if _, err := kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patching node %s: %w", node, err)
	}
	return nil
}
