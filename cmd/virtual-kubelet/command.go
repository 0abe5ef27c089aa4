package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // offers --logging-format=json
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/version"
	"liqo.io/liqo/pkg/virtualkubelet/heartbeat"
	"liqo.io/liqo/pkg/virtualkubelet/leader"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// flags are where the process runs. What it does stands in its VirtualNode.
type flags struct {
	homeKubeconfig   string
	homeCluster      string
	foreignCluster   string
	node             string
	tenantNamespace  string
	liqoNamespace    string
	kubeconfigSecret string
	port             int32
	localPodCIDRs    []string
	createNode       bool
	checkNetwork     bool
	allowLoopback    bool
	pingInterval     time.Duration
	pingTimeout      time.Duration
	nodeLease        time.Duration
	reflectors       settings.Reflectors
	networking       bool
	remoteMemory     int32
	maxRemovals      int
	tokens           tokenFlags
	metrics          metricsFlags
	leaseEnabled     bool
	lease            leader.Terms
	certificates     string
	identity         string
	heartbeat        string
}

// metricsFlags are whether, where and to whom metrics are served.
type metricsFlags struct {
	enabled, plain bool
	address        string
}

// surroundings is what the pod is told about itself by its environment.
type surroundings struct {
	address netip.Addr
	pod     string
}

func newCommand() *cobra.Command {
	var f flags
	logging := logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:           "virtual-kubelet",
		Short:         "Run one virtual node: a share of another cluster's resources as a Node of this one",
		Version:       version.Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return fmt.Errorf("applying the logging flags: %w", err)
			}
			log.SetLogger(klog.Background())
			warnOfIdle(klog.Background(), cmd.Flags())
			f.replaceV1(klog.Background())
			prefixes, err := f.validate()
			if err != nil {
				return err
			}
			around, err := environment()
			if err != nil {
				return err
			}
			return run(cmd.Context(), f, around, prefixes)
		},
	}
	f.register(command.Flags())
	logsapi.AddFlags(logging, command.Flags())
	registerIdle(command.Flags())
	command.AddCommand(newCheckCommand())
	return command
}

// newCheckCommand tells the pod's probes whether the process works.
func newCheckCommand() *cobra.Command {
	var file string
	var ready bool
	command := &cobra.Command{
		Use:           "check",
		Short:         "Tell whether the virtual kubelet in this pod works",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return heartbeat.Check(file, time.Now(), ready) },
	}
	command.Flags().StringVar(&file, "file", heartbeat.DefaultFile, "the heartbeat file")
	command.Flags().BoolVar(&ready, "ready", false, "ask also whether it has all that it needs to take over the node")
	return command
}

