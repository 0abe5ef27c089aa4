package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// ServiceTemplate is the Service that stands before an address.
type ServiceTemplate struct {
	// metadata of the Service.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec of the Service.
	// +optional
	Spec corev1.ServiceSpec `json:"spec,omitempty"`
}

// IPSpec is an address that peers are to reach.
type IPSpec struct {
	// ip is the address as this cluster knows it. It cannot be changed. Where it is that of a node, all of the node's ports are open to peers (its
	// kubelet, its node ports, SSH), but the overlay's, unless ports names some.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ip cannot be changed; create another IP"
	IP networkingv1beta1.IP `json:"ip"`
	// ports are those at which peers reach it; all, and echo requests, if left out. Errors of ICMP pass always. What it
	// asks of peers itself, where it has a way to them, is not answered then: answers go to other ports.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=64
	Ports []IPPort `json:"ports,omitempty"`
	// networkRef names the Network that the address for peers is taken from; the external range of this cluster if left out.
	// +optional
	NetworkRef *corev1.ObjectReference `json:"networkRef,omitempty"`
	// serviceTemplate has a Service made that leads to the address, with the name of this object.
	// +optional
	ServiceTemplate *ServiceTemplate `json:"serviceTemplate,omitempty"`
	// masquerade has the packets of peers come from an address of this cluster's nodes, so that they are answered without a route to the peers.
	// +optional
	Masquerade *bool `json:"masquerade,omitempty"`
}

// IPPort is a port at which an IP is reached.
type IPPort struct {
	// port is its number.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// protocol is TCP or UDP.
	// +optional
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// IPStatus is the address that was given.
type IPStatus struct {
	// ip is the address for peers, from the range cidr; peers see it in the place that this range has for them. It is taken away before
	// another one is given.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an address that was given cannot be changed, only taken away"
	IP networkingv1beta1.IP `json:"ip,omitempty"`
	// cidr is the range that the address was taken from. It goes with the address.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a range that was given cannot be changed, only taken away"
	CIDR networkingv1beta1.CIDR `json:"cidr,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// IP is an address that is no pod's and that peers are to reach. It is given one of the external range for that.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="!has(self.spec.serviceTemplate) || (size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",message="with serviceTemplate, the name has at most 63 lower-case letters, digits and dashes and begins with a letter: it names a Service"
// +kubebuilder:printcolumn:name="Local IP",type=string,JSONPath=`.spec.ip`
// +kubebuilder:printcolumn:name="Remapped IP",type=string,JSONPath=`.status.ip`
// +kubebuilder:printcolumn:name="Remapped IP CIDR",type=string,JSONPath=`.status.cidr`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
type IP struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IPSpec `json:"spec"`
	// +optional
	Status IPStatus `json:"status,omitempty"`
}

// IPList is a list of IPs.
// +kubebuilder:object:root=true
type IPList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IP `json:"items"`
}
