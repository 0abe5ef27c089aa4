package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"liqo.io/liqo/test/lab/addon"
	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/config"
	"liqo.io/liqo/test/lab/image"
	"liqo.io/liqo/test/lab/pki"
	"liqo.io/liqo/test/lab/process"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/step"
)

// programContainerd is the name of the container runtime, a program of the distribution.
const programContainerd = "containerd"

// realNodes returns the real nodes of a cluster that were not killed on purpose.
func (b *builder) realNodes(c spec.Cluster, keys *pki.Store) []config.Node {
	var nodes []config.Node
	for _, declared := range c.NodesOf(spec.Real) {
		if slices.Contains(b.state.Down, c.Name+"/"+declared.Name) {
			continue
		}
		endpoint := b.state.Plan.Node(c.Name, declared.Name)
		n := config.NewNode(c, declared.Name, keys, b.programs)
		n.Dir = b.nodeDir(c.Name, n.Name)
		n.Address, n.PodCIDR, n.Network = endpoint.Address, endpoint.PodCIDR, endpoint.Namespace
		n.Cgroup = filepath.Join(b.nodeGroup(c.Name, n.Name), "pods")
		n.PluginDir, n.PauseImage = b.plugins, image.Pause
		nodes = append(nodes, n)
	}
	return nodes
}

// runtimeUp starts a node's containerd and brings the lab's images into it.
func (b *builder) runtimeUp(ctx context.Context, n config.Node) error {
	return step.Run(b.observer, n.Cluster+": container runtime of "+n.Name, func() error {
		files, err := n.Files()
		if err != nil {
			return err
		}
		if err := writeFiles(n.Dir, files); err != nil {
			return err
		}
		for _, dir := range []string{filepath.Join(b.volumes(n.Cluster), n.Name), filepath.Join(n.Dir, "kubelet", "plugins")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("creating a folder of node %s: %w", n.Name, err)
			}
		}
		if _, err := b.ensureGroup(n.Cgroup); err != nil {
			return err
		}
		if len(b.cgroups.Processes(b.nodeGroup(n.Cluster, n.Name))) == 0 {
			// Nothing of the node runs: what an earlier life left would confuse the runtime.
			if err := b.clearRuntime(n.Cluster, n.Name); err != nil {
				return err
			}
		}
		if err := b.startOnNode(ctx, n, programContainerd, n.Containerd()); err != nil {
			return err
		}
		if err := b.waitSocket(ctx, n); err != nil {
			return err
		}
		return image.Load(ctx, n.Socket(), b.imagesOf(n.Cluster)...)
	})
}

// waitSocket waits until containerd answers.
func (b *builder) waitSocket(ctx context.Context, n config.Node) error {
	component := n.Cluster + "/" + n.Name + "/" + programContainerd
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", n.Socket())
		if err != nil {
			if !b.processes.Alive(component) {
				return false, b.died(component)
			}
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for containerd of node %s: %w", n.Name, err)
	}
	return nil
}

