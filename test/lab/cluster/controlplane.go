package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/utils/clock"

	"liqo.io/liqo/test/lab/addon"
	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/config"
	"liqo.io/liqo/test/lab/pki"
	"liqo.io/liqo/test/lab/port"
	"liqo.io/liqo/test/lab/process"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
	"liqo.io/liqo/test/lab/step"

	"golang.org/x/sync/errgroup"
)

// clusterUp brings one cluster up. Nodes get their containerd and images while
// the control plane starts.
func (b *builder) clusterUp(ctx context.Context, c spec.Cluster) error {
	if err := b.clusterSteps(ctx, c); err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	return nil
}

func (b *builder) clusterSteps(ctx context.Context, c spec.Cluster) error {
	keys, err := pki.New(filepath.Join(b.clusterDir(c.Name), "pki"), clock.RealClock{})
	if err != nil {
		return err
	}
	cp, err := b.controlPlane(c, keys)
	if err != nil {
		return err
	}
	nodes := b.realNodes(c, keys)
	group, groupCtx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		group.Go(func() error { return b.runtimeUp(groupCtx, n) })
	}
	group.Go(func() error {
		return step.Run(b.observer, c.Name+": control plane", func() error { return b.controlPlaneUp(groupCtx, cp) })
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return step.Run(b.observer, c.Name+": nodes and add-ons", func() error {
		if err := b.registerNodes(ctx, c); err != nil {
			return err
		}
		for _, n := range nodes {
			if err := b.agentsUp(ctx, n, keys, cp.URL()); err != nil {
				return err
			}
		}
		rest, err := b.Config(c.Name)
		if err != nil {
			return err
		}
		if err := addon.Apply(ctx, rest, c); err != nil {
			return err
		}
		return b.waitReady(ctx, c)
	})
}

// controlPlane fixes the addresses of a cluster's control plane and makes its files.
func (b *builder) controlPlane(c spec.Cluster, keys *pki.Store) (config.ControlPlane, error) {
	cp := b.placed(config.ControlPlane{Cluster: c, Programs: b.programs, Keys: keys, Dir: b.clusterDir(c.Name)})
	if err := b.keyMaterial(cp); err != nil {
		return cp, err
	}
	stages, err := config.Stages()
	if err != nil {
		return cp, err
	}
	files := map[string][]byte{"kwok.yaml": stages}
	if profile := c.APIServer.PodSecurity; profile != "" {
		cp.AdmissionFile = filepath.Join(cp.Dir, "admission.yaml")
		if files["admission.yaml"], err = config.Admission(profile); err != nil {
			return cp, err
		}
	}
	return cp, writeFiles(cp.Dir, files)
}

// placed says where a control plane listens.
func (l *Lab) placed(cp config.ControlPlane) config.ControlPlane {
	name, wanted := cp.Cluster.Name, cp.Cluster.APIServer.Port
	if l.state.Plan == nil {
		ports := l.state.Ports[name]
		cp.Loopback, cp.Address, cp.Port, cp.EtcdPort, cp.EtcdPeerPort = true, "127.0.0.1", ports.API, ports.Etcd, ports.EtcdPeer
		return cp
	}
	cp.Address, cp.Port, cp.EtcdPort, cp.EtcdPeerPort = l.state.Plan.ControlPlane(name).Address.String(), cmp.Or(wanted, 6443), 2379, 2380
	return cp
}

// keyMaterial makes certificates and kubeconfigs of the control plane.
func (b *builder) keyMaterial(cp config.ControlPlane) error {
	keys := cp.Keys
	if err := keys.EnsureCA(pki.ClusterCA, "kubernetes"); err != nil {
		return err
	}
	if err := keys.EnsureCA(pki.FrontProxyCA, "front-proxy-ca"); err != nil {
		return err
	}
	if err := keys.EnsureKey(config.KeyServiceAccount); err != nil {
		return err
	}
	for _, cert := range []pki.Certificate{
		{
			Name: config.CertAPIServer, CommonName: "kube-apiserver",
			DNSNames:  []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
			Addresses: []net.IP{net.ParseIP("127.0.0.1"), cp.Cluster.KubernetesAddress().AsSlice(), net.ParseIP(cp.Address)},
		},
		{Name: config.CertKubeletClient, CommonName: "kube-apiserver-kubelet-client"},
		{Name: config.CertFrontProxyClient, CommonName: "front-proxy-client", CA: pki.FrontProxyCA},
		{Name: config.CertAdmin, CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}},
		{Name: config.CertControllerManager, CommonName: "system:kube-controller-manager"},
		{Name: config.CertScheduler, CommonName: "system:kube-scheduler"},
	} {
		if err := keys.Ensure(cert); err != nil {
			return err
		}
	}
	for _, name := range []string{config.CertAdmin, config.CertControllerManager, config.CertScheduler} {
		if err := keys.Kubeconfig(cp.Kubeconfig(name), cp.Cluster.Name, cp.URL(), name); err != nil {
			return err
		}
	}
	return nil
}

