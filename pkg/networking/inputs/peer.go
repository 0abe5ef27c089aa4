package inputs

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// OfPeer returns the object of a kind that counts for a peer. It is in the peer's tenant namespace, and its label names the peer; its own name
// means nothing. Of several the oldest counts, so that a later one takes nothing from it. It is nil if there is none.
func OfPeer[T any, P interface {
	*T
	metav1.Object
}](all []T, peer string) P {
	var oldest P
	for i := range all {
		one := P(&all[i])
		if one.GetNamespace() != corev1beta1.TenantNamespacePrefix+peer || one.GetLabels()[corev1beta1.RemoteClusterIDLabel] != peer {
			continue
		}
		if oldest == nil || before(one, oldest) {
			oldest = one
		}
	}
	return oldest
}

// before tells whether an object is older than another one; what was made in the same second goes by its name.
func before(a, b metav1.Object) bool {
	made, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(made.Compare(other.Time), cmp.Compare(a.GetName(), b.GetName())) < 0
}
