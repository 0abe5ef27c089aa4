package networking

import (
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/session"
)

const (
	typeFlag     = "gw-server-service-type"
	portFlag     = "gw-server-service-port"
	nodePortFlag = "gw-server-service-nodeport"
	balancerFlag = "gw-server-service-loadbalancerip"
	locationFlag = "gw-server-service-location"
	addressFlag  = "gw-client-address"
	clientFlag   = "gw-client-port"
	mtuFlag      = "mtu"
	transitFlag  = "transit"

	// provider and consumer are where the gateway server can be.
	provider = "Provider"
	consumer = "Consumer"

	// leastMTU and mostMTU bound the size of packets, as the API does.
	leastMTU = 576
	mostMTU  = 65535
)

var serviceTypes = []string{string(corev1.ServiceTypeLoadBalancer), string(corev1.ServiceTypeNodePort), string(corev1.ServiceTypeClusterIP)}

// Flags say how networks are connected.
type Flags struct {
	serviceType, balancer, address, location string
	port, nodePort, clientPort               int32
	mtu                                      int
	transit                                  bool
	// Those that only 'liqoctl network connect' has.
	serverKind, clientKind         string
	serverTemplate, clientTemplate types.NamespacedName
	noKeys                         bool
}

// AddTo registers the flags that all commands have which connect networks.
func (f *Flags) AddTo(s *session.Session, command *cobra.Command) {
	set := command.Flags()
	set.StringVar(&f.serviceType, typeFlag, string(network.DefaultServiceType), "Type of the gateway server's Service: "+strings.Join(serviceTypes, ", "))
	set.Int32Var(&f.port, portFlag, network.DefaultPort, "Port of the gateway server's Service")
	set.Int32Var(&f.nodePort, nodePortFlag, 0, "Node port of the gateway server's Service; 0 leaves it to the cluster")
	set.StringVar(&f.balancer, balancerFlag, "", "Address that the load balancer of the gateway server is asked for")
	set.StringVar(&f.address, addressFlag, "", "Address at which the client finds the server, if not the one that the server knows of, such as behind NAT")
	set.Int32Var(&f.clientPort, clientFlag, 0, "Port at which the client finds the server; 0 is the one that the server knows of")
	set.IntVar(&f.mtu, mtuFlag, 0, "Largest packet of the tunnel, in bytes; 0 is as large as the way lets it be")
	set.BoolVar(&f.transit, transitFlag, false,
		"Let each of the two clusters reach other peers of the other one that take part in transit, too; left out, it stays as it is")
	s.Complete(command, typeFlag, complete.Words(serviceTypes...))
}

// AddLocation registers the flag that says which side has the gateway server.
func (f *Flags) AddLocation(s *session.Session, command *cobra.Command) {
	command.Flags().StringVar(&f.location, locationFlag, provider,
		"Which cluster has the gateway server, that the other one has to reach: "+provider+" or "+consumer)
	s.Complete(command, locationFlag, complete.Words(provider, consumer))
}

// The values of --gw-server-type and --gw-client-type: there is one kind of each.
const (
	serverKind = "networking.liqo.io/v1beta1/wggatewayservertemplates"
	clientKind = "networking.liqo.io/v1beta1/wggatewayclienttemplates"
)

// addTemplates registers the flags that say what gateways are rendered from.
func (f *Flags) addTemplates(set *pflag.FlagSet) {
	set.StringVar(&f.serverKind, "gw-server-type", serverKind, "Kind of template of the gateway server")
	set.StringVar(&f.serverTemplate.Name, "gw-server-template-name", networkingv1beta1.ServerTemplate, "Template of the gateway server")
	set.StringVar(&f.serverTemplate.Namespace, "gw-server-template-namespace", "", "Namespace of that template; empty is where Liqo is installed")
	set.StringVar(&f.clientKind, "gw-client-type", clientKind, "Kind of template of the gateway client")
	set.StringVar(&f.clientTemplate.Name, "gw-client-template-name", networkingv1beta1.ClientTemplate, "Template of the gateway client")
	set.StringVar(&f.clientTemplate.Namespace, "gw-client-template-namespace", "", "Namespace of that template; empty is where Liqo is installed")
	set.BoolVar(&f.noKeys, "disable-sharing-keys", false, "Do not tell each gateway the public key of the other one")
}