// controlPlaneUp starts etcd, the API server and the rest, each when the one before answers: an API server whose etcd does not ends.
func (b *builder) controlPlaneUp(ctx context.Context, cp config.ControlPlane) error {
	groups, err := b.ensureGroup(b.controlGroup(cp.Cluster.Name))
	if err != nil {
		return err
	}
	start := func(name string, args []string) error {
		component := cp.Cluster.Name + "/" + name
		s := process.Spec{Component: component, Args: args, Cgroups: groups, Log: b.log(component)}
		if b.state.Plan != nil {
			s.Namespace = b.state.Plan.ControlPlane(cp.Cluster.Name).Namespace
		}
		return b.processes.Start(ctx, s)
	}
	if err := start(binary.Etcd, cp.Etcd()); err != nil {
		return err
	}
	if err := b.AwaitEtcd(ctx, cp.Cluster.Name); err != nil {
		return err
	}
	if err := start(binary.APIServer, cp.APIServer()); err != nil {
		return err
	}
	if err := b.waitAPIServer(ctx, cp); err != nil {
		return err
	}
	for _, name := range optional(cp.Cluster) {
		args := map[string]func() []string{
			binary.ControllerManager: cp.ControllerManager,
			binary.Scheduler:         cp.Scheduler,
			binary.Kwok:              cp.Kwok,
			binary.Provisioner:       func() []string { return cp.Provisioner(b.volumes(cp.Cluster.Name)) },
		}[name]()
		if err := start(name, args); err != nil {
			return err
		}
	}
	return nil
}

// optional lists the control plane's programs beside etcd and API server that a cluster has.
func optional(c spec.Cluster) []string {
	var names []string
	if !c.WithoutControllerManager {
		names = append(names, binary.ControllerManager)
	}
	if !c.WithoutScheduler {
		names = append(names, binary.Scheduler)
	}
	if len(c.NodesOf(spec.Simulated)) > 0 {
		names = append(names, binary.Kwok)
	}
	if len(c.NodesOf(spec.Real)) > 0 {
		names = append(names, binary.Provisioner)
	}
	return names
}

// volumes is the folder of a cluster's dynamic volumes.
func (l *Lab) volumes(cluster string) string { return filepath.Join(l.clusterDir(cluster), "volumes") }

// choosePorts gives every cluster on loopback free ports. Those of a running API server stay.
func (b *builder) choosePorts() error {
	old := b.state.Ports
	b.state.Ports = map[string]state.Ports{}
	for _, c := range b.state.Lab.Clusters {
		if p, ok := old[c.Name]; ok && b.processes.Alive(c.Name+"/"+binary.APIServer) && b.processes.Alive(c.Name+"/"+binary.Etcd) {
			b.state.Ports[c.Name] = p
			continue
		}
		p, err := freePorts(c)
		if err != nil {
			return err
		}
		b.state.Ports[c.Name] = p
	}
	return nil
}

// freePorts chooses ports, all held until the last one is known.
func freePorts(c spec.Cluster) (state.Ports, error) {
	var ports [3]int
	for i, wanted := range []int{c.APIServer.Port, 0, 0} {
		listener, err := listen(wanted)
		if err != nil && wanted != 0 {
			err = portTaken(c.Name, wanted)
		}
		if err != nil {
			return state.Ports{}, err
		}
		defer listener.Close()
		ports[i] = port.Of(listener)
	}
	return state.Ports{API: ports[0], Etcd: ports[1], EtcdPeer: ports[2]}, nil
}

// listen listens at the wanted port; at any free one if it is 0.
func listen(wanted int) (net.Listener, error) {
	if wanted == 0 {
		return port.Listen()
	}
	return port.At(wanted)
}

func portTaken(cluster string, port int) error {
	return fmt.Errorf("port %d of cluster %s is in use by another program: end that program, or choose another apiServer.port", port, cluster)
}

// writeFiles writes files below dir that are absent or different.
func writeFiles(dir string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == string(content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("creating a folder of the lab: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return diskError(fmt.Errorf("writing a file of the lab: %w", err))
		}
	}
	return nil
}

// diskError names the remedy when the disk is full.
func diskError(err error) error {
	if strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("%w: free at least 3 GB, or move the lab with %s", err, state.EnvRoot)
	}
	return err
}
