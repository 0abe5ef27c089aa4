package identity

import (
	"crypto"
	"time"
)

// ClockSkew is how far the clocks of two clusters may differ before a certificate counts as expired.
const ClockSkew = 5 * time.Minute

// CheckCertificate returns nil if the first certificate in pem, as a provider answered it, is for our key and exactly our
// subject, and has not expired (within ClockSkew); else a *Refusal. From when it is valid is for the provider's API server to judge, which
// signed it and sees it: by a clock that is behind it would be refused here and accepted there. Certificates after the first are its chain.
func CheckCertificate(pem []byte, public crypto.PublicKey, subject Subject, now time.Time) error {
	chain, err := decodeCertificates(pem)
	if err != nil {
		return err
	}
	leaf := chain[0]
	if !SamePublicKey(public, leaf.PublicKey) {
		return refuse(ReasonPublicKeyMismatch, "the certificate is for another key than ours: ask for a new one")
	}
	if err := checkSubject(leaf.RawSubject, subject); err != nil {
		return err
	}
	if now.After(leaf.NotAfter.Add(ClockSkew)) {
		return refuse(ReasonValidity, "the certificate expired at %s: ask for a new one", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// RenewAt is the time from which a certificate should be renewed: when two thirds of its life have passed.
func RenewAt(notBefore, notAfter time.Time) time.Time {
	return notBefore.Add(notAfter.Sub(notBefore) / 3 * 2)
}

// NeedsRenewal tells whether the first certificate in certPEM should be renewed by now, and from when. The error is a
// *Refusal if the certificate cannot be read.
func NeedsRenewal(certPEM []byte, now time.Time) (bool, time.Time, error) {
	chain, err := decodeCertificates(certPEM)
	if err != nil {
		return false, time.Time{}, err
	}
	at := RenewAt(chain[0].NotBefore, chain[0].NotAfter)
	return !now.Before(at), at, nil
}

// CheckCA returns nil if pem is a bundle of certificates that can be parsed, and nothing else; otherwise a *Refusal with
// ReasonCA. Whether they sign others is not asked: some clusters give the API server's own certificate as its CA.
func CheckCA(pem []byte) error {
	if _, err := decodeCertificates(pem); err != nil {
		return refuse(ReasonCA, "the CA bundle is not accepted: %s", err)
	}
	return nil
}