// Settings are what the flags say. Defaults that nobody asked for do not change what is there.
func (f *Flags) Settings(set *pflag.FlagSet) (network.Settings, error) {
	if err := f.check(); err != nil {
		return network.Settings{}, err
	}
	settings := network.Settings{
		ServerHere: f.location == consumer, NodePort: session.Given(set, nodePortFlag, f.nodePort), LoadBalancerIP: session.Given(set, balancerFlag, f.balancer),
		ClientAddress: session.Given(set, addressFlag, f.address), ClientPort: session.Given(set, clientFlag, f.clientPort),
		MTU: session.Given(set, mtuFlag, int32(f.mtu)), Transit: session.Given(set, transitFlag, f.transit), NoKeys: f.noKeys, //nolint:gosec // check bounds it
	}
	if set.Changed(typeFlag) || f.balancer != "" {
		settings.ServiceType = corev1.ServiceType(f.serviceType)
	}
	if set.Changed(portFlag) {
		settings.Port = f.port
	}
	if set.Changed("gw-server-template-name") || set.Changed("gw-server-template-namespace") {
		settings.ServerTemplate = f.serverTemplate
	}
	if set.Changed("gw-client-template-name") || set.Changed("gw-client-template-namespace") {
		settings.ClientTemplate = f.clientTemplate
	}
	return settings, nil
}

// check refuses what can be told to be wrong without any cluster.
func (f *Flags) check() error {
	for _, word := range []struct {
		flag, value string
		known       []string
	}{
		{typeFlag, f.serviceType, serviceTypes}, {locationFlag, f.location, []string{provider, consumer}},
		{"gw-server-type", f.serverKind, []string{serverKind}}, {"gw-client-type", f.clientKind, []string{clientKind}},
	} {
		if err := oneOf(word.flag, word.value, word.known); err != nil {
			return err
		}
	}
	for _, number := range []struct {
		flag        string
		value       int
		least, most int
		unset       bool
	}{
		{portFlag, int(f.port), 1, mostMTU, false}, {nodePortFlag, int(f.nodePort), 1, mostMTU, true}, {clientFlag, int(f.clientPort), 1, mostMTU, true},
		{mtuFlag, f.mtu, leastMTU, mostMTU, true},
	} {
		if number.unset && number.value == 0 || number.value >= number.least && number.value <= number.most {
			continue
		}
		return failure.Misuse("give one in between", "--%s %d is not in %d to %d", number.flag, number.value, number.least, number.most)
	}
	return f.checkAddresses()
}

// checkAddresses refuses addresses that are none, and those that the type of the Service has no use for.
func (f *Flags) checkAddresses() error {
	service := corev1.ServiceType(f.serviceType)
	if _, err := netip.ParseAddr(f.balancer); f.balancer != "" && err != nil {
		return failure.Misuse("give an address such as 192.0.2.1", "--%s %s is no address", balancerFlag, f.balancer)
	}
	if f.balancer != "" && service != corev1.ServiceTypeLoadBalancer {
		return failure.Misuse("leave it out", "--%s has no meaning with the type %s", balancerFlag, service)
	}
	if f.nodePort != 0 && service == corev1.ServiceTypeClusterIP {
		return failure.Misuse("leave it out", "--%s has no meaning with the type %s", nodePortFlag, service)
	}
	if _, err := netip.ParseAddr(f.address); f.address != "" && err != nil {
		if problems := validation.IsDNS1123Subdomain(strings.ToLower(f.address)); len(problems) > 0 {
			return failure.Misuse("give an address such as 192.0.2.1, or a DNS name", "--%s %s is neither", addressFlag, f.address)
		}
	}
	return nil
}

// oneOf refuses a word that is not known; empty means that the command has no such flag.
func oneOf(flag, value string, known []string) error {
	if value == "" {
		return nil
	}
	for _, word := range known {
		if value == word {
			return nil
		}
	}
	return failure.Misuse("choose one of "+strings.Join(known, ", "), "--%s %s is unknown", flag, value)
}
