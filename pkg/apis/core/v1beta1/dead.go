package v1beta1

import (
	"cmp"
	"fmt"
	"slices"
)

// IsMarkedDead tells whether an administrator said that the peer will not come back. The mark goes when the peer answers again and lets
// us work, and with 'liqoctl peer'. A nil ForeignCluster is not marked.
func (fc *ForeignCluster) IsMarkedDead() bool {
	return fc != nil && fc.Annotations[PermanentlyUnreachableAnnotation] == "true"
}

// IsCutOff tells whether an administrator took the provider's reach into this cluster away: it is not talked to any more. A nil
// ForeignCluster is not cut off.
func (fc *ForeignCluster) IsCutOff() bool {
	return fc != nil && fc.Annotations[CutOffAnnotation] == "true"
}

// WhyCutOff says that the peer's reach into this cluster was revoked, by whom and when, and how that is taken back. It is empty if it was
// not, and for a nil ForeignCluster.
func (fc *ForeignCluster) WhyCutOff() string {
	if fc == nil {
		return ""
	}
	for _, c := range fc.Status.All() {
		if c.Type == CutOffCondition {
			return c.Message
		}
	}
	return fc.Revoked("", false)
}

// Revoked is what the condition CutOff says: of a peer that is marked so, or of a consumer whose certificates have no rights any more. It is
// empty if neither is the case. home is the cluster that revoked it, named because peers and administrators of both read this; empty if not known.
func (fc *ForeignCluster) Revoked(home ClusterID, consumer bool) string {
	peer, in := cmp.Or(fc.Spec.ClusterID, ClusterID(fc.Name)), ""
	if home != "" {
		in = " in " + string(home)
	}
	what := " and is not talked to"
	back := fmt.Sprintf("'liqoctl peer', or for the network alone with 'kubectl annotate foreigncluster %s %s-'%s", fc.Name, CutOffAnnotation, in)
	switch {
	case fc.IsCutOff():
	case consumer:
		what, back = ": its certificates have no rights"+in, fmt.Sprintf("'liqoctl peer' in %s, which gives it a new key", peer)
	default:
		return ""
	}
	by := ""
	if who := fc.Annotations[CutOffByAnnotation]; who != "" {
		by = " by " + who
	}
	return fmt.Sprintf("%s was revoked%s%s%s; this is taken back with %s", peer, in, by, what, back)
}

// IsDead tells whether a peer is given up: an administrator cut it off, or said that it will not come back, and it does not answer, or has
// taken our rights back. A peer that answers and lets us work is never dead by the latter. A nil ForeignCluster is not dead.
func (fc *ForeignCluster) IsDead() bool { return fc.IsCutOff() || fc.IsMarkedDead() && !fc.answers() }

// WhyLost says why nothing can be done at a provider: it was asked and does not answer, or it has taken our rights back. It is empty if
// the provider lets us work, if it was not asked yet, and for a nil ForeignCluster.
func (fc *ForeignCluster) WhyLost() string {
	if fc == nil || fc.answers() {
		return ""
	}
	for _, c := range slices.Concat(fc.Status.Modules.Authentication.Conditions, fc.Status.Conditions) {
		if c.Type == AuthIdentityControlPlaneStatus && c.Reason == ReasonRightsRevoked || c.Type == APIServerStatus && c.Status == StatusError {
			return c.Message
		}
	}
	return ""
}

// answers tells whether the peer was seen to answer and to let us work.
func (fc *ForeignCluster) answers() bool {
	return !fc.IsRevoked() && slices.ContainsFunc(fc.Status.Conditions, func(c Condition) bool {
		return c.Type == APIServerStatus && c.Status == StatusEstablished
	})
}

// IsRevoked tells whether the provider was seen to have taken back our rights. It answers then; what runs there and
// how it ends is not to be learned any more. A nil ForeignCluster is not revoked.
func (fc *ForeignCluster) IsRevoked() bool {
	if fc == nil {
		return false
	}
	for _, c := range fc.Status.Modules.Authentication.Conditions {
		if c.Type == AuthIdentityControlPlaneStatus && c.Status == StatusError && c.Reason == ReasonRightsRevoked {
			return true
		}
	}
	return false
}
