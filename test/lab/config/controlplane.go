package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/pki"
	"liqo.io/liqo/test/lab/spec"
)

// ControlPlane is what the arguments of one cluster's control plane depend on.
type ControlPlane struct {
	// Cluster is the declaration.
	Cluster spec.Cluster
	// Programs are the binaries.
	Programs binary.Set
	// Keys is where the certificates are.
	Keys *pki.Store
	// Dir is the folder of the cluster's data and generated files.
	Dir string
	// Address is what the API server listens on and what clients dial.
	Address string
	// Loopback says that the control plane shares the host's network with others,
	// so that nothing may listen on a fixed port.
	Loopback bool
	// Port is the API server's port, EtcdPort and EtcdPeerPort those of etcd.
	Port, EtcdPort, EtcdPeerPort int
	// AdmissionFile is the path of the admission configuration; empty for none.
	AdmissionFile string
}

// etcdHealthPort is where etcd tells its health in a network of the cluster's own.
const etcdHealthPort = 2381

// simulatedAddress is the address that all simulated nodes report; nothing answers there.
const simulatedAddress = "192.0.2.1"

// Names of the certificates and kubeconfigs of a control plane.
const (
	CertAPIServer         = "apiserver"
	CertKubeletClient     = "apiserver-kubelet-client"
	CertFrontProxyClient  = "front-proxy-client"
	CertAdmin             = "admin"
	CertControllerManager = "controller-manager"
	CertScheduler         = "scheduler"
	KeyServiceAccount     = "service-account"
)

// URL is the address of the API server for every client.
func (c ControlPlane) URL() string { return fmt.Sprintf("https://%s:%d", c.Address, c.Port) }

// Kubeconfig returns the path of the kubeconfig made for a certificate.
func (c ControlPlane) Kubeconfig(certificate string) string {
	if certificate == CertAdmin {
		return c.Dir + "/kubeconfig"
	}
	return c.Dir + "/pki/" + certificate + ".kubeconfig"
}

// Etcd returns the command of etcd.
func (c ControlPlane) Etcd() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.EtcdPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.EtcdPeerPort)
	flags := map[string]string{
		"name":                        c.Cluster.Name,
		"data-dir":                    c.Dir + "/etcd",
		"listen-client-urls":          client,
		"advertise-client-urls":       client,
		"listen-peer-urls":            peer,
		"initial-advertise-peer-urls": peer,
		"initial-cluster":             c.Cluster.Name + "=" + peer,
		"unsafe-no-fsync":             "true",
		"log-level":                   "warn",
	}
	if !c.Loopback {
		flags["listen-metrics-urls"] = c.EtcdURL()
	}
	return command(c.Programs[binary.Etcd], flags, nil)
}

// EtcdURL is where etcd tells its health to this machine, which reaches no loopback address of another network.
func (c ControlPlane) EtcdURL() string {
	if c.Loopback {
		return fmt.Sprintf("http://127.0.0.1:%d", c.EtcdPort)
	}
	return fmt.Sprintf("http://%s:%d", c.Address, etcdHealthPort)
}

// APIServer returns the command of kube-apiserver.
func (c ControlPlane) APIServer() []string {
	flags := map[string]string{
		"advertise-address":                  c.Address,
		"bind-address":                       c.Address,
		"secure-port":                        fmt.Sprint(c.Port),
		"etcd-servers":                       fmt.Sprintf("http://127.0.0.1:%d", c.EtcdPort),
		"service-cluster-ip-range":           c.Cluster.ServiceCIDR.String(),
		"authorization-mode":                 "Node,RBAC",
		"enable-admission-plugins":           strings.Join(append([]string{"NodeRestriction"}, c.Cluster.APIServer.EnableAdmission...), ","),
		"allow-privileged":                   "true",
		"enable-bootstrap-token-auth":        "true",
		"enable-aggregator-routing":          "true",
		"client-ca-file":                     c.Keys.Cert(pki.ClusterCA),
		"tls-cert-file":                      c.Keys.Cert(CertAPIServer),
		"tls-private-key-file":               c.Keys.Key(CertAPIServer),
		"kubelet-certificate-authority":      c.Keys.Cert(pki.ClusterCA),
		"kubelet-client-certificate":         c.Keys.Cert(CertKubeletClient),
		"kubelet-client-key":                 c.Keys.Key(CertKubeletClient),
		"kubelet-preferred-address-types":    "InternalIP",
		"service-account-issuer":             issuer(c.Address, c.Port),
		"service-account-key-file":           c.Keys.Public(KeyServiceAccount),
		"service-account-signing-key-file":   c.Keys.Key(KeyServiceAccount),
		"requestheader-client-ca-file":       c.Keys.Cert(pki.FrontProxyCA),
		"requestheader-allowed-names":        "front-proxy-client",
		"requestheader-username-headers":     "X-Remote-User",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"proxy-client-cert-file":             c.Keys.Cert(CertFrontProxyClient),
		"proxy-client-key-file":              c.Keys.Key(CertFrontProxyClient),
	}
	if c.Loopback {
		// The API server refuses to publish a loopback address as an endpoint.
		flags["endpoint-reconciler-type"] = "none"
	}
	if len(c.Cluster.APIServer.DisableAdmission) > 0 {
		flags["disable-admission-plugins"] = strings.Join(c.Cluster.APIServer.DisableAdmission, ",")
	}
	if c.AdmissionFile != "" {
		flags["admission-control-config-file"] = c.AdmissionFile
	}
	return command(c.Programs[binary.APIServer], flags, c.Cluster.APIServer.ExtraArgs)
}

