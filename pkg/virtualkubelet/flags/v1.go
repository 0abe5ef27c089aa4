package flags

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"liqo.io/liqo/pkg/virtualkubelet/leader"
)

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
		if same := set.Lookup(here); same != nil {
			set.AddFlag(&pflag.Flag{Name: name, Value: same.Value, Hidden: true})
		}
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
func (f *Flags) replaceV1(log logr.Logger) {
	if f.Provider.PingInterval == 0 {
		f.Provider.PingInterval = defaultPing
		log.Info("Probes of the provider cannot be off: the default counts", "flag", "--node-ping-interval", "interval", f.Provider.PingInterval)
	}
	if f.Replicas.Duration == 15*time.Second && f.Replicas.Renew == 10*time.Second && f.Replicas.Retry == 5*time.Second {
		f.Replicas.Duration = f.Replicas.Renew + leader.Winding
		log.Info("The Lease of Liqo v1 is too short: a longer one counts", "flag", "--vk-lease-duration", "duration", f.Replicas.Duration)
	}
}
