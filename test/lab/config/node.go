package config

import (
	"bytes"
	"embed"
	"fmt"
	"net/netip"
	"text/template"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/pki"
	"liqo.io/liqo/test/lab/spec"
)

//go:embed files
var files embed.FS

// SimulatedAnnotation marks the nodes that kwok plays.
const SimulatedAnnotation = "kwok.x-k8s.io/node"

// Node is what the files and commands of one real node depend on.
type Node struct {
	// Name of the node and of its cluster.
	Name, Cluster string
	// Dir is the node's folder for data, sockets and configuration.
	Dir string
	// Address is the node's address.
	Address netip.Addr
	// PodCIDR is the range that the node's pods get addresses from, ClusterCIDR the whole cluster's.
	PodCIDR, ClusterCIDR netip.Prefix
	// CNI is the pod network, ProxyMode what kube-proxy works with.
	CNI       spec.CNI
	ProxyMode spec.ProxyMode
	// DNS is the address of the cluster's DNS service.
	DNS netip.Addr
	// Cgroup is the group below which the kubelet places its pods.
	Cgroup string
	// Network is the name of the CNI network, unique on the machine.
	Network string
	// PluginDir holds the CNI plugins, Shim is the path of runc.
	PluginDir string
	// PauseImage is the image of pod sandboxes.
	PauseImage string
	// Programs are the binaries.
	Programs binary.Set
	// CA is the path of the cluster's CA certificate.
	CA string
}

// Names of the certificates and kubeconfigs of a node, below its name.
const (
	SuffixKubelet = "-kubelet"
	SuffixServing = "-serving"
	SuffixProxy   = "-proxy"
	SuffixFlannel = "-flannel"
)

// NewNode returns the node without its location on this machine filled in.
func NewNode(c spec.Cluster, name string, keys *pki.Store, programs binary.Set) Node {
	return Node{
		Name: name, Cluster: c.Name, ClusterCIDR: c.PodCIDR, DNS: c.DNSAddress(), CA: keys.Cert(pki.ClusterCA), Programs: programs,
		CNI: c.CNI, ProxyMode: c.ProxyMode,
	}
}

// Socket is the path of containerd's socket.
func (n Node) Socket() string { return n.Dir + "/containerd.sock" }

// Files renders the node's configuration files: path below Dir → content.
func (n Node) Files() (map[string][]byte, error) {
	out := map[string][]byte{"etc/resolv.conf": []byte("# The lab's nodes have no DNS of their own.\n")}
	templates := map[string]string{
		"etc/containerd.toml":     "containerd.toml",
		"etc/cni/10-lab.conflist": "cni.conflist",
		"etc/kubelet.yaml":        "kubelet.yaml",
		"etc/kube-proxy.yaml":     "kube-proxy.yaml",
	}
	if n.CNI == spec.Flannel {
		templates["etc/flannel.json"] = "flannel.json"
	}
	for path, name := range templates {
		data, err := render(name, n)
		if err != nil {
			return nil, err
		}
		out[path] = data
	}
	return out, nil
}

// Containerd returns the command of containerd.
func (n Node) Containerd() []string {
	return []string{"containerd", "--config", n.Dir + "/etc/containerd.toml"}
}

// Kubelet returns the command of the kubelet.
func (n Node) Kubelet() []string {
	return command(n.Programs[binary.Kubelet], map[string]string{
		"config":            n.Dir + "/etc/kubelet.yaml",
		"kubeconfig":        n.Dir + "/etc/kubelet.kubeconfig",
		"hostname-override": n.Name,
		"node-ip":           n.Address.String(),
		"root-dir":          n.Dir + "/kubelet",
		"cert-dir":          n.Dir + "/kubelet/pki",
	}, nil)
}

// Proxy returns the command of kube-proxy.
func (n Node) Proxy() []string {
	return command(n.Programs[binary.Proxy], map[string]string{"config": n.Dir + "/etc/kube-proxy.yaml"}, nil)
}

// Flannel returns the command of the program that brings packets to pods of other nodes.
func (n Node) Flannel() []string {
	return command(n.Programs[binary.Flannel], map[string]string{
		"node":            n.Name,
		"kubeconfig-file": n.Dir + "/etc/flannel.kubeconfig",
		"net-config-path": n.Dir + "/etc/flannel.json",
		"iface":           "eth0",
	}, nil)
}

// Admission renders the admission configuration that enforces a Pod Security profile.
func Admission(profile string) ([]byte, error) { return render("admission.yaml", profile) }

// Stages renders kwok's configuration: how simulated nodes and pods behave.
func Stages() ([]byte, error) { return render("kwok.yaml", binary.KubernetesVersion) }

// render executes a template of the folder files; templates use [[ ]] because
// kwok's own configuration uses the usual delimiters.
func render(name string, data any) ([]byte, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").ParseFS(files, "files/"+name)
	if err != nil {
		return nil, fmt.Errorf("parsing the template %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}
