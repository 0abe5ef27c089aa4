package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostConditionType says whether a host has what is wanted.
// +kubebuilder:validation:Enum=Applied;Error
type HostConditionType string

const (
	// HostApplied tells whether the host has what is wanted.
	HostApplied HostConditionType = "Applied"
	// HostError tells what keeps the host from having it.
	HostError HostConditionType = "Error"
)

// HostCondition is one observation of one host. A host has one: Applied or Error.
type HostCondition struct {
	// host that observed it: a node by its name, a gateway by the namespace and the name of its ServiceAccount, with a colon in between.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// type of the condition.
	Type HostConditionType `json:"type"`
	// status of the condition.
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`
	// observedGeneration is the object's generation that this condition was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is a machine-readable word for the status.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// message says in plain words what was observed and what to do next.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// RouteScope is how far away the destination of a route is.
// +kubebuilder:validation:Enum=global;link;host;site;nowhere
type RouteScope string

// Route leads packets to a destination.
// +kubebuilder:validation:XValidation:rule="has(self.gw) || has(self.dev)",message="one of gw and dev is required"
type Route struct {
	// dst are the addresses that the route leads to.
	Dst CIDR `json:"dst"`
	// src is the address that packets of the host itself get.
	// +optional
	Src *IP `json:"src,omitempty"`
	// gw is the next hop.
	// +optional
	Gw *IP `json:"gw,omitempty"`
	// dev is the device that packets leave by.
	// +optional
	Dev *DeviceName `json:"dev,omitempty"`
	// onlink takes the next hop as a neighbour, whatever addresses the device has.
	// +optional
	Onlink *bool `json:"onlink,omitempty"`
	// scope is how far away the destination is.
	// +optional
	Scope *RouteScope `json:"scope,omitempty"`
	// targetRef names the object that the route is about.
	// +optional
	TargetRef *corev1.ObjectReference `json:"targetRef,omitempty"`
}

// Rule has the packets that meet all its conditions take its routes.
// +kubebuilder:validation:XValidation:rule="has(self.dst) || has(self.src) || has(self.iif) || has(self.oif) || has(self.fwmark)",message="one of dst, src, iif, oif and fwmark is required: a rule without any would take all packets of the host"
type Rule struct {
	// dst is the range of the packets' destinations.
	// +optional
	Dst *CIDR `json:"dst,omitempty"`
	// src is the range of the packets' sources.
	// +optional
	Src *CIDR `json:"src,omitempty"`
	// iif is the device that the packets came by.
	// +optional
	Iif *DeviceName `json:"iif,omitempty"`
	// oif is the device that packets of the host itself are bound to.
	// +optional
	Oif *DeviceName `json:"oif,omitempty"`
	// fwmark is the packets' mark.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	FwMark *int64 `json:"fwmark,omitempty"`
	// priority of the rule: those with lower ones come first.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32765
	Priority *int32 `json:"priority,omitempty"`
	// routes that the packets take, one for a destination.
	// +listType=map
	// +listMapKey=dst
	// +kubebuilder:validation:MaxItems=128
	Routes []Route `json:"routes"`
	// targetRef names the object that the rule is about.
	// +optional
	TargetRef *corev1.ObjectReference `json:"targetRef,omitempty"`
}

// RouteTable is a table of routes, and when it is looked at.
type RouteTable struct {
	// name of the table. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; create another RouteConfiguration"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
	// rules that say when the table is looked at, and what is found in it.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Rules []Rule `json:"rules"`
	// targetRef names the object that the table is about.
	// +optional
	TargetRef *corev1.ObjectReference `json:"targetRef,omitempty"`
}

// RouteConfigurationSpec is a table that an administrator wants.
type RouteConfigurationSpec struct {
	// table that is wanted.
	Table RouteTable `json:"table"`
}

// RouteConfigurationStatus is what became of it.
type RouteConfigurationStatus struct {
	// conditions: Applied or Error, of each host that the table is meant for.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8192
	Conditions []HostCondition `json:"conditions,omitempty"`
}

// RouteConfiguration is a table of routes that an administrator adds to those of nodes or gateways. Labels
// networking.liqo.io/route-category, route-subcategory and route-unique say of which.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=rcnf;rcnfg;rcfg;routecfg
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RouteConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RouteConfigurationSpec `json:"spec"`
	// +optional
	Status RouteConfigurationStatus `json:"status,omitempty"`
}

// RouteConfigurationList is a list of RouteConfigurations.
// +kubebuilder:object:root=true
type RouteConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RouteConfiguration `json:"items"`
}