// issuer is what a cluster's ServiceAccount tokens name as theirs. No two clusters have the same, and it can be asked for the keys.
func issuer(address string, port int) string {
	return "https://" + net.JoinHostPort(address, fmt.Sprint(port))
}

// ControllerManager returns the command of kube-controller-manager.
func (c ControlPlane) ControllerManager() []string {
	kubeconfig := c.Kubeconfig(CertControllerManager)
	flags := map[string]string{
		"kubeconfig":                       kubeconfig,
		"authentication-kubeconfig":        kubeconfig,
		"authorization-kubeconfig":         kubeconfig,
		"leader-elect":                     "false",
		"controllers":                      "*,bootstrapsigner,tokencleaner",
		"use-service-account-credentials":  "true",
		"root-ca-file":                     c.Keys.Cert(pki.ClusterCA),
		"cluster-signing-cert-file":        c.Keys.Cert(pki.ClusterCA),
		"cluster-signing-key-file":         c.Keys.Key(pki.ClusterCA),
		"service-account-private-key-file": c.Keys.Key(KeyServiceAccount),
		"client-ca-file":                   c.Keys.Cert(pki.ClusterCA),
		"requestheader-client-ca-file":     c.Keys.Cert(pki.FrontProxyCA),
		"allocate-node-cidrs":              strconv.FormatBool(!c.Cluster.WithoutNodeCIDRs),
		"cluster-cidr":                     c.Cluster.PodCIDR.String(),
		"service-cluster-ip-range":         c.Cluster.ServiceCIDR.String(),
		"node-cidr-mask-size":              fmt.Sprint(c.Cluster.NodeMask()),
		"kube-api-qps":                     "100",
		"kube-api-burst":                   "200",
	}
	c.private(flags)
	return command(c.Programs[binary.ControllerManager], flags, nil)
}

// Scheduler returns the command of kube-scheduler.
func (c ControlPlane) Scheduler() []string {
	kubeconfig := c.Kubeconfig(CertScheduler)
	flags := map[string]string{
		"kubeconfig":                   kubeconfig,
		"authentication-kubeconfig":    kubeconfig,
		"authorization-kubeconfig":     kubeconfig,
		"leader-elect":                 "false",
		"client-ca-file":               c.Keys.Cert(pki.ClusterCA),
		"requestheader-client-ca-file": c.Keys.Cert(pki.FrontProxyCA),
		"kube-api-qps":                 "100",
		"kube-api-burst":               "200",
	}
	c.private(flags)
	return command(c.Programs[binary.Scheduler], flags, nil)
}

// private keeps a component's own port where nobody else can collide with it.
func (c ControlPlane) private(flags map[string]string) {
	flags["bind-address"] = "127.0.0.1"
	if c.Loopback {
		flags["secure-port"] = "0"
	}
}

// Kwok returns the command of kwok, which plays the simulated nodes.
func (c ControlPlane) Kwok() []string {
	return command(c.Programs[binary.Kwok], map[string]string{
		"kubeconfig":                            c.Kubeconfig(CertAdmin),
		"config":                                c.Dir + "/kwok.yaml",
		"manage-all-nodes":                      "false",
		"manage-nodes-with-annotation-selector": SimulatedAnnotation + "=fake",
		"node-ip":                               simulatedAddress,
		"node-lease-duration-seconds":           "40",
	}, nil)
}

// Provisioner returns the command of the volume provisioner; root is the folder for its volumes.
func (c ControlPlane) Provisioner(root string) []string {
	return command(c.Programs[binary.Provisioner], map[string]string{"kubeconfig": c.Kubeconfig(CertAdmin), "root": root}, nil)
}

// command joins a program with its flags in alphabetical order; extra ones win.
func command(program string, flags, extra map[string]string) []string {
	all := maps.Clone(flags)
	maps.Copy(all, extra)
	args := []string{program}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "--"+name+"="+all[name])
	}
	return args
}
