package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "networking.liqo.io", Version: "v1beta1"}

// AddToScheme registers this package's kinds with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Configuration{}, &ConfigurationList{},
		&Connection{}, &ConnectionList{},
		&FirewallConfiguration{}, &FirewallConfigurationList{},
		&GatewayClient{}, &GatewayClientList{},
		&GatewayServer{}, &GatewayServerList{},
		&GeneveTunnel{}, &GeneveTunnelList{},
		&InternalFabric{}, &InternalFabricList{},
		&InternalNode{}, &InternalNodeList{},
		&PublicKey{}, &PublicKeyList{},
		&RouteConfiguration{}, &RouteConfigurationList{},
		&WgGatewayClient{}, &WgGatewayClientList{},
		&WgGatewayClientTemplate{}, &WgGatewayClientTemplateList{},
		&WgGatewayServer{}, &WgGatewayServerList{},
		&WgGatewayServerTemplate{}, &WgGatewayServerTemplateList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
