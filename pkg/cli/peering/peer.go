package peering

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/networking"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/identity"
)

// Commands returns the family's commands.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newPeer(s), newUnpeer(s), newForce(s), newAuthenticate(s), newUnauthenticate(s), newRevoke(s),
		newCordon(s), newUncordon(s), newDrain(s), newActivate(s), newCreate(s), newDelete(s), newGet(s)}
}

const peerLong = `Let this cluster use resources of another cluster, its provider.

The two clusters introduce themselves to each other, the provider grants resources,
and they appear in this cluster as a virtual node that pods can be scheduled onto.
Run it again after an interruption: it continues where it ended. What an earlier peering left
at the provider is taken up again; data there of namespaces that are gone here is a reason to
refuse, unless --delete-volumes is given.

Where both clusters have the network module their networks are connected next, as by
'{{ .Executable }} network connect': then pods and Services of the two reach each other. With
--networking-disabled, or without the module, that is left to you. A provider without load
balancers needs --gw-server-service-type NodePort.`

const peerExample = `  # The provider is in another kubeconfig
  {{ .Executable }} peer --remote-kubeconfig ~/.kube/milan.yaml

  # Both clusters are contexts of one kubeconfig; ask for a certain share
  {{ .Executable }} peer --context rome --remote-context milan --cpu 8 --memory 16Gi

  # The provider has no load balancers
  {{ .Executable }} peer --remote-context milan --gw-server-service-type NodePort

  # Authenticate only, besides connecting the networks
  {{ .Executable }} peer --remote-context milan --create-resource-slice=false`

// peerFlags are the flags of peer.
type peerFlags struct {
	remote                            *target.Flags
	timeout                           time.Duration
	skipValidation, withoutNetworking bool
	createSlice, createNode           bool
	volumes                           bool
	class, proxyURL, format           string
	resources                         resourceFlags
	gateway                           networking.Flags
}

func newPeer(s *session.Session) *cobra.Command {
	f := &peerFlags{remote: target.NewFlags(true)}
	command := &cobra.Command{
		Use: "peer", Short: "Use resources of another cluster", Long: peerLong, Example: peerExample, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(s, command) },
	}
	set := command.Flags()
	s.Local.AddNamespace(set)
	f.remote.AddNamespace(set)
	f.remote.AddTo(set)
	s.CompleteCluster(command, f.remote)
	s.TimeoutFlag(set, &f.timeout, peer.DefaultTimeout)
	s.OutputFlag(command, &f.format, "Write what is in place to standard output")
	set.BoolVar(&f.skipValidation, "skip-validation", false, "Peer although the versions of Liqo differ")
	set.BoolVar(&f.withoutNetworking, "networking-disabled", false, "Do not connect the networks")
	f.gateway.AddTo(s, command)
	f.gateway.AddLocation(s, command)
	set.BoolVar(&f.volumes, "delete-volumes", false, "Delete what the provider has of namespaces of an earlier peering that are gone here, with their data")
	set.BoolVar(&f.createSlice, "create-resource-slice", true, "Ask the provider for resources")
	set.StringVar(&f.class, "resource-slice-class", string(authv1beta1.DefaultResourceSliceClass), "Class of the resource slice")
	set.BoolVar(&f.createNode, "create-virtual-node", true, "Make a virtual node of the granted resources")
	f.resources.askedFor(set)
	set.StringVar(&f.proxyURL, "proxy-url", "", "Proxy through which this cluster reaches the provider's API server")
	return command
}

func (f *peerFlags) run(s *session.Session, command *cobra.Command) error {
	options, err := f.options(command.Flags())
	if err != nil {
		return err
	}
	if options.Consumer, options.Provider, err = s.Clusters(f.remote); err != nil {
		return err
	}
	options.Observer = s.Observer()
	report, err := peer.Run(command.Context(), options)
	if err != nil {
		return err
	}
	return s.Show(f.format, report, func() {
		s.Say("")
		s.Say(peered(s, report, f.remote))
	})
}

// peered says how far a peering has come, and what the next step is from there.
func peered(s *session.Session, report *peer.Report, remote *target.Flags) string {
	switch {
	case len(report.Offloaded) > 0:
		return fmt.Sprintf("%s uses resources of %s, for %s. Next: %s", report.ConsumerID, report.ProviderID,
			offloaded.Counted("namespace", report.Offloaded), s.Next("info peer "+report.ProviderID, nil))
	case report.VirtualNode != "":
		return fmt.Sprintf("%s uses resources of %s. Next: %s", report.ConsumerID, report.ProviderID, s.Next("offload namespace NAMESPACE", nil))
	case report.ResourceSlice != "":
		return fmt.Sprintf("%s was granted resources of %s. To make a virtual node of them: %s", report.ConsumerID, report.ProviderID, s.Next("peer", remote))
	default:
		return fmt.Sprintf("%s is authenticated with %s. To ask for resources: %s", report.ConsumerID, report.ProviderID, s.Next("peer", remote))
	}
}

// options reads the flags, without any cluster.
func (f *peerFlags) options(set *pflag.FlagSet) (peer.Options, error) {
	options := peer.Options{
		ProxyURL: session.Given(set, "proxy-url", f.proxyURL), NoNetwork: f.withoutNetworking, NoResourceSlice: !f.createSlice, NoVirtualNode: !f.createNode,
		SkipValidation: f.skipValidation, DeleteVolumes: f.volumes, Timeout: f.timeout,
	}
	if err := session.Positive(f.timeout); err != nil {
		return options, err
	}
	if set.Changed("resource-slice-class") {
		options.Class = f.class
	}
	var err error
	if options.Network, err = f.gateway.Settings(set); err != nil {
		return options, err
	}
	if err := checkProxy(f.proxyURL); err != nil {
		return options, err
	}
	if givenResource(set) != "" {
		if options.Resources, err = f.resources.list(); err != nil {
			return options, err
		}
	}
	if len(options.Resources) > 0 && !f.createSlice {
		return options, failure.Misuse("leave --create-resource-slice=false out", "resources cannot be asked for without a resource slice")
	}
	return options, nil
}

func checkProxy(proxy string) error {
	if proxy == "" {
		return nil
	}
	if err := identity.CheckProxyURL(proxy, nil); err != nil {
		return failure.Misuse("give it as http://HOST:PORT", "--proxy-url %s: %w", proxy, err)
	}
	return nil
}
