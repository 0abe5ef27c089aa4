package flags

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"sigs.k8s.io/yaml"
)

// v1 are the flags of Liqo v1's virtual kubelet, as somebody may give them.
const v1 = `--home-kubeconfig= --foreign-kubeconfig-secret-name=a --nodename=virtual-kubelet --tenant-namespace=default --liqo-namespace=liqo
--resync-period=10h --home-cluster-id=rome --foreign-cluster-id=milan --disable-ip-reflection=false --local-podcidr=10.0.0.0/16 --node-ip=10.0.0.1
--certificate-type=kubelet --listen-port=10250 --enable-profiling --pod-reflection-workers=10 --service-reflection-workers=3
--endpointslice-reflection-workers=10 --ingress-reflection-workers=3 --configmap-reflection-workers=3 --secret-reflection-workers=3
--serviceaccount-reflection-workers=3 --persistentvolumeclaim-reflection-workers=3 --event-reflection-workers=3 --service-reflection-type=DenyList
--ingress-reflection-type=DenyList --configmap-reflection-type=DenyList --secret-reflection-type=DenyList --event-reflection-type=DenyList
--node-lease-duration=40s --node-ping-interval=10s --node-ping-timeout=1s --node-check-network=true --node-extra-annotations=a=b
--node-extra-labels=a=b --enable-apiserver-support --enable-storage --virtual-storage-class-name=liqo --remote-real-storage-class-name=a
--enable-ingress --remote-real-ingress-class-name=a --enable-load-balancer --remote-real-load-balancer-class-name=a --metrics-enabled
--metrics-address=:8082 --home-api-server-host=api --home-api-server-port=6443 --remote-pod-cidr=10.1.0.0/16 --remote-pod-cidr-remap=10.2.0.0/16
--remote-external-cidr=10.70.0.0/16 --remote-external-cidr-remap=10.71.0.0/16 --create-node=true --vk-lease-enabled=false --vk-lease-duration=15s
--vk-lease-renew-interval=10s --vk-lease-retry-period=5s --client-qps=100 --client-max-burst=100 --client-timeout=0 --klog.v=4 --klog.logtostderr`

// Arguments of Liqo v1 start a virtual kubelet; its log says which of them have no effect, and what does it here.
func TestFlagsOfV1(t *testing.T) {
	var f Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), set)
	f.Register(set)
	if err := set.Parse(strings.Fields(v1)); err != nil {
		t.Fatal(err)
	}
	if got := set.Lookup("v").Value.String(); got != "4" {
		t.Errorf("--klog.v=4 makes the log level %s", got)
	}
	var log strings.Builder
	warnOfIdle(funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{}), set)
	for _, flag := range idle {
		given := strings.Contains(v1, "--"+flag.name+"=") || strings.Contains(v1, "--"+flag.name+" ") || strings.HasSuffix(v1, "--"+flag.name)
		if line := `"flag"="--` + flag.name + `" "instead"="` + flag.instead + `"`; given != strings.Contains(log.String(), line) {
			t.Errorf("given: %v, and the log says:\n%s", given, log.String())
		}
	}
}

// Values that v1 takes, and its own defaults, keep no virtual kubelet from starting.
func TestWhatV1TakesIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		args     []string
		log      string
		ping     time.Duration
		duration time.Duration
	}{
		"nothing":           {nil, "", 10 * time.Second, 2 * time.Minute},
		"other times":       {[]string{"--node-ping-interval=5s", "--vk-lease-duration=30s", "--vk-lease-renew-interval=20s", "--vk-lease-retry-period=5s"}, "", 5 * time.Second, 30 * time.Second},
		"probes off":        {[]string{"--node-ping-interval=0"}, "Probes of the provider cannot be off", 10 * time.Second, 2 * time.Minute},
		"the Lease of v1":   {[]string{"--vk-lease-duration=15s", "--vk-lease-renew-interval=10s", "--vk-lease-retry-period=5s"}, "The Lease of Liqo v1 is too short", 10 * time.Second, 18 * time.Second},
		"and nothing of it": {[]string{"--vk-lease-duration=2m"}, "", 10 * time.Second, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var f Flags
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.Register(set)
			if err := set.Parse(slices.Concat(good, []string{"--vk-lease-enabled"}, tc.args)); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			f.replaceV1(funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{}))
			if err := f.validate(); err != nil || f.Provider.PingInterval != tc.ping || f.Replicas.Duration != tc.duration {
				t.Errorf("%s, %s, %v", f.Provider.PingInterval, f.Replicas.Duration, err)
			}
			if (tc.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), tc.log) {
				t.Errorf("the log says %q, want %q", log.String(), tc.log)
			}
		})
	}
}

// defaultsOfV1 are those of the flags that have an effect here.
const defaultsOfV1 = `--nodename=virtual-kubelet --tenant-namespace=default --liqo-namespace=liqo --disable-ip-reflection=false --listen-port=10250
--pod-reflection-workers=10 --service-reflection-workers=3 --endpointslice-reflection-workers=10 --ingress-reflection-workers=3
--configmap-reflection-workers=3 --secret-reflection-workers=3 --serviceaccount-reflection-workers=3 --persistentvolumeclaim-reflection-workers=3
--event-reflection-workers=3 --service-reflection-type=DenyList --ingress-reflection-type=DenyList --configmap-reflection-type=DenyList
--secret-reflection-type=DenyList --event-reflection-type=DenyList --node-lease-duration=40s --node-ping-interval=10s --node-ping-timeout=1s
--node-check-network=true --enable-apiserver-support=false --metrics-enabled=false --metrics-address=:8082 --create-node=true
--vk-lease-enabled=true --vk-lease-duration=15s --vk-lease-renew-interval=10s --vk-lease-retry-period=5s`

// A default that is not v1's stands in charts/liqo/files/compat.yaml, which the reference of values is made of, with the reason.
func TestDefaultsAreThoseOfV1(t *testing.T) {
	raw, err := os.ReadFile("../../../charts/liqo/files/compat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compat struct {
		Arguments []struct {
			Paths []string `json:"paths"`
		} `json:"arguments"`
	}
	if err := yaml.Unmarshal(raw, &compat); err != nil {
		t.Fatal(err)
	}
	var listed, differ []string
	for _, one := range compat.Arguments {
		listed = append(listed, one.Paths...)
	}
	var f Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(set)
	for _, argument := range strings.Fields(defaultsOfV1) {
		name, v1, _ := strings.Cut(argument, "=")
		here := set.Lookup(strings.TrimPrefix(name, "--")).DefValue
		if d, err := time.ParseDuration(here); err == nil {
			if same, err := time.ParseDuration(v1); err == nil && d == same {
				continue
			}
		}
		if here != v1 {
			differ = append(differ, name)
		}
	}
	slices.Sort(listed)
	slices.Sort(differ)
	if diff := cmp.Diff(listed, differ); diff != "" {
		t.Errorf("other defaults than v1's, -as listed +as they are:\n%s", diff)
	}
}