// agentsUp starts kubelet and kube-proxy of a node, and what its pod network needs.
func (b *builder) agentsUp(ctx context.Context, n config.Node, keys *pki.Store, server string) error {
	kubelet, serving, proxy := n.Name+config.SuffixKubelet, n.Name+config.SuffixServing, n.Name+config.SuffixProxy
	certificates := []pki.Certificate{
		{Name: kubelet, CommonName: "system:node:" + n.Name, Organizations: []string{"system:nodes"}},
		{
			Name: serving, CommonName: "system:node:" + n.Name, Organizations: []string{"system:nodes"},
			DNSNames: []string{n.Name}, Addresses: []net.IP{n.Address.AsSlice()},
		},
		{Name: proxy, CommonName: "system:kube-proxy"},
	}
	kubeconfigs := map[string]string{kubelet: "kubelet.kubeconfig", proxy: "kube-proxy.kubeconfig"}
	if n.CNI == spec.Flannel {
		certificates = append(certificates, pki.Certificate{Name: n.Name + config.SuffixFlannel, CommonName: addon.FlannelUser})
		kubeconfigs[n.Name+config.SuffixFlannel] = "flannel.kubeconfig"
	}
	for _, cert := range certificates {
		if err := keys.Ensure(cert); err != nil {
			return err
		}
	}
	for certificate, file := range kubeconfigs {
		if err := keys.Kubeconfig(filepath.Join(n.Dir, "etc", file), n.Cluster, server, certificate); err != nil {
			return err
		}
	}
	files := map[string][]byte{}
	for path, source := range map[string]string{"etc/serving.crt": keys.Cert(serving), "etc/serving.key": keys.Key(serving)} {
		data, err := os.ReadFile(source)
		if err != nil {
			return fmt.Errorf("reading the serving certificate of node %s: %w", n.Name, err)
		}
		files[path] = data
	}
	if err := writeFiles(n.Dir, files); err != nil {
		return err
	}
	for _, name := range agents(n.CNI) {
		args := map[string]func() []string{binary.Kubelet: n.Kubelet, binary.Proxy: n.Proxy, binary.Flannel: n.Flannel}[name]()
		if err := b.startOnNode(ctx, n, name, args); err != nil {
			return err
		}
	}
	return nil
}

// agents are the programs of a node beside its container runtime.
func agents(network spec.CNI) []string {
	names := []string{binary.Kubelet, binary.Proxy}
	if network == spec.Flannel {
		names = append(names, binary.Flannel)
	}
	return names
}

func (b *builder) startOnNode(ctx context.Context, n config.Node, name string, args []string) error {
	groups, err := b.ensureGroup(filepath.Join(b.nodeGroup(n.Cluster, n.Name), "system"))
	if err != nil {
		return err
	}
	component := n.Cluster + "/" + n.Name + "/" + name
	return b.processes.Start(ctx, process.Spec{
		Component: component, Args: args, Cgroups: groups, Log: b.log(component),
		Namespace: b.state.Plan.Node(n.Cluster, n.Name).Namespace,
	})
}

// registerNodes creates the Node objects that are absent. Real nodes would
// register themselves, but so their pod ranges are the ones that are routed.
func (b *builder) registerNodes(ctx context.Context, c spec.Cluster) error {
	rest, err := b.Config(c.Name)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("connecting to cluster %s: %w", c.Name, err)
	}
	real := 0
	for _, n := range c.Nodes {
		node := nodeObject(n)
		if n.Kind == spec.Real {
			// flannel cannot do with a Node that has no annotation at all, as long as its kubelet has not given it one.
			node.Annotations = map[string]string{"lab.liqo.io/node": string(n.Kind)}
			if !c.WithoutNodeCIDRs {
				node.Spec.PodCIDR = c.NodeCIDR(real).String()
				node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
			}
			real++
		}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating Node %s: %w", n.Name, err)
		}
	}
	return nil
}

// nodeObject returns the Node that a declared node starts as.
func nodeObject(n spec.Node) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   n.Name,
		Labels: map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", addon.RealLabel: string(n.Kind)},
	}}
	for k, v := range n.Labels {
		node.Labels[k] = v
	}
	if n.Kind == spec.Simulated {
		node.Annotations = map[string]string{config.SimulatedAnnotation: "fake"}
	}
	return node
}

// clearRuntime removes what containers leave on the machine beyond the node's
// data: mounts, and sockets of their shims. No process of the node may run.
func (l *Lab) clearRuntime(cluster, node string) error {
	dir := l.nodeDir(cluster, node)
	tasks := filepath.Join(dir, "containerd", "state", "io.containerd.runtime.v2.task", "k8s.io")
	addresses, _ := filepath.Glob(filepath.Join(tasks, "*", "address"))
	for _, path := range addresses {
		if data, err := os.ReadFile(path); err == nil {
			socket := strings.TrimPrefix(strings.TrimSpace(string(data)), "unix://")
			if strings.HasPrefix(socket, "/run/containerd/s/") {
				_ = os.Remove(socket)
			}
		}
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "containerd", "state")); err != nil {
		return fmt.Errorf("clearing the runtime state of node %s: %w", node, err)
	}
	return nil
}
