package servingcert

import (
	"bytes"
	"crypto/x509"
	"time"

	"liqo.io/liqo/pkg/identity"
)

const (
	// AuthorityLifetime is how long an authority is valid; it is followed by a new one when two thirds have passed.
	AuthorityLifetime = 5 * 365 * 24 * time.Hour
	// ServingLifetime is how long a serving certificate is valid; it is replaced when two thirds have passed.
	ServingLifetime = 365 * 24 * time.Hour
	// Settle is how long an authority is published before it issues.
	Settle = 10 * time.Minute
	// Overlap is how long the authority before stays trusted once nothing new is issued by it.
	Overlap = 24 * time.Hour

	// backdate allows for API servers whose clock is behind.
	backdate = identity.ClockSkew
)

// Plan says what must be issued now. The zero value: nothing.
type Plan struct {
	// Authority: a new authority must be made and put before the others.
	Authority bool
	// Serving: a new serving certificate must be issued by the first authority.
	Serving bool
	// Drop are the serial numbers, in decimal, of authorities that must no longer be trusted.
	Drop []string
}

// Empty tells whether there is nothing to do.
func (p Plan) Empty() bool { return !p.Authority && !p.Serving && len(p.Drop) == 0 }

// Decide tells what must be issued, given what there is, the DNS names to serve and the time.
func Decide(m Material, names []string, now time.Time) Plan {
	var plan Plan
	for i, authority := range m.Authorities {
		if now.After(authority.NotAfter) || (i > 0 && outlived(m, now)) {
			plan.Drop = append(plan.Drop, authority.SerialNumber.String())
		}
	}
	if m.AuthorityKey == nil || !validNow(m.Authorities[0], now) {
		// Nothing can be issued. Old authorities stay trusted, for the replicas that still serve certificates of theirs.
		plan.Authority, plan.Serving = true, true
		return plan
	}
	issuer := m.Authorities[0]
	plan.Authority = !now.Before(identity.RenewAt(issuer.NotBefore, issuer.NotAfter))
	if !usable(m, names, now) {
		plan.Serving = true
		return plan
	}
	if plan.Authority || now.Before(issuer.NotBefore.Add(backdate+Settle)) {
		return plan
	}
	leaf := m.Serving.Leaf
	plan.Serving = !issuedBy(leaf, issuer) || !now.Before(identity.RenewAt(leaf.NotBefore, leaf.NotAfter))
	return plan
}

// outlived tells whether no replica can still serve a certificate of an earlier authority.
func outlived(m Material, now time.Time) bool {
	return m.Serving != nil && issuedBy(m.Serving.Leaf, m.Authorities[0]) &&
		!now.Before(m.Serving.Leaf.NotBefore.Add(backdate+Overlap))
}

// usable tells whether API servers accept the serving certificate for all names now.
func usable(m Material, names []string, now time.Time) bool {
	if m.Serving == nil {
		return false
	}
	roots := x509.NewCertPool()
	for _, authority := range m.Authorities {
		roots.AddCert(authority)
	}
	for _, name := range names {
		// A certificate that covers more names is left, so that two versions of us do not overwrite each other's in turn.
		options := x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		if _, err := m.Serving.Leaf.Verify(options); err != nil {
			return false
		}
	}
	return true
}

func issuedBy(leaf, issuer *x509.Certificate) bool {
	return bytes.Equal(leaf.RawIssuer, issuer.RawSubject) && leaf.CheckSignatureFrom(issuer) == nil
}

func validNow(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && !now.After(cert.NotAfter)
}
