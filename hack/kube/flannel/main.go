// Command flannel is the pod network of a lab's cluster that encapsulates: flanneld with only the VXLAN backend, since
// the program as released needs a cloud provider's library that is not to be had everywhere.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
)

// resync is after how many seconds rules that somebody else deleted are there again.
const resync = 5

// options are the flags.
type options struct{ node, kubeconfig, config, device string }

func main() {
	var o options
	flag.StringVar(&o.node, "node", "", "the Node that this is")
	flag.StringVar(&o.kubeconfig, "kubeconfig-file", "", "how the API server is reached")
	flag.StringVar(&o.config, "net-config-path", "", "the file with the network's configuration")
	flag.StringVar(&o.device, "iface", "", "the device that leads to other nodes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does what the released program does with --kube-subnet-mgr and --ip-masq, in the same order.
func run(ctx context.Context, o options) error {
	if err := os.Setenv("NODE_NAME", o.node); err != nil {
		return fmt.Errorf("naming the node: %w", err)
	}
	manager, err := kube.NewSubnetManager(ctx, "", o.kubeconfig, "flannel.alpha.coreos.com", o.config, true)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("reading the network's configuration: %w", err)
	}
	family, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return fmt.Errorf("reading the network's configuration: %w", err)
	}
	device, err := ipmatch.LookupExtIface(o.device, "", "", family, ipmatch.PublicIPOpts{})
	if err != nil {
		return fmt.Errorf("finding the device %s: %w", o.device, err)
	}
	encapsulation, err := backend.NewManager(ctx, manager, device).GetBackend(config.BackendType)
	if err != nil {
		return fmt.Errorf("finding the backend: %w", err)
	}
	var running sync.WaitGroup
	network, err := encapsulation.RegisterNetwork(ctx, &running, config)
	if err != nil {
		return fmt.Errorf("joining the network: %w", err)
	}
	rules := &iptables.IPTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("preparing the firewall: %w", err)
	}
	none4, none6 := ip.IP4Net{}, ip.IP6Net{} // nothing of an earlier configuration: a lab's does not change
	err = rules.SetupAndEnsureMasqRules(ctx, config.Network, none4, none4, config.IPv6Network, none6, none6, network.Lease(), resync, false)
	if err != nil {
		return fmt.Errorf("masquerading: %w", err)
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resync)
	running.Go(func() { network.Run(ctx) })
	if err := manager.CompleteLease(ctx, network.Lease(), &running); err != nil {
		return fmt.Errorf("keeping the node's share of the network: %w", err)
	}
	running.Wait()
	return nil
}