func (f *flags) register(set *pflag.FlagSet) {
	set.StringVar(&f.homeKubeconfig, "home-kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of this cluster; empty means the pod's ServiceAccount")
	set.StringVar(&f.homeCluster, "home-cluster-id", "", "ID of this cluster")
	set.StringVar(&f.foreignCluster, "foreign-cluster-id", "", "ID of the provider cluster")
	set.StringVar(&f.node, "nodename", "", "name of the VirtualNode, which is that of the Node")
	set.StringVar(&f.tenantNamespace, "tenant-namespace", "", "namespace of the VirtualNode")
	set.StringVar(&f.liqoNamespace, "liqo-namespace", "liqo", "namespace that Liqo is installed in")
	set.StringVar(&f.kubeconfigSecret, "foreign-kubeconfig-secret-name", "", "Secret, in the tenant namespace, with the kubeconfig of the provider")
	set.Int32Var(&f.port, "listen-port", 10250, "port of the kubelet endpoint")
	set.StringSliceVar(&f.localPodCIDRs, "local-podcidr", nil, "range of this cluster's pods, which no remote pod may claim an address of (repeatable)")
	set.BoolVar(&f.createNode, "create-node", true, "run a Node; without one only reflection runs")
	set.BoolVar(&f.checkNetwork, "node-check-network", true, "accepted for compatibility; the network is watched over by its own agents")
	set.BoolVar(&f.allowLoopback, "allow-loopback-provider", false, "accept a provider on a loopback address, for clusters that run on one machine in tests")
	set.DurationVar(&f.pingInterval, "node-ping-interval", defaultPing,
		"time between two probes of the provider; the Leases of the node and of its active replica are renewed as often, both together")
	set.DurationVar(&f.pingTimeout, "node-ping-timeout", 5*time.Second, "deadline of one probe of the provider")
	set.DurationVar(&f.nodeLease, "node-lease-duration", 40*time.Second, "duration of the node's Lease")
	f.reflectors.Register(set)
	set.Int32Var(&f.remoteMemory, "remote-memory", replica.DefaultBudget>>20,
		"MiB of memory that what the provider shows may take, besides what copies of local objects and pods of this node account for; what is "+
			"beyond is not followed (RemoteOverLimit)")
	set.IntVar(&f.maxRemovals, "max-removals", massremoval.DefaultShare,
		"share, in percent, of the copies of a kind that may go at once because their originals are missing in a list; more than that, and more "+
			"than 5, are held until confirmed (ManyAtOnce)")
	settings.Bounded(set, "remote-memory", 1, math.MaxInt32)
	settings.Bounded(set, "max-removals", 0, massremoval.Unlimited)
	set.BoolVar(&f.networking, "networking", false,
		"show the addresses of remote pods as the Configuration of the provider has them, and let pods reach this cluster's API server by its IP resource")
	set.BoolVar(&f.metrics.enabled, "metrics-enabled", false, "serve metrics to authorized clients at --metrics-address")
	set.StringVar(&f.metrics.address, "metrics-address", ":8082", "address of the metrics")
	set.BoolVar(&f.metrics.plain, "metrics-plain-http", false, "serve metrics over HTTP, to whoever reaches their address")
	set.BoolVar(&f.leaseEnabled, "vk-lease-enabled", false, "let one of several replicas be active")
	set.DurationVar(&f.lease.Duration, "vk-lease-duration", 2*time.Minute, "how long a silent replica stays the active one")
	set.DurationVar(&f.lease.Renew, "vk-lease-renew-interval", 100*time.Second, "how long the active replica stays it without a renewal")
	set.DurationVar(&f.lease.Retry, "vk-lease-retry-period", time.Minute, "time between two renewals")
	set.StringVar(&f.certificates, "certificate-dir", "/var/lib/liqo/pki", "folder that holds the node's keys and certificates")
	set.StringVar(&f.identity, "node-identity", string(v1alpha1.NodeIdentityNode),
		"who this process is for its cluster: node (by a certificate of Kubernetes' kubelet signer) or serviceAccount")
	set.Lookup("node-identity").Annotations = map[string][]string{
		settings.WordsOfFlag: {string(v1alpha1.NodeIdentityNode), string(v1alpha1.NodeIdentityServiceAccount)},
	}
	set.StringVar(&f.heartbeat, "heartbeat-file", heartbeat.DefaultFile, "file that is touched while all loops are alive; 'check' looks at it")
	f.tokens.register(set)
}

