package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

const (
	// UserPrefix starts the name of every user and group that stands for a peer, so that a name chosen by a peer can never
	// equal one that the cluster already uses.
	UserPrefix = "liqo.io:"
	// TenantsGroup is the group of all peers that hold a control plane identity.
	TenantsGroup = UserPrefix + "tenants"
	// NodesGroup is the group in which Kubernetes' Node authorizer looks for nodes.
	NodesGroup = "system:nodes"
	// MaxClusterIDLength is the longest cluster ID, in bytes: with the prefix of tenant namespaces before it, it must still
	// be a namespace name.
	MaxClusterIDLength = maxLabelLength - len(corev1beta1.TenantNamespacePrefix)

	tenantPrefix   = UserPrefix + "tenant:"
	slicePrefix    = UserPrefix + "slice:"
	consumerPrefix = UserPrefix + "consumer:"
	nodePrefix     = "system:node:"

	maxLabelLength = 63
	maxUserLength  = 253
	consumerDigest = 6
	sliceDigest    = 16
)

var labelPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// TenantUser is the user name under which a consumer cluster acts on a provider with its control plane identity.
func TenantUser(consumerID string) string { return tenantPrefix + consumerID }

// ConsumerGroup is the group of all the users of one consumer cluster's resource slices.
func ConsumerGroup(consumerID string) string { return consumerPrefix + consumerID }

// SliceUser is the user name of the virtual kubelet that was made from a ResourceSlice. The consumer's ID enters as a digest
// of fixed length, so no slice name can imitate another consumer's. The result has at most 253 bytes: of a longer slice name
// the end is replaced with its digest, after a character that no slice name contains.
func SliceUser(consumerID, slice string) string {
	suffix := "-" + digest(consumerID, consumerDigest)
	if room := maxUserLength - len(slicePrefix) - len(suffix); len(slice) > room {
		tail := "~" + digest(slice, sliceDigest)
		slice = slice[:room-len(tail)] + tail
	}
	return slicePrefix + slice + suffix
}

// NodeUser is the user name of a node of the local cluster.
func NodeUser(node string) string { return nodePrefix + node }

// ValidateClusterID returns nil if id can name a cluster, else a *Refusal with ReasonClusterID that tells how to choose one.
func ValidateClusterID(id string) error {
	switch {
	case id == "":
		return refuse(ReasonClusterID, "the cluster ID is empty: give one of 1 to %d lower-case letters, digits and '-'", MaxClusterIDLength)
	case len(id) > MaxClusterIDLength:
		return refuse(ReasonClusterID, "the cluster ID %s has %d characters: choose one of at most %d, so that the namespace %q followed by it is a valid name",
			quote(id), len(id), MaxClusterIDLength, corev1beta1.TenantNamespacePrefix)
	case !labelPattern.MatchString(id):
		return refuse(ReasonClusterID, "the cluster ID %s is not valid: use lower-case letters, digits and '-', "+
			"and begin and end with a letter or digit, for example \"rome-1\"", quote(id))
	}
	return nil
}

func digest(s string, bytes int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:bytes])
}
