package certificate

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// Soon is when to come back to a certificate that is being replaced.
const Soon = pollInterval

// Covered tells whether an error of Issue may be passed over for now: a certificate is being replaced, and the present one
// still serves the same request.
func Covered(err error, present, csr []byte, subject identity.Subject, now time.Time) bool {
	if err == nil || reconcile.ReasonOf(err) != authv1beta1.ReasonCertificatePending {
		return false
	}
	public, keyErr := identity.RequestKey(csr)
	return keyErr == nil && identity.CheckCertificate(present, public, subject, now) == nil
}

// needsRenewal tells whether a certificate is due by now, and from when.
func needsRenewal(issued []byte, late bool, now time.Time) (bool, time.Time, error) {
	due, at, err := identity.NeedsRenewal(issued, now)
	if err != nil || !late {
		return due, at, err
	}
	leaf, err := parse(issued)
	if err != nil {
		return false, time.Time{}, err
	}
	at = leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 10 * 9)
	return !now.Before(at), at, nil
}

type state int

const (
	stateNew state = iota
	statePending
	stateLate
	stateFailed
	stateIssued
)

// stateOf tells how far a request is.
func stateOf(csr *certificatesv1.CertificateSigningRequest, now time.Time) state {
	approved := false
	for _, condition := range csr.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return stateFailed
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	switch {
	case !approved:
		return stateNew
	case len(csr.Status.Certificate) != 0:
		return stateIssued
	case !csr.CreationTimestamp.IsZero() && now.Sub(csr.CreationTimestamp.Time) > patience:
		return stateLate
	}
	return statePending
}