// validate checks the flags and returns this cluster's pod ranges.
func (f *flags) validate() ([]netip.Prefix, error) {
	for name, value := range map[string]string{
		"home-cluster-id": f.homeCluster, "foreign-cluster-id": f.foreignCluster, "nodename": f.node,
		"tenant-namespace": f.tenantNamespace, "foreign-kubeconfig-secret-name": f.kubeconfigSecret,
	} {
		if value == "" {
			return nil, fmt.Errorf("--%s must be given", name)
		}
	}
	if f.homeCluster == f.foreignCluster {
		return nil, errors.New("--home-cluster-id and --foreign-cluster-id are the same cluster")
	}
	if err := f.reflectors.Validate(); err != nil {
		return nil, err
	}
	if !slices.Contains(v1alpha1.NodeIdentities, v1alpha1.NodeIdentity(f.identity)) {
		return nil, errors.New("--node-identity must be node or serviceAccount")
	}
	if config, given := f.reflectors.Given(settings.Pods); given && config.NumWorkers == 0 && f.createNode {
		return nil, errors.New("--pod-reflection-workers must be at least 1; --create-node=false runs no pods")
	}
	if f.pingInterval <= 0 || f.pingTimeout <= 0 || f.nodeLease < 2*f.pingInterval {
		return nil, errors.New("--node-lease-duration must be at least twice --node-ping-interval, and both it and --node-ping-timeout more than 0")
	}
	if err := f.validateBounds(); err != nil {
		return nil, err
	}
	if f.leaseEnabled {
		if err := f.lease.Validate(); err != nil {
			return nil, err
		}
	}
	if err := f.tokens.validate(); err != nil {
		return nil, err
	}
	return f.podRanges()
}

// validateBounds checks how much is held of the provider, and how much is removed there at once.
func (f *flags) validateBounds() error {
	if f.remoteMemory <= 0 {
		return errors.New("--remote-memory must be at least 1")
	}
	if f.maxRemovals < 0 || f.maxRemovals > massremoval.Unlimited {
		return errors.New("--max-removals must be a share in percent, from 0 to 100")
	}
	return nil
}

