package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/fabric/gateway"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/pkg/networking/inputs"
	"liqo.io/liqo/pkg/version"
)

const component = "liqo-gateway"

// keyEvery is how often the gateway's key is looked at.
const keyEvery = time.Minute

var errKeyChanged = errors.New("the gateway has another key, which is taken at the next start")

// Ends of a tunnel.
const (
	modeServer = "server"
	modeClient = "client"
)

// flags are where the process runs.
type flags struct {
	kubeconfig  string
	name        string
	namespace   string
	liqo        string
	peer        string
	mode        string
	keys        string
	overlayPort int
	listenPort  int
	healthPort  int
	metrics     agent.MetricsPort
}

func (f *flags) register(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty means the pod's ServiceAccount")
	set.StringVar(&f.name, "name", "", "name of the GatewayServer or GatewayClient")
	set.StringVar(&f.namespace, "namespace", "", "namespace of the GatewayServer or GatewayClient")
	set.StringVar(&f.peer, "remote-cluster-id", "", "ID of the peer")
	set.StringVar(&f.liqo, "liqo-namespace", "",
		"namespace of Liqo, where FirewallConfigurations and RouteConfigurations for all gateways are; empty follows none")
	set.StringVar(&f.mode, "mode", "", "which end of the tunnel this is: server or client")
	set.String("isolation", "", "")
	if err := set.MarkDeprecated("isolation", "status.isolation of the peer's Configuration says it"); err != nil {
		panic(err) // the flag was defined just above
	}
	set.StringVar(&f.keys, "keys", "/etc/liqo/keys", "folder with the gateway's own key, in the file privateKey")
	set.IntVar(&f.overlayPort, "overlay-port", dataplane.DefaultOverlayPort, "UDP port of the overlay between nodes and gateways")
	set.IntVar(&f.listenPort, "listen-port", 51840, "UDP port that a server listens at; a client takes any")
	set.IntVar(&f.healthPort, "health-port", 8081, "port, on the loopback address, that tells probes how the agent is")
	f.metrics.Register(set)
}

// pod is what the gateway knows of itself, but for its key.
func (f *flags) pod() (inputs.GatewayPod, error) {
	pod := inputs.GatewayPod{Node: os.Getenv("NODE_NAME"), Server: f.mode == modeServer}
	for name, value := range map[string]string{"name": f.name, "namespace": f.namespace, "remote-cluster-id": f.peer} {
		if value == "" {
			return pod, fmt.Errorf("--%s must be given", name)
		}
	}
	if f.mode != modeServer && f.mode != modeClient {
		return pod, errors.New("--mode must be server or client")
	}
	for name, port := range map[string]struct {
		from int
		to   *uint16
	}{"overlay-port": {f.overlayPort, &pod.Port}, "listen-port": {f.listenPort, &pod.ListenPort}} {
		if port.from < 1 || port.from > math.MaxUint16 {
			return pod, fmt.Errorf("--%s must be a port, from 1 to 65535", name)
		}
		*port.to = uint16(port.from)
	}
	if !pod.Server {
		pod.ListenPort = 0
	}
	for name, into := range map[string]*netip.Addr{"POD_IP": &pod.Address, "HOST_IP": &pod.Host} {
		address, err := netip.ParseAddr(os.Getenv(name))
		if err != nil {
			return pod, fmt.Errorf("the environment variable %s must hold an address: %w", name, err)
		}
		*into = address.Unmap()
	}
	return pod, nil
}

// readKey reads the gateway's own key.
func (f *flags) readKey() (key netlink.PrivateKey, err error) {
	raw, err := os.ReadFile(filepath.Join(f.keys, "privateKey"))
	if err != nil {
		return key, fmt.Errorf("reading the gateway's key: %w", err)
	}
	if len(raw) != len(key) {
		return key, fmt.Errorf("the gateway's key has %d bytes, not %d", len(raw), len(key))
	}
	return netlink.PrivateKey(raw), nil
}

func newCommand() *cobra.Command {
	var f flags
	command := agent.Command(component, "Have the tunnel to one peer carry packets", func(cmd *cobra.Command) error {
		return f.run(cmd.Context())
	})
	f.register(command.PersistentFlags())
	command.AddCommand(agent.Questions(&f.healthPort)...)
	return command
}

// run runs the agent until the context ends.
func (f *flags) run(ctx context.Context) error {
	pod, err := f.pod()
	if err != nil {
		return err
	}
	key, err := f.readKey()
	if err != nil {
		return err
	}
	pod.Key = key.Public()
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	config.UserAgent = component + "/" + version.Version
	cluster, err := agent.Connect(config)
	if err != nil {
		return err
	}
	kernel, err := netlink.Open("", key)
	if err != nil {
		return err
	}
	a := gateway.New(gateway.Options{
		Cluster: cluster, Kernel: kernel, Health: &agent.Health{Repair: signal.New()}, Namespace: f.namespace, Name: f.name, Peer: f.peer, Pod: pod,
		Liqo: f.liqo,
		Work: agent.NewMetrics(kernel), Tunnel: gateway.NewMetrics(kernel, f.peer),
	})
	work := func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return f.watchKey(ctx, key) })
		group.Go(func() error { return f.metrics.Serve(ctx, config, a.Work, a.Tunnel) })
		group.Go(func() error { return a.Run(ctx) })
		return group.Wait()
	}
	return errors.Join(agent.Run(ctx, work, a.Health, f.healthPort, kernel), kernel.Close())
}

// watchKey fails when the gateway has another key: who starts again takes it. A key that cannot be read is no other one.
func (f *flags) watchKey(ctx context.Context, key netlink.PrivateKey) error {
	ticker := time.NewTicker(keyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if now, err := f.readKey(); err == nil && now != key {
			return errKeyChanged
		}
	}
}
