package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/deployments/images/assembly"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/step"
)

const (
	consumer = "rome"
	provider = "milan"
	// secondProvider is only used where one provider is not enough.
	secondProvider = "naples"
	// virtualNode is the Node of the consumer that stands for the provider.
	virtualNode = provider
	// The class of Ingresses that rome serves, and that of milan's, which it offers to rome.
	homeClass, offeredClass = "lab", "public"
	// root is the checkout, seen from this package.
	root = "../.."
)

// suite is what the tests share: the lab, the programs, and what is in place.
type suite struct {
	world            world
	lab              *cluster.Lab // breaks lends it
	users            users
	folder           string // of the programs and images of this run
	liqoctlPath      string
	kubectlPath      string
	tag              string   // of the images of this run
	images           []string // archives of Liqo's images
	programs         []string // archives of the images of programs that the tests run in pods
	rome, milan      *side
	naples           *side                // a second provider, which only some tests peer
	before           map[string]inventory // by cluster: what there was before Liqo
	peering          sync.Mutex           // held while clusters are installed and peered for whoever asks
	installed, peers bool
	profile          string // that the clusters have or get
	notes            notes
}

// notes are what tests leave for later.
type notes struct {
	sync.Mutex
	leaving  []absence       // what tests deleted, until it was seen to be gone
	recorded map[string]bool // by test: whether the state of the clusters was written down
}

// world is where the tests run.
type world int

const (
	// routed is where addresses of nodes are routed only: Liqo connects the networks of clusters, two of which have equal ranges.
	routed world = iota
	// flat is where the networks of pods are routed to each other, and Liqo's network module is off.
	flat
)

// connects is whether Liqo connects the clusters' networks.
func (w world) connects() bool { return w != flat }

// labName is a name by which runs side by side tell their labs apart: LIQO_E2E_LAB, else the name of the world.
func labName(world string) string {
	return cmp.Or(os.Getenv("LIQO_E2E_LAB"), world)
}

func (s *suite) declaration() spec.Lab {
	cluster := func(name string, second byte, nodes int, class string) spec.Cluster {
		return spec.Cluster{
			Name: name, PodCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second}), 16), ServiceCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second + 1}), 16),
			Nodes: []spec.Node{{Kind: spec.Real, Count: nodes}}, IngressClass: class,
		}
	}
	rome, naples := cluster(consumer, 110, 2, homeClass), cluster(secondProvider, 130, 1, "")
	naples.WithoutNodeCIDRs = true
	if s.world == flat {
		return spec.Lab{Name: labName("e2e-flat"), Flat: true, Clusters: []spec.Cluster{rome, cluster(provider, 120, 2, offeredClass), naples}}
	}
	milan := cluster(provider, 110, 2, offeredClass)
	milan.CNI, milan.ProxyMode = spec.Flannel, spec.IPTables
	return spec.Lab{Name: labName("e2e"), Routed: true, Clusters: []spec.Cluster{rome, milan, naples}}
}

// reserved is a taint of the second node of rome: only pods that are bound to it run there, and the others find one node at home.
const reserved = "lab.liqo.io/reserved"

// reserve keeps pods off the second node of rome that are not bound to it.
func (s *suite) reserve(ctx context.Context) error {
	node := nodeOf(s.rome.ownNodes()[1])
	if err := s.rome.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return fmt.Errorf("reading node %s: %w", node.Name, err)
	}
	isReserved := func(t corev1.Taint) bool { return t.Key == reserved }
	if slices.ContainsFunc(node.Spec.Taints, isReserved) {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: reserved, Effect: corev1.TaintEffectNoSchedule})
	if err := s.rome.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("reserving node %s: %w", node.Name, err)
	}
	return nil
}

// start starts the lab and makes everything that the tests need. The suite is returned with an error too, to be stopped.
func start(ctx context.Context, world world, steps step.Observer) (*suite, error) {
	folder, err := os.MkdirTemp("", "liqo-e2e-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for programs and images: %w", err)
	}
	s := &suite{world: world, profile: compatible, folder: folder, tag: fmt.Sprintf("e2e-%d", time.Now().Unix())}
	s.users.tests, s.notes.recorded = map[string]*user{}, map[string]bool{}
	building, stopBuilding := context.WithCancel(ctx)
	defer stopBuilding()
	built := make(chan error, 1)
	go func() {
		built <- step.Run(steps, "compile liqoctl and the images", func() error { return s.build(building) })
	}()
	if err = s.up(ctx, steps); err != nil {
		stopBuilding()
	}
	if err = errors.Join(err, <-built); err != nil {
		return s, err
	}
	return s, step.Run(steps, "load the images into the nodes", func() error { return s.lab.Load(ctx, append(s.images, s.programs...)) })
}