// podRanges are this cluster's.
func (f *flags) podRanges() ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(f.localPodCIDRs))
	for _, raw := range f.localPodCIDRs {
		prefix, err := netip.ParsePrefix(raw)
		if err != nil {
			return nil, fmt.Errorf("--local-podcidr %q is not a prefix such as 10.244.0.0/16", raw)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// nodeLeaseInterval is the time between two renewals of the node's Lease. Together with those of the active replica's Lease there is one
// in each ping interval, as long as the node's Lease survives two that fail. A replica that is to be replaced fast costs its own.
func (f *flags) nodeLeaseInterval() time.Duration {
	if !f.leaseEnabled || f.lease.Retry <= f.pingInterval {
		return f.pingInterval
	}
	share := 1 - f.pingInterval.Seconds()/f.lease.Retry.Seconds()
	shared := time.Duration(float64(f.pingInterval) / share).Round(time.Millisecond)
	return max(f.pingInterval, min(f.nodeLease/3, shared))
}

func environment() (surroundings, error) {
	address, err := netip.ParseAddr(os.Getenv("POD_IP"))
	if err != nil {
		return surroundings{}, errors.New("the environment variable POD_IP must hold the pod's address (fieldRef status.podIP)")
	}
	s := surroundings{address: address.Unmap(), pod: os.Getenv("POD_NAME")}
	if s.pod == "" {
		return surroundings{}, errors.New("the environment variable POD_NAME must hold the pod's name (fieldRef metadata.name)")
	}
	return s, nil
}

// idle are the flags of Liqo v1's virtual kubelet that have no effect here, with what does it instead: scripts and VkOptionsTemplates that give
// one still start a process.
var idle = []struct {
	name, instead string
	// isSwitch tells flags that need no value.
	isSwitch bool
}{
	{name: "resync-period", instead: "objects are followed by watches, and nothing is gone through again from time to time"},
	{name: "node-ip", instead: "the address of the pod is taken from the environment variable POD_IP"},
	{name: "certificate-type", instead: "set virtualKubelet.nodeIdentity in the values of the chart"},
	{name: "enable-profiling", instead: "there is no endpoint for profiles", isSwitch: true},
	{name: "node-extra-annotations", instead: "set virtualKubelet.virtualNode.extra.annotations in the values of the chart"},
	{name: "node-extra-labels", instead: "set virtualKubelet.virtualNode.extra.labels in the values of the chart"},
	{name: "enable-storage", instead: "the VirtualNode says it, in spec.storageClasses", isSwitch: true},
	{name: "virtual-storage-class-name", instead: "set storage.virtualStorageClassName in the values of the chart"},
	{name: "remote-real-storage-class-name", instead: "the VirtualNode says it, in spec.storageClasses"},
	{name: "enable-ingress", instead: "set offloading.reflection.ingress.workers in the values of the chart", isSwitch: true},
	{name: "remote-real-ingress-class-name", instead: "the VirtualNode says it, in spec.ingressClasses"},
	{name: "enable-load-balancer", instead: "the VirtualNode says it, in spec.loadBalancerClasses", isSwitch: true},
	{name: "remote-real-load-balancer-class-name", instead: "the VirtualNode says it, in spec.loadBalancerClasses"},
	{name: "remote-pod-cidr", instead: "the Configuration of the provider says it"},
	{name: "remote-pod-cidr-remap", instead: "the Configuration of the provider says it"},
	{name: "remote-external-cidr", instead: "the Configuration of the provider says it"},
	{name: "remote-external-cidr-remap", instead: "the Configuration of the provider says it"},
	{name: "client-qps", instead: "API servers limit requests themselves, by priority and fairness"},
	{name: "client-max-burst", instead: "API servers limit requests themselves, by priority and fairness"},
	{name: "client-timeout", instead: "each request has a deadline of its own"},
	{name: "klog.add_dir_header", instead: inLog, isSwitch: true},
	{name: "klog.alsologtostderr", instead: inLog, isSwitch: true},
	{name: "klog.log_backtrace_at", instead: inLog},
	{name: "klog.log_dir", instead: inLog},
	{name: "klog.log_file", instead: inLog},
	{name: "klog.log_file_max_size", instead: inLog},
	{name: "klog.logtostderr", instead: inLog, isSwitch: true},
	{name: "klog.one_output", instead: inLog, isSwitch: true},
	{name: "klog.skip_headers", instead: inLog, isSwitch: true},
	{name: "klog.skip_log_headers", instead: inLog, isSwitch: true},
	{name: "klog.stderrthreshold", instead: inLog},
}

const inLog = "the log goes to standard error; --logging-format chooses its form"

// registerIdle adds them, and those of v1 that have another name here, after all others.
func registerIdle(set *pflag.FlagSet) {
	for _, flag := range idle {
		if flag.isSwitch {
			set.Bool(flag.name, false, flag.instead)
		} else {
			set.String(flag.name, "", flag.instead)
		}
		set.Lookup(flag.name).Hidden = true
	}
	for name, here := range map[string]string{"klog.v": "v", "klog.vmodule": "vmodule"} {
		set.AddFlag(&pflag.Flag{Name: name, Value: set.Lookup(here).Value, Hidden: true})
	}
}

// warnOfIdle says in the log which of the flags that were given have no effect.
func warnOfIdle(log logr.Logger, set *pflag.FlagSet) {
	for _, flag := range idle {
		if set.Changed(flag.name) {
			log.Info("A flag of Liqo v1 has no effect here", "flag", "--"+flag.name, "instead", flag.instead)
		}
	}
}

// defaultPing is the time between two probes of the provider, where nobody says anything.
const defaultPing = 10 * time.Second

// replaceV1 replaces what a virtual kubelet of Liqo v1 takes and this one cannot work with: probes that are off, and v1's own Leases, which
// would be given up after another replica has taken them.
func (f *flags) replaceV1(log logr.Logger) {
	if f.pingInterval == 0 {
		f.pingInterval = defaultPing
		log.Info("Probes of the provider cannot be off: the default counts", "flag", "--node-ping-interval", "interval", f.pingInterval)
	}
	if f.lease.Duration == 15*time.Second && f.lease.Renew == 10*time.Second && f.lease.Retry == 5*time.Second {
		f.lease.Duration = f.lease.Renew + leader.Winding
		log.Info("The Lease of Liqo v1 is too short: a longer one counts", "flag", "--vk-lease-duration", "duration", f.lease.Duration)
	}
}
