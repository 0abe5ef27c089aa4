package main

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	chartflags "liqo.io/liqo/test/flags"
)

func TestTheChartKnowsTheFlags(t *testing.T) {
	chartflags.Fresh(t, "virtual-kubelet", newCommand().LocalFlags())
}

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
	command := newCommand()
	if err := command.ParseFlags(strings.Fields(v1)); err != nil {
		t.Fatal(err)
	}
	if got := command.Flags().Lookup("v").Value.String(); got != "4" {
		t.Errorf("--klog.v=4 makes the log level %s", got)
	}
	var log strings.Builder
	warnOfIdle(funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{}), command.Flags())
	for _, flag := range idle {
		given := strings.Contains(v1, "--"+flag.name+"=") || strings.Contains(v1, "--"+flag.name+" ") || strings.HasSuffix(v1, "--"+flag.name)
		if line := `"flag"="--` + flag.name + `" "instead"="` + flag.instead + `"`; given != strings.Contains(log.String(), line) {
			t.Errorf("given: %v, and the log says:\n%s", given, log.String())
		}
	}
}
