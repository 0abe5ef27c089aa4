package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MatchOperation says whether a packet has to be like the value or unlike it.
// +kubebuilder:validation:Enum=eq;neq
type MatchOperation string

// MatchPosition says which address or port of a packet is looked at.
// +kubebuilder:validation:Enum=src;dst
type MatchPosition string

// DevicePosition says which device of a packet is looked at.
// +kubebuilder:validation:Enum=in;out
type DevicePosition string

// MatchIP looks at an address of a packet.
type MatchIP struct {
	// value is an address, a range such as 10.0.0.0/8, or the first and the last address of one, such as 10.0.0.1-10.0.0.9.
	// +kubebuilder:validation:MaxLength=79
	// +kubebuilder:validation:Pattern=`^(((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(/(3[0-2]|[12]?[0-9])|-((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9]))?|[0-9a-f]{0,4}(:[0-9a-f]{0,4}){2,7}(/(12[0-8]|1[01][0-9]|[1-9]?[0-9])|-[0-9a-f]{0,4}(:[0-9a-f]{0,4}){2,7})?)$`
	Value string `json:"value"`
	// position of the address.
	Position MatchPosition `json:"position"`
}

// MatchPort looks at a port of a packet.
type MatchPort struct {
	// value is a port, or the first and the last of several, such as 3000-4000.
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])(-([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+-[0-9]+$') || int(self.split('-')[0]) <= int(self.split('-')[1])",message="the lower port comes first"
	Value string `json:"value"`
	// position of the port.
	Position MatchPosition `json:"position"`
}

// MatchProto looks at the protocol of a packet.
type MatchProto struct {
	// value is the protocol.
	// +kubebuilder:validation:Enum=tcp;udp
	Value string `json:"value"`
}

// MatchDev looks at a device that a packet passes.
type MatchDev struct {
	// value is the name of the device.
	Value DeviceName `json:"value"`
	// position of the device.
	Position DevicePosition `json:"position"`
}

// Match is a condition that a packet meets if it meets all parts of it.
// +kubebuilder:validation:XValidation:rule="has(self.ip) || has(self.port) || has(self.proto) || has(self.dev)",message="one of ip, port, proto and dev is required"
type Match struct {
	// op says whether the packet has to be like the values or unlike them.
	Op MatchOperation `json:"op"`
	// ip is an address of the packet.
	// +optional
	IP *MatchIP `json:"ip,omitempty"`
	// port of the packet.
	// +optional
	Port *MatchPort `json:"port,omitempty"`
	// proto is the protocol of the packet.
	// +optional
	Proto *MatchProto `json:"proto,omitempty"`
	// dev is a device that the packet passes.
	// +optional
	Dev *MatchDev `json:"dev,omitempty"`
}

// FilterAction is what is done with a packet.
// +kubebuilder:validation:Enum=ctmark;metamarkfromctmark;tcpmssclamp;accept;drop;reject;notrack
type FilterAction string

const (
	// ActionCtMark marks the packet's connection with the value.
	ActionCtMark FilterAction = "ctmark"
	// ActionSetMetaMarkFromCtMark marks the packet as its connection is marked.
	ActionSetMetaMarkFromCtMark FilterAction = "metamarkfromctmark"
	// ActionTCPMssClamp bounds the segment size that a connection begins with: to the value, or to what the route takes if that is 0.
	ActionTCPMssClamp FilterAction = "tcpmssclamp"
	// ActionAccept lets the packet pass.
	ActionAccept FilterAction = "accept"
	// ActionDrop drops the packet.
	ActionDrop FilterAction = "drop"
	// ActionReject drops the packet and tells its sender.
	ActionReject FilterAction = "reject"
	// ActionNotrack keeps the packet out of connection tracking.
	ActionNotrack FilterAction = "notrack"
)

// FilterRule does something with the packets that meet all its conditions.
// +kubebuilder:validation:XValidation:rule="self.action != 'ctmark' || has(self.value)",message="action ctmark needs a value"
// +kubebuilder:validation:XValidation:rule="self.action != 'tcpmssclamp' || self.match.exists(m, m.op == 'eq' && has(m.proto) && m.proto.value == 'tcp')",message="action tcpmssclamp needs a match of protocol tcp"
type FilterRule struct {
	// name of the rule; made from its content if left out.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name *string `json:"name,omitempty"`
	// match are the conditions; a rule without any takes all packets.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Match []Match `json:"match"`
	// action is what is done with the packets.
	Action FilterAction `json:"action"`
	// value of the action: a mark, or a segment size in bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^(0x[0-9a-fA-F]{1,8}|[0-9]{1,10})$`
	Value *string `json:"value,omitempty"`
	// counter says whether the packets are counted.
	// +kubebuilder:default=true
	// +optional
	Counter bool `json:"counter"`
}

// NatType is what a packet gets another one of.
// +kubebuilder:validation:Enum=dnat;snat;masquerade
type NatType string

const (
	// NatTypeDestination gives the packet another destination.
	NatTypeDestination NatType = "dnat"
	// NatTypeSource gives the packet another source.
	NatTypeSource NatType = "snat"
	// NatTypeMasquerade gives the packet the address of the device that it leaves by as its source.
	NatTypeMasquerade NatType = "masquerade"
)

// NatRule translates addresses of the packets that meet all its conditions.
// +kubebuilder:validation:XValidation:rule="(self.natType == 'masquerade') != has(self.to)",message="natType dnat and snat need to, and masquerade takes none"
type NatRule struct {
	// name of the rule; made from its content if left out.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name *string `json:"name,omitempty"`
	// match are the conditions; a rule without any takes all packets.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Match []Match `json:"match"`
	// natType is what is translated.
	NatType NatType `json:"natType"`
	// to is the address, or the range, that the packets get.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:Pattern=`^(((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(/(3[0-2]|[12]?[0-9]))?|[0-9a-f]{0,4}(:[0-9a-f]{0,4}){2,7}(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?)$`
	To *string `json:"to,omitempty"`
	// targetRef names the object that the rule is about.
	// +optional
	TargetRef *corev1.ObjectReference `json:"targetRef,omitempty"`
}

// RouteRule has a place in chains of type route. It has no content.
type RouteRule struct {
	// name of the rule.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name *string `json:"name,omitempty"`
}

// RulesSet are the rules of a chain, of one sort.
type RulesSet struct {
	// filterRules of a chain of type filter, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	FilterRules []FilterRule `json:"filterRules,omitempty"`
	// natRules of a chain of type nat, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	NatRules []NatRule `json:"natRules,omitempty"`
	// routeRules of a chain of type route, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	RouteRules []RouteRule `json:"routeRules,omitempty"`
}

// ChainType says what the rules of a chain do.
// +kubebuilder:validation:Enum=filter;route;nat
type ChainType string

// ChainPolicy is what becomes of packets that no rule took.
// +kubebuilder:validation:Enum=drop;accept
type ChainPolicy string

// ChainHook is where the kernel calls a chain.
// +kubebuilder:validation:Enum=prerouting;input;forward;output;postrouting;ingress
type ChainHook string

// Chain is a list of rules that the kernel calls.
// +kubebuilder:validation:XValidation:rule="self.type == 'filter' || !has(self.rules.filterRules) || size(self.rules.filterRules) == 0",message="filterRules need a chain of type filter"
// +kubebuilder:validation:XValidation:rule="self.type == 'nat' || !has(self.rules.natRules) || size(self.rules.natRules) == 0",message="natRules need a chain of type nat"
// +kubebuilder:validation:XValidation:rule="self.type == 'route' || !has(self.rules.routeRules) || size(self.rules.routeRules) == 0",message="routeRules need a chain of type route"
// +kubebuilder:validation:XValidation:rule="self.type != 'nat' || self.hook in ['prerouting','input','output','postrouting']",message="a chain of type nat has hook prerouting, input, output or postrouting"
// +kubebuilder:validation:XValidation:rule="self.type != 'route' || self.hook == 'output'",message="a chain of type route has hook output"
// +kubebuilder:validation:XValidation:rule="!has(self.rules.natRules) || self.rules.natRules.all(r, r.natType == 'dnat' ? self.hook in ['prerouting','output'] : r.natType == 'snat' ? self.hook in ['input','postrouting'] : self.hook == 'postrouting')",message="dnat needs hook prerouting or output, snat hook input or postrouting, masquerade hook postrouting"
type Chain struct {
	// name of the chain, which no other one of the table has.
	Name NftablesName `json:"name"`
	// rules of the chain.
	Rules RulesSet `json:"rules"`
	// type says what the rules do.
	Type ChainType `json:"type"`
	// policy is what becomes of packets that no rule took.
	Policy ChainPolicy `json:"policy"`
	// hook is where the kernel calls the chain.
	Hook ChainHook `json:"hook"`
	// priority among the chains of the hook: those with lower ones come first.
	// +kubebuilder:default=0
	// +optional
	Priority int32 `json:"priority"`
}

// NftablesName is the name of a table or a chain.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-a-zA-Z0-9_./]*[a-zA-Z0-9])?$`
type NftablesName string

// TableFamily says which packets pass a table.
// +kubebuilder:validation:Enum=INET;IPV4;IPV6;ARP;NETDEV;BRIDGE
type TableFamily string

// Table is a table of nftables.
// +kubebuilder:validation:XValidation:rule="!has(self.chains) || self.family in ['INET','NETDEV'] || self.chains.all(c, c.hook != 'ingress')",message="hook ingress needs family INET or NETDEV"
// +kubebuilder:validation:XValidation:rule="!has(self.chains) || self.family in ['INET','IPV4','IPV6'] || self.chains.all(c, c.type == 'filter')",message="chains of type nat and route need family INET, IPV4 or IPV6"
type Table struct {
	// name of the table. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; create another FirewallConfiguration"
	Name NftablesName `json:"name"`
	// chains of the table.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Chains []Chain `json:"chains,omitempty"`
	// family says which packets pass the table.
	Family TableFamily `json:"family"`
}

// FirewallConfigurationSpec is a table that an administrator wants.
type FirewallConfigurationSpec struct {
	// table that is wanted.
	Table Table `json:"table"`
}

// FirewallConfigurationStatus is what became of it.
type FirewallConfigurationStatus struct {
	// conditions: Applied or Error, of each host that the table is meant for.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8192
	Conditions []HostCondition `json:"conditions,omitempty"`
}

// FirewallConfiguration is a table of rules that an administrator adds to those of nodes or gateways. Labels
// networking.liqo.io/firewall-category, firewall-subcategory and firewall-unique say of which.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=fw;fwconfig;fwcfg
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FirewallConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FirewallConfigurationSpec `json:"spec"`
	// +optional
	Status FirewallConfigurationStatus `json:"status,omitempty"`
}

// FirewallConfigurationList is a list of FirewallConfigurations.
// +kubebuilder:object:root=true
type FirewallConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FirewallConfiguration `json:"items"`
}
