package v1beta1

// IsDead tells whether a peer is given up: an administrator said that it will not come back, and its API server does not
// answer. A peer whose API server answers is never dead, whatever the annotation says. A nil ForeignCluster is not dead.
func (fc *ForeignCluster) IsDead() bool {
	if fc == nil || fc.Annotations[PermanentlyUnreachableAnnotation] != "true" {
		return false
	}
	for _, c := range fc.Status.Conditions {
		if c.Type == APIServerStatus && c.Status == StatusEstablished {
			return false
		}
	}
	return true
}

// IsRevoked tells whether the provider was seen to have taken back our rights. It answers then, so it is not dead; what runs there and
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