// up starts the clusters and looks at what they have.
func (s *suite) up(ctx context.Context, steps step.Observer) (err error) {
	declared := s.declaration()
	_, before := cluster.Open(declared.Name)
	if s.lab, err = cluster.Up(ctx, declared, steps); err != nil {
		// What of the lab was started is taken down, but none that was there.
		if half, unknown := cluster.Open(declared.Name); unknown == nil && errors.Is(before, cluster.ErrUnknown) {
			s.lab = half
			s.keepLogs(filepath.Join(logs(), "liqo-e2e-start"))
		}
		return fmt.Errorf("starting the clusters: %w", err)
	}
	programs, err := binary.Ensure(ctx, []string{binary.Kubectl}, steps)
	if err != nil {
		return fmt.Errorf("getting kubectl: %w", err)
	}
	s.kubectlPath = programs[binary.Kubectl]
	for _, c := range []struct {
		side **side
		name string
	}{{&s.rome, consumer}, {&s.milan, provider}, {&s.naples, secondProvider}} {
		if *c.side, err = newSide(s.lab, c.name); err != nil {
			return err
		}
	}
	if err := s.reserve(ctx); err != nil {
		return err
	}
	if s.before, err = s.snapshot(ctx); err != nil {
		return fmt.Errorf("listing what there is before Liqo: %w", err)
	}
	return nil
}

// build compiles liqoctl and makes the images, which no cluster is needed for.
func (s *suite) build(ctx context.Context) (err error) {
	if s.liqoctlPath, err = s.compile(ctx, "./cmd/liqoctl"); err != nil {
		return err
	}
	binaries, err := assembly.Select("liqo-controller-manager", "virtual-kubelet", "liqo-volume", "liqo-gateway", "liqo-fabric")
	if err != nil {
		return err
	}
	artifacts, err := assembly.Assemble(ctx, assembly.Options{
		Root: root, Out: filepath.Join(s.folder, "images"), Format: assembly.DockerArchive, Tag: s.tag,
		Architectures: []string{runtime.GOARCH}, RepositoryPrefix: assembly.DefaultRepositoryPrefix,
	}, binaries...)
	if err != nil {
		return err
	}
	for _, artifact := range artifacts {
		s.images = append(s.images, artifact.Path)
	}
	for name, reference := range map[string]string{listerName: listerImage, proberName: proberImage} {
		archive, err := s.buildProgram(ctx, name, reference)
		if err != nil {
			return err
		}
		s.programs = append(s.programs, archive)
	}
	return nil
}

// compile compiles a program of this checkout, with the same flags as the images' so that the packages which they have in common
// are compiled once.
func (s *suite) compile(ctx context.Context, program string) (path string, err error) {
	path = filepath.Join(s.folder, filepath.Base(program))
	compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", "-s -w -X liqo.io/liqo/pkg/version.Version="+s.tag, "-o", path, program)
	compile.Dir, compile.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling %s: %w: %s", program, err, strings.TrimSpace(string(out)))
	}
	return path, nil
}

// stop takes the lab down, unless it is to be kept, and adds its error to that of the run.
func (s *suite) stop(ctx context.Context, steps step.Observer, run error) error {
	errs := []error{run, os.RemoveAll(s.folder)}
	if s.lab == nil {
		return errors.Join(errs...)
	}
	if os.Getenv("LIQO_E2E_KEEP") != "" {
		fmt.Fprintf(os.Stderr, "The lab stays up (LIQO_E2E_KEEP): %s and %s; 'go run ./test/lab down --name %s' removes it.\n",
			s.lab.Kubeconfig(consumer), s.lab.Kubeconfig(provider), s.lab.Spec().Name)
		return errors.Join(errs...)
	}
	ctx, cancel := context.WithTimeout(ctx, teardown)
	defer cancel()
	return errors.Join(append(errs, s.lab.Down(ctx, steps))...)
}

// interrupt takes the lab down when the user stops the tests: the test framework has no way to end early.
func (s *suite) interrupt(ctx context.Context) {
	<-ctx.Done()
	s.exit(errors.New("interrupted"), 130)
}

// endsBefore takes the lab down before go test ends the program, which leaves no time for it: that happens -timeout after the begin.
func (s *suite) endsBefore(begin time.Time) {
	timeout, err := time.ParseDuration(flag.Lookup("test.timeout").Value.String())
	if err != nil || timeout == 0 {
		return
	}
	time.AfterFunc(time.Until(begin.Add(timeout-min(teardown, timeout/2))), func() {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		s.exit(fmt.Errorf("the tests do not end within -timeout=%s; these run: %s", timeout, strings.Join(s.users.running(), ", ")), 2)
	})
}

