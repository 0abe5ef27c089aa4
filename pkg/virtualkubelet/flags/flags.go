// Package flags is what a virtual kubelet is started with: arguments, of which some are Liqo v1's, and what its pod tells it by its environment.
package flags

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	_ "k8s.io/component-base/logs/json/register" // offers --logging-format=json

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/virtualkubelet/heartbeat"
	"liqo.io/liqo/pkg/virtualkubelet/leader"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// Flags are where the process runs. What it does stands in its VirtualNode. The help of each flag says what it is.
type Flags struct {
	HomeKubeconfig  string
	Home            string
	Provider        Provider
	Node            string
	TenantNamespace string
	LiqoNamespace   string
	Port            int32
	// PodRanges are this cluster's, once Complete has read them.
	PodRanges    []netip.Prefix
	podCIDRs     []string
	CreateNode   bool
	NodeLease    time.Duration
	Replicas     leader.Terms
	Reflectors   settings.Reflectors
	Networking   bool
	RemoteMemory int32
	MaxRemovals  int
	Tokens       Tokens
	Metrics      Metrics
	Identity     Identity
	Heartbeat    string
}

// Provider is the cluster that the virtual node stands for.
type Provider struct {
	ID               string
	KubeconfigSecret string
	AllowLoopback    bool
	PingInterval     time.Duration
	PingTimeout      time.Duration
}

// Metrics are whether, where and to whom metrics are served.
type Metrics struct {
	Enabled, Plain bool
	Address        string
}

// Identity is who the process is for its cluster, and the folder of its keys and certificates.
type Identity struct {
	Kind      v1alpha1.NodeIdentity
	Directory string
}

// Register adds the flags, after those of the log.
func (f *Flags) Register(set *pflag.FlagSet) {
	set.StringVar(&f.HomeKubeconfig, "home-kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of this cluster; empty means the pod's ServiceAccount")
	set.StringVar(&f.Home, "home-cluster-id", "", "ID of this cluster")
	set.StringVar(&f.Provider.ID, "foreign-cluster-id", "", "ID of the provider cluster")
	set.StringVar(&f.Node, "nodename", "", "name of the VirtualNode, which is that of the Node")
	set.StringVar(&f.TenantNamespace, "tenant-namespace", "", "namespace of the VirtualNode")
	set.StringVar(&f.LiqoNamespace, "liqo-namespace", "liqo", "namespace that Liqo is installed in")
	set.StringVar(&f.Provider.KubeconfigSecret, "foreign-kubeconfig-secret-name", "", "Secret, in the tenant namespace, with the kubeconfig of the provider")
	set.Int32Var(&f.Port, "listen-port", 10250, "port of the kubelet endpoint")
	set.StringSliceVar(&f.podCIDRs, "local-podcidr", nil, "range of this cluster's pods, which no remote pod may claim an address of (repeatable)")
	set.BoolVar(&f.CreateNode, "create-node", true, "run a Node; without one only reflection runs")
	set.Bool("node-check-network", true, "accepted for compatibility; the network is watched over by its own agents")
	set.BoolVar(&f.Provider.AllowLoopback, "allow-loopback-provider", false,
		"accept a provider on a loopback address, for clusters that run on one machine in tests")
	set.DurationVar(&f.Provider.PingInterval, "node-ping-interval", defaultPing,
		"time between two probes of the provider; the Leases of the node and of its active replica are renewed as often, both together")
	set.DurationVar(&f.Provider.PingTimeout, "node-ping-timeout", 5*time.Second, "deadline of one probe of the provider")
	set.DurationVar(&f.NodeLease, "node-lease-duration", 40*time.Second, "duration of the node's Lease")
	f.Reflectors.Register(set)
	set.Int32Var(&f.RemoteMemory, "remote-memory", replica.DefaultBudget>>20,
		"MiB of memory that what the provider shows may take, besides what copies of local objects and pods of this node account for; what is "+
			"beyond is not followed (RemoteOverLimit)")
	set.IntVar(&f.MaxRemovals, "max-removals", massremoval.DefaultShare,
		"share, in percent, of the copies of a kind that may go at once because their originals are missing in a list; more than that, and more "+
			"than 5, are held until confirmed (ManyAtOnce)")
	settings.Bounded(set, "remote-memory", 1, math.MaxInt32)
	settings.Bounded(set, "max-removals", 0, massremoval.Unlimited)
	set.BoolVar(&f.Networking, "networking", false,
		"show the addresses of remote pods as the Configuration of the provider has them, and let pods reach this cluster's API server by its IP resource")
	set.BoolVar(&f.Metrics.Enabled, "metrics-enabled", false, "serve metrics to authorized clients at --metrics-address")
	set.StringVar(&f.Metrics.Address, "metrics-address", ":8082", "address of the metrics")
	set.BoolVar(&f.Metrics.Plain, "metrics-plain-http", false, "serve metrics over HTTP, to whoever reaches their address")
	set.BoolVar(&f.Replicas.Enabled, "vk-lease-enabled", false, "let one of several replicas be active")
	set.DurationVar(&f.Replicas.Duration, "vk-lease-duration", 2*time.Minute, "how long a silent replica stays the active one")
	set.DurationVar(&f.Replicas.Renew, "vk-lease-renew-interval", 100*time.Second, "how long the active replica stays it without a renewal")
	set.DurationVar(&f.Replicas.Retry, "vk-lease-retry-period", time.Minute, "time between two renewals")
	set.StringVar(&f.Identity.Directory, "certificate-dir", "/var/lib/liqo/pki", "folder that holds the node's keys and certificates")
	set.StringVar((*string)(&f.Identity.Kind), "node-identity", string(v1alpha1.NodeIdentityNode),
		"who this process is for its cluster: node (by a certificate of Kubernetes' kubelet signer) or serviceAccount")
	set.Lookup("node-identity").Annotations = map[string][]string{
		settings.WordsOfFlag: {string(v1alpha1.NodeIdentityNode), string(v1alpha1.NodeIdentityServiceAccount)},
	}
	set.StringVar(&f.Heartbeat, "heartbeat-file", heartbeat.DefaultFile, "file that is touched while all loops are alive; 'check' looks at it")
	f.Tokens.register(set)
	registerIdle(set)
}

