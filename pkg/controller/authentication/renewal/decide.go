package renewal

import (
	"time"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	identitycontroller "liqo.io/liqo/pkg/controller/authentication/identity"
	"liqo.io/liqo/pkg/identity"
)

// Step is what a renewal does next.
type Step int

// The steps of a renewal, in their order.
const (
	// Idle: the certificate is young enough.
	Idle Step = iota
	// MakeKey: a new key is due.
	MakeKey
	// Ask: the Renew must carry a request for the next key.
	Ask
	// Await: the provider has not answered for the next key yet.
	Await
	// Swap: the answer is for the next key.
	Swap
	// Adopt: the keys were swapped, and the Identity has to follow.
	Adopt
)

// Facts are what a step is decided on.
type Facts struct {
	// Certificate in the Identity.
	Certificate []byte
	// Subject that certificates must have.
	Subject identity.Subject
	// Current and Next keys; Next is empty if no renewal runs.
	Current, Next identity.KeyPair
	// Asked is the public key in the Renew, PEM; empty without a Renew.
	Asked []byte
	// Answer is the certificate in the Renew's status.
	Answer []byte
	// Now is the present time.
	Now time.Time
}

// Decide returns the next step, and when to look again while idle.
func Decide(f Facts) (Step, time.Time) {
	if f.Next.Signer() != nil {
		if identity.CheckCertificate(f.Answer, f.Next.Public(), f.Subject, f.Now) == nil {
			return Swap, time.Time{}
		}
		if public, err := f.Next.PublicPEM(); err != nil || string(public) != string(f.Asked) {
			return Ask, time.Time{}
		}
		return Await, time.Time{}
	}
	presentErr := identity.CheckCertificate(f.Certificate, f.Current.Public(), f.Subject, f.Now)
	answerErr := identity.CheckCertificate(f.Answer, f.Current.Public(), f.Subject, f.Now)
	due, at, err := identity.NeedsRenewal(f.Certificate, f.Now)
	if answerErr == nil && string(f.Answer) != string(f.Certificate) {
		_, answerAt, answerAtErr := identity.NeedsRenewal(f.Answer, f.Now)
		// Who was away while the provider made one for the old key by itself asks with a new one all the same: the provider hears of it by that.
		if presentErr != nil || (!due && answerAtErr == nil && answerAt.After(at)) {
			return Adopt, time.Time{}
		}
	}
	if err != nil || due || presentErr != nil {
		return MakeKey, time.Time{}
	}
	return Idle, at
}

// nextCA is the CA bundle that an Identity has from now on, given the answer to its renewal: the answer's, if it is of the same endpoint and
// has a CA in common with the pinned bundle, so that a provider can change its CA by showing both for as long as a certificate lasts. Those
// of slices follow that of the control plane.
func nextCA(object *authv1beta1.Identity, answer *authv1beta1.AuthParams) []byte {
	pinned := &object.Spec.AuthParams
	if object.Spec.Type != authv1beta1.ControlPlaneIdentityType ||
		identity.SameEndpoint(identitycontroller.Endpoint(pinned), identitycontroller.Endpoint(answer)) != nil {
		return pinned.CA
	}
	return answer.CA
}

// usable tells whether an Identity takes part in renewals: certificates only, not the credentials of a cloud.
func usable(object *authv1beta1.Identity) bool {
	return object.DeletionTimestamp.IsZero() && len(object.Spec.AuthParams.SignedCRT) != 0 && object.Spec.AuthParams.AwsConfig == nil
}
