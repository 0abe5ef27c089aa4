package v1beta1

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterConfigCIDR are the ranges of one cluster.
// +kubebuilder:validation:XValidation:rule="(has(self.pod) ? size(self.pod) : 0) + (has(self.external) ? size(self.external) : 0) <= 32",message="a cluster has at most 32 ranges"
type ClusterConfigCIDR struct {
	// pod are the ranges of the cluster's pods, each once. Their order matters: a range and what it is remapped to have the same place.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, self.exists_one(other, other == c))",message="a range is listed once"
	Pod []CIDR `json:"pod,omitempty"`
	// external are the ranges in which the cluster gives addresses to what is no pod, each once; the first is its own, further ones are those
	// of clusters that are reached through it, which spec.transit of the Configuration keeps.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, self.exists_one(other, other == c))",message="a range is listed once"
	External []CIDR `json:"external,omitempty"`
}

// Prefixes returns all ranges, those of pods first. Two values that list their ranges in the same order, as spec.remote and status.remote of
// a Configuration do, return them in the same places. The error names the first range that cannot be read.
func (c ClusterConfigCIDR) Prefixes() ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(c.Pod)+len(c.External))
	for _, ranges := range [][]CIDR{c.Pod, c.External} {
		for _, text := range ranges {
			prefix, err := text.Prefix()
			if err != nil {
				return nil, err
			}
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes, nil
}

// ClusterConfig is what is known of the network of one cluster.
type ClusterConfig struct {
	// cidr are the cluster's ranges, as the cluster itself knows them.
	// +optional
	CIDR ClusterConfigCIDR `json:"cidr,omitempty"`
}

// ConfigurationSpec are the ranges of two clusters, each as the cluster itself knows them.
type ConfigurationSpec struct {
	// local are the ranges of this cluster; filled in by it if left out.
	// +optional
	Local *ClusterConfig `json:"local,omitempty"`
	// remote are the ranges that the peer announces. What it may announce is judged by the controller, which says so in condition Ready.
	// +kubebuilder:validation:XValidation:rule="has(self.cidr) && has(self.cidr.pod) && size(self.cidr.pod) > 0",message="cidr.pod must name at least one range of the peer's pods"
	Remote ClusterConfig `json:"remote"`
	// transit has clusters reached through each other. This cluster announces to the peer how it sees its other peers whose Configurations have
	// transit, too, as further ranges of local.cidr.external, and carries packets between them. What the peer announces in the same way,
	// through the tunnel, becomes further ranges of remote.cidr.external. It is one hop: what is announced is passed on to nobody. False
	// by default: neither has further ranges.
	// +optional
	Transit bool `json:"transit,omitempty"`
}

// ConfigurationStatus is how this cluster sees the peer.
type ConfigurationStatus struct {
	// remote are the ranges under which this cluster reaches the peer: each has the place and the length of its counterpart in announced.
	// +optional
	Remote *ClusterConfig `json:"remote,omitempty"`
	// announced are the ranges of the peer that remote has counterparts of: those of spec.remote or, as long as not each of these has a place, the
	// last ones that had.
	// +optional
	Announced *ClusterConfig `json:"announced,omitempty"`
	// isolation is which pods of this cluster the peer reaches, as networking.isolation says: open for all, offloaded for sharedPods alone. Until it
	// is told, the peer reaches none.
	// +optional
	// +kubebuilder:validation:Enum=open;offloaded
	Isolation string `json:"isolation,omitempty"`
	// sharedPods are the addresses of this cluster's pods in namespaces that are shared with the peer: offloaded to it, or twins of its own. They are
	// told where isolation is offloaded.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=65536
	SharedPods []PodIP `json:"sharedPods,omitempty"`
	// conditions: NetworkCIDRsConfigured and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Configuration tells this cluster which ranges a peer has, and holds those under which this cluster sees them. The peer is named by label
// liqo.io/remote-cluster-id, and the object has any name; of several for one peer the oldest counts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=conf
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Desired Pod CIDR",type=string,JSONPath=`.spec.remote.cidr.pod`
// +kubebuilder:printcolumn:name="Remapped Pod CIDR",type=string,JSONPath=`.status.remote.cidr.pod`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Desired External CIDR",type=string,priority=1,JSONPath=`.spec.remote.cidr.external`
// +kubebuilder:printcolumn:name="Remapped External CIDR",type=string,priority=1,JSONPath=`.status.remote.cidr.external`
// +kubebuilder:printcolumn:name="ClusterID",type=string,priority=1,JSONPath=`.metadata.labels.liqo\.io/remote-cluster-id`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ConfigurationSpec `json:"spec"`
	// +optional
	Status ConfigurationStatus `json:"status,omitempty"`
}

// ConfigurationList is a list of Configurations.
// +kubebuilder:object:root=true
type ConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Configuration `json:"items"`
}
