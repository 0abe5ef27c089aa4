package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PublicKeySpec is the key of the other end of a tunnel.
type PublicKeySpec struct {
	// publicKey of the peer's gateway: the 32 bytes of a key of WireGuard.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$`
	PublicKey []byte `json:"publicKey"`
}

// PublicKey is the key by which a gateway knows the peer's. The peer is named by label liqo.io/remote-cluster-id, and the object has any name; of
// several for one peer the oldest counts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=publickeies,categories=liqo,shortName=pk;pkies;pkey
// +kubebuilder:printcolumn:name="ClusterID",type=string,JSONPath=`.metadata.labels.liqo\.io/remote-cluster-id`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PublicKey struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PublicKeySpec `json:"spec"`
}

// PublicKeyList is a list of PublicKeys.
// +kubebuilder:object:root=true
type PublicKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PublicKey `json:"items"`
}
