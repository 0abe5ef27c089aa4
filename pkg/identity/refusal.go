package identity

import (
	"errors"
	"fmt"
	"strconv"
)

// Reason says in one stable word why something was refused. Its values are part of the API: they appear in conditions, Events
// and metrics.
type Reason string

// The reasons, each with when it is given.
const (
	// ReasonClusterID is given when a cluster ID cannot name a cluster.
	ReasonClusterID Reason = "InvalidClusterID"
	// ReasonEncoding is given when bytes are too long, or are not the one PEM block, DER structure or text that they should be.
	ReasonEncoding Reason = "InvalidEncoding"
	// ReasonKey is given when a key has a type or size that is not on the list.
	ReasonKey Reason = "KeyNotAllowed"
	// ReasonSignature is given when a signature is wrong or uses an algorithm that is not on the list.
	ReasonSignature Reason = "InvalidSignature"
	// ReasonSubject is given when the common name differs, or the subject holds anything beside common name and organizations.
	ReasonSubject Reason = "UnexpectedSubject"
	// ReasonOrganizations is given when the organizations (groups) differ as a set, or one is repeated.
	ReasonOrganizations Reason = "UnexpectedOrganizations"
	// ReasonSANs is given when the subject alternative names are not exactly the expected addresses.
	ReasonSANs Reason = "UnexpectedSANs"
	// ReasonExtensions is given when any extension or attribute other than an expected one is asked for.
	ReasonExtensions Reason = "UnexpectedExtensions"
	// ReasonUsages is given when the usages differ as a set, or one is repeated.
	ReasonUsages Reason = "UnexpectedUsages"
	// ReasonSigner is given when a request names another signer.
	ReasonSigner Reason = "UnexpectedSigner"
	// ReasonRequester is given when a request was made by another user.
	ReasonRequester Reason = "UnexpectedRequester"
	// ReasonLifetime is given when a request asks for a certificate that lives longer than allowed.
	ReasonLifetime Reason = "UnexpectedLifetime"
	// ReasonNonce is given when a nonce is not one that NewNonce makes.
	ReasonNonce Reason = "InvalidNonce"
	// ReasonPublicKeyMismatch is given when a CSR or certificate is for another key than the expected one.
	ReasonPublicKeyMismatch Reason = "PublicKeyMismatch"
	// ReasonValidity is given when a certificate is not valid at the present time.
	ReasonValidity Reason = "CertificateNotValidNow"
	// ReasonCA is given when a CA bundle is not a list of certificates.
	ReasonCA Reason = "InvalidCA"
	// ReasonEndpoint is given when the URL of an API server or proxy is malformed or points where a peer must not send us.
	ReasonEndpoint Reason = "EndpointNotAllowed"
	// ReasonEndpointChanged is given when an endpoint differs from the one pinned at peering.
	ReasonEndpointChanged Reason = "EndpointChanged"
)

// Refusal is the error of input that was understood and is not accepted. Find it with errors.As or ReasonOf.
type Refusal struct {
	// Reason is stable, for machines.
	Reason Reason
	// Message is one sentence for people, of bounded length; it may quote the peer.
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// ReasonOf returns the reason of the first Refusal in the chain of err, and false if there is none.
func ReasonOf(err error) (Reason, bool) {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason, true
	}
	return "", false
}

func refuse(reason Reason, format string, args ...any) error {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// quote makes text of a peer fit for a message: printable and bounded.
func quote(s string) string {
	const limit = 80
	if len(s) > limit {
		return strconv.QuoteToASCII(s[:limit]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
