package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/host"
	"liqo.io/liqo/test/lab/image"
	"liqo.io/liqo/test/lab/network"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
	"liqo.io/liqo/test/lab/step"
)

// shortCheck bounds the question whether a lab is healthy already.
const shortCheck = 5 * time.Second

// outside are folders beyond the lab's own that node software insists on.
var outside = []string{"/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/run/containerd"}

// builder is one run of Up.
type builder struct {
	*Lab
	observer step.Observer
	programs binary.Set
	plugins  string   // folder of the CNI plugins
	archives []string // of the images that every real node gets
	entrance string   // the archive of the ingress controller; empty if no cluster has one
}

// Up makes the declared lab run and returns when its clusters are ready: API
// servers answer, nodes are Ready, DNS is available. See the package comment.
func Up(ctx context.Context, declared spec.Lab, o step.Observer) (lab *Lab, err error) {
	declared = declared.Complete()
	if err := declared.Validate(); err != nil {
		return nil, err
	}
	dir, err := state.Dir(declared.Name)
	if err != nil {
		return nil, err
	}
	machine := host.This()
	if !declared.Simulated() {
		if err := checkReal(machine, declared, dir); err != nil {
			return nil, err
		}
	}
	unlock, err := state.Lock(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer func() {
		if err != nil { // a refusal leaves nothing: these fail once there is anything in the folders
			_ = os.Remove(dir)
			_ = os.Remove(filepath.Dir(dir))
		}
	}()
	s, found, err := state.Load(dir)
	if err != nil {
		return nil, err
	}
	if found && !reflect.DeepEqual(s.Lab, declared) {
		return nil, fmt.Errorf("lab %q exists with another declaration: take it down first, or choose another name", declared.Name)
	}
	s.Lab = declared
	if lab, err = newLab(dir, s); err != nil {
		return nil, err
	}
	if found && lab.healthy(ctx) {
		return lab, nil
	}
	b := &builder{Lab: lab, observer: o}
	if err := b.prepare(ctx, machine); err != nil {
		return nil, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, c := range declared.Clusters {
		group.Go(func() error { return b.clusterUp(groupCtx, c) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return lab, nil
}

// checkReal refuses what can be refused before anything is touched.
func checkReal(machine host.Machine, lab spec.Lab, dir string) error {
	if err := machine.CheckKernel(); err != nil {
		return err
	}
	const longest = 107 - len("/containerd.sock.ttrpc") // what fits into a socket's address
	for _, c := range lab.Clusters {
		for _, n := range c.NodesOf(spec.Real) {
			if c.CNI == spec.Flannel {
				if err := machine.CheckBridges(); err != nil {
					return err
				}
			}
			if path := filepath.Join(dir, c.Name, "nodes", n.Name); len(path) > longest {
				return fmt.Errorf("the path %s is too long for the sockets in it: set %s to a shorter folder", path, state.EnvRoot)
			}
		}
	}
	return nil
}

// prepare gets programs and images and builds the network.
func (b *builder) prepare(ctx context.Context, machine host.Machine) error {
	cache, err := binary.CacheDir()
	if err != nil {
		return err
	}
	if err := errors.Join(machine.CheckDisk(b.dir), machine.CheckDisk(cache)); err != nil {
		return err
	}
	real := !b.state.Lab.Simulated()
	if real {
		if err := machine.Prepare(ctx, b.observer); err != nil {
			return err
		}
		b.plugins = machine.PluginDir()
	}
	if b.programs, err = binary.Ensure(ctx, wanted(b.state.Lab), b.observer); err != nil {
		return err
	}
	if !real {
		if err := b.choosePorts(); err != nil {
			return err
		}
		return b.state.Save(b.dir)
	}
	if err := b.makeImages(ctx, filepath.Join(cache, "images")); err != nil {
		return err
	}
	return b.networkUp(ctx)
}

// makeImages makes the archives of the lab's images in a folder.
func (b *builder) makeImages(ctx context.Context, dir string) error {
	images, err := image.Defaults(ctx, b.programs[binary.CoreDNS])
	if err != nil {
		return err
	}
	for _, i := range images {
		archive, err := i.Archive(dir)
		if err != nil {
			return err
		}
		b.archives = append(b.archives, archive)
	}
	if program := b.programs[binary.Ingress]; program != "" {
		b.entrance, err = image.Entrance(program).Archive(dir)
	}
	return err
}

// imagesOf are the archives that the nodes of a cluster get.
func (b *builder) imagesOf(cluster string) []string {
	if c, _ := b.state.Lab.Cluster(cluster); c.IngressClass != "" {
		return append(slices.Clone(b.archives), b.entrance)
	}
	return b.archives
}

// wanted lists the programs that a lab needs.
func wanted(lab spec.Lab) []string {
	names := []string{binary.Etcd, binary.APIServer, binary.ControllerManager, binary.Scheduler, binary.Kubectl}
	real, simulated, entrance, flannel := false, false, false, false
	for _, c := range lab.Clusters {
		real = real || len(c.NodesOf(spec.Real)) > 0
		simulated = simulated || len(c.NodesOf(spec.Simulated)) > 0
		entrance = entrance || c.IngressClass != ""
		flannel = flannel || c.CNI == spec.Flannel && len(c.NodesOf(spec.Real)) > 0
	}
	if flannel {
		names = append(names, binary.Flannel)
	}
	if real {
		names = append(names, binary.Kubelet, binary.Proxy, binary.CoreDNS, binary.Provisioner)
	}
	if simulated {
		names = append(names, binary.Kwok)
	}
	if entrance {
		names = append(names, binary.Ingress)
	}
	return names
}

// networkUp takes a subnet if the lab has none yet, and builds the network
// unless all of it is there. What runs in half a network is ended first.
func (b *builder) networkUp(ctx context.Context) error {
	if b.state.Plan == nil {
		if err := b.allocate(ctx); err != nil {
			return err
		}
	}
	if b.state.Plan.Intact(ctx) {
		return b.mend(ctx)
	}
	return step.Run(b.observer, "network "+b.state.Plan.Subnet.String(), func() error {
		if err := b.cgroups.Kill(ctx, b.labGroup()); err != nil {
			return err
		}
		if err := b.state.Plan.Remove(ctx); err != nil {
			return err
		}
		b.state.Faults, b.state.Down = nil, nil
		if err := b.state.Save(b.dir); err != nil {
			return err
		}
		return b.state.Plan.Create(ctx)
	})
}

// mend undoes the faults that were left in the network: broken links and unplugged nodes.
func (b *builder) mend(ctx context.Context) error {
	if len(b.state.Faults)+len(b.state.Down) == 0 {
		return nil
	}
	if err := b.state.Plan.SetFaults(ctx, nil); err != nil {
		return err
	}
	for _, e := range b.state.Plan.Endpoints {
		if b.nodeDown(e.Cluster, e.Node) {
			if err := b.state.Plan.SetUp(ctx, e, true); err != nil {
				return err
			}
		}
	}
	b.state.Faults, b.state.Down = nil, nil
	return b.state.Save(b.dir)
}

// allocate chooses a subnet while no other lab does.
func (b *builder) allocate(ctx context.Context) error {
	unlock, err := state.Lock(ctx, filepath.Dir(b.dir))
	if err != nil {
		return err
	}
	defer unlock()
	taken, err := network.HostRoutes(ctx)
	if err != nil {
		return err
	}
	names, err := state.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		other, found, err := state.Load(filepath.Join(filepath.Dir(b.dir), name))
		if err == nil && found && other.Plan != nil {
			taken = append(taken, other.Plan.Subnet)
		}
	}
	subnet, err := network.Choose(append(taken, declaredRanges(b.state.Lab)...))
	if err != nil {
		return err
	}
	plan := network.NewPlan(b.state.Lab, subnet)
	b.state.Plan = &plan
	if err := recordOutside(filepath.Dir(b.dir)); err != nil {
		return err
	}
	return b.state.Save(b.dir)
}

// recordOutside remembers which folders beyond the labs' own exist only because
// of labs, so that the last lab to go removes them.
func recordOutside(root string) error {
	created, err := state.LoadCreated(root)
	if err != nil {
		return err
	}
	for _, path := range outside {
		if _, err := os.Stat(path); err != nil {
			created = append(created, path)
		}
	}
	return state.SaveCreated(root, created)
}

// declaredRanges are the lab's own pod and service ranges, which its nodes must not use.
func declaredRanges(lab spec.Lab) []netip.Prefix {
	var list []netip.Prefix
	for _, c := range lab.Clusters {
		list = append(list, c.PodCIDR, c.ServiceCIDR)
	}
	return list
}

// ensureGroup makes a control group and returns its folders.
func (b *builder) ensureGroup(group string) ([]string, error) {
	if b.state.Plan == nil {
		return nil, nil
	}
	if err := b.cgroups.Ensure(group); err != nil {
		return nil, err
	}
	return b.cgroups.Dirs(group), nil
}