// exit takes the lab down and ends the program.
func (s *suite) exit(why error, code int) {
	err := s.stop(context.Background(), step.Silent{}, why)
	fmt.Fprintln(os.Stderr, "e2e:", err)
	os.Exit(code)
}

// sides are the clusters that have Liqo as long as it is installed.
func (s *suite) sides() []*side { return []*side{s.rome, s.milan, s.naples} }

// install brings Liqo of this run to all clusters, side by side.
func (s *suite) install(t *testing.T) {
	t.Helper()
	if s.installed {
		return
	}
	s.sideBySide(t, 4*time.Minute, s.sides(), func(c *side) []string { return s.installArgs(t, c) })
	s.installed = true
}

func (s *suite) installArgs(t *testing.T, c *side) []string {
	t.Helper()
	declared, _ := s.lab.Spec().Cluster(c.name)
	args := []string{
		"install", "--kubeconfig", c.kubeconfig, "--cluster-id", c.name, "--pod-cidr", declared.PodCIDR.String(),
		"--service-cidr", declared.ServiceCIDR.String(), "--set", "tag=" + s.tag, "--timeout", "3m",
	}
	args = append(args, s.profileArgs()...)
	if !s.world.connects() {
		args = append(args, "--set", "networking.enabled=false", "--set", c.reachableAPI(t))
	}
	switch c.name {
	case secondProvider:
		return append(args, "--set", "ipam.externalCIDR="+ownExternal)
	case consumer:
		return append(args, "--set", "offloading.reflection.ingress.statusBack=true")
	case provider:
		const offered = "offloading.reflection.ingress.ingressClasses[0]."
		return append(args, "--set", offered+"name="+offeredClass, "--set", offered+"default=true")
	}
	return args
}

// peered makes sure that rome uses milan, and that its virtual node is ready. It has every failure of the test recorded.
func (s *suite) peered(t *testing.T) {
	t.Helper()
	s.recordFailure(t)
	s.peering.Lock()
	defer s.peering.Unlock()
	s.install(t)
	if !s.peers {
		s.runsLiqoctl(t, 3*time.Minute, s.pair(s.peerArgs()...)...).succeeds(t)
		s.peers = true
	}
	eventually(t, time.Minute, "the virtual node to be ready", s.nodeIs(true))
}

func (s *suite) peerArgs() []string {
	args := []string{"peer", "--timeout", "2m"}
	if s.world.connects() {
		// The lab has no load balancers, and applications are spread over two providers.
		args = append(args, "--gw-server-service-type", "NodePort", "--transit")
	}
	return args
}

// pair are the arguments of a command about both clusters.
func (s *suite) pair(args ...string) []string { return s.romeAnd(s.milan, args...) }

// romeAnd are the arguments of a command about rome and a provider.
func (s *suite) romeAnd(peer *side, args ...string) []string {
	return append(args, "--kubeconfig", s.rome.kubeconfig, "--remote-kubeconfig", peer.kubeconfig)
}

// toMilan selects the first provider: a test that runs beside has a second one, too.
const toMilan = corev1beta1.RemoteClusterIDLabel + "=" + provider

// offloaded creates a namespace that is offloaded to milan, and removes it when the test ends. It returns its twin's name.
func (s *suite) offloaded(t *testing.T, name string) (twin string) {
	t.Helper()
	return s.offloadedTo(t, name, "--selector", toMilan)
}

// offloadedTo creates a namespace that is offloaded with some flags, milan among the clusters.
func (s *suite) offloadedTo(t *testing.T, name string, flags ...string) (twin string) {
	t.Helper()
	s.namespace(t, name)
	args := append([]string{"offload", "namespace", name, "--kubeconfig", s.rome.kubeconfig, "--timeout", "40s"}, flags...)
	s.liqoctl(t, time.Minute, args...).succeeds(t)
	twin = twinOf(name)
	s.milan.sees(t, namespaceOf(twin), "the twin namespace")
	return twin
}

// namespace creates a namespace at rome, and deletes it when the test ends: settled proves that it and its twin are gone. What a kept
// lab has of a failed run is removed first, and so is what an earlier test had under that name.
func (s *suite) namespace(t *testing.T, name string) {
	t.Helper()
	s.users.takes(t, name, twinOf(name))
	s.rome.deletes(t, namespaceOf(name))
	if err := s.settle(t.Context(), []absence{{s.rome, name}, {s.milan, twinOf(name)}}); err != nil {
		t.Fatal(err)
	}
	s.rome.creates(t, namespaceOf(name))
	// A pod is refused as long as its namespace has no account for it.
	s.rome.sees(t, &corev1.ServiceAccount{ObjectMeta: named(name, "default")}, "the account of pods")
	t.Cleanup(func() {
		if !kept(t) {
			s.deletes(t, name)
		}
	})
	s.recordFailure(t)
}