// Complete replaces what a virtual kubelet of Liqo v1 takes and this one does not, says so in the log, and checks the flags.
func (f *Flags) Complete(log logr.Logger, set *pflag.FlagSet) error {
	warnOfIdle(log, set)
	f.replaceV1(log)
	return f.validate()
}

func (f *Flags) validate() error {
	for name, value := range map[string]string{
		"home-cluster-id": f.Home, "foreign-cluster-id": f.Provider.ID, "nodename": f.Node,
		"tenant-namespace": f.TenantNamespace, "foreign-kubeconfig-secret-name": f.Provider.KubeconfigSecret,
	} {
		if value == "" {
			return fmt.Errorf("--%s must be given", name)
		}
	}
	if f.Home == f.Provider.ID {
		return errors.New("--home-cluster-id and --foreign-cluster-id are the same cluster")
	}
	if err := f.Reflectors.Validate(); err != nil {
		return err
	}
	if !slices.Contains(v1alpha1.NodeIdentities, f.Identity.Kind) {
		return errors.New("--node-identity must be node or serviceAccount")
	}
	if config, given := f.Reflectors.Given(settings.Pods); given && config.NumWorkers == 0 && f.CreateNode {
		return errors.New("--pod-reflection-workers must be at least 1; --create-node=false runs no pods")
	}
	if f.Provider.PingInterval <= 0 || f.Provider.PingTimeout <= 0 || f.NodeLease < 2*f.Provider.PingInterval {
		return errors.New("--node-lease-duration must be at least twice --node-ping-interval, and both it and --node-ping-timeout more than 0")
	}
	if err := f.validateBounds(); err != nil {
		return err
	}
	if err := f.Replicas.Validate(); err != nil {
		return err
	}
	if err := f.Tokens.validate(); err != nil {
		return err
	}
	return f.readRanges()
}

// validateBounds checks how much is held of the provider, and how much is removed there at once.
func (f *Flags) validateBounds() error {
	if f.RemoteMemory <= 0 {
		return errors.New("--remote-memory must be at least 1")
	}
	if f.MaxRemovals < 0 || f.MaxRemovals > massremoval.Unlimited {
		return errors.New("--max-removals must be a share in percent, from 0 to 100")
	}
	return nil
}

// readRanges reads those of this cluster's pods.
func (f *Flags) readRanges() error {
	f.PodRanges = make([]netip.Prefix, 0, len(f.podCIDRs))
	for _, raw := range f.podCIDRs {
		prefix, err := netip.ParsePrefix(raw)
		if err != nil {
			return fmt.Errorf("--local-podcidr %q is not a prefix such as 10.244.0.0/16", raw)
		}
		f.PodRanges = append(f.PodRanges, prefix.Masked())
	}
	return nil
}

// NodeLeaseInterval is the time between two renewals of the node's Lease. Together with those of the active replica's Lease there is one
// in each ping interval, as long as the node's Lease survives two that fail. A replica that is to be replaced fast costs its own.
func (f *Flags) NodeLeaseInterval() time.Duration {
	if !f.Replicas.Enabled || f.Replicas.Retry <= f.Provider.PingInterval {
		return f.Provider.PingInterval
	}
	share := 1 - f.Provider.PingInterval.Seconds()/f.Replicas.Retry.Seconds()
	shared := time.Duration(float64(f.Provider.PingInterval) / share).Round(time.Millisecond)
	return max(f.Provider.PingInterval, min(f.NodeLease/3, shared))
}

// Surroundings are what the pod is told about itself by its environment.
type Surroundings struct {
	Address netip.Addr
	Pod     string
}

// Environment reads them.
func Environment() (Surroundings, error) {
	address, err := netip.ParseAddr(os.Getenv("POD_IP"))
	if err != nil {
		return Surroundings{}, errors.New("the environment variable POD_IP must hold the pod's address (fieldRef status.podIP)")
	}
	s := Surroundings{Address: address.Unmap(), Pod: os.Getenv("POD_NAME")}
	if s.Pod == "" {
		return Surroundings{}, errors.New("the environment variable POD_NAME must hold the pod's name (fieldRef metadata.name)")
	}
	return s, nil
}
