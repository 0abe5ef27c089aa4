package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NodeIdentity is who a virtual kubelet is for its own cluster.
type NodeIdentity string

const (
	// NodeIdentityNode makes it a node, by a certificate of the signer kubernetes.io/kube-apiserver-client-kubelet.
	NodeIdentityNode NodeIdentity = "node"
	// NodeIdentityServiceAccount leaves it its ServiceAccount, for control planes that do not offer that signer.
	NodeIdentityServiceAccount NodeIdentity = "serviceAccount"
)

// NodeIdentities are all that there are.
var NodeIdentities = []NodeIdentity{NodeIdentityNode, NodeIdentityServiceAccount}

func (v VirtualKubelet) validate(path *field.Path) field.ErrorList {
	if slices.Contains(NodeIdentities, v.NodeIdentity) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path.Child("nodeIdentity"), v.NodeIdentity, NodeIdentities)}
}
