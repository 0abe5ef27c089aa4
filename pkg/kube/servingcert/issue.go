package servingcert

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"time"

	"liqo.io/liqo/pkg/identity"
)

const serialBits = 120

// Execute returns the material after the plan: what was there, and what is newly issued.
func Execute(m Material, plan Plan, names []string, now time.Time) (Material, error) {
	next := Material{AuthorityKey: m.AuthorityKey, Serving: m.Serving}
	for _, authority := range m.Authorities {
		if !slices.Contains(plan.Drop, authority.SerialNumber.String()) {
			next.Authorities = append(next.Authorities, authority)
		}
	}
	if plan.Authority {
		authority, key, err := newAuthority(now)
		if err != nil {
			return Material{}, err
		}
		next.Authorities = append([]*x509.Certificate{authority}, next.Authorities...)
		next.AuthorityKey = key.Signer()
	}
	if plan.Serving {
		serving, err := newServing(next, names, now)
		if err != nil {
			return Material{}, err
		}
		next.Serving = serving
	}
	return next, nil
}

func newAuthority(now time.Time) (*x509.Certificate, identity.KeyPair, error) {
	key, serial, err := keyAndSerial()
	if err != nil {
		return nil, identity.KeyPair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// The name differs from authority to authority, so that a verifier never takes one for the other.
		Subject:               pkix.Name{CommonName: "liqo.io webhooks " + serial.Text(16)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(AuthorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key.Signer())
	if err != nil {
		return nil, identity.KeyPair{}, fmt.Errorf("making the authority of webhook certificates: %w", err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, identity.KeyPair{}, fmt.Errorf("making the authority of webhook certificates: %w", err)
	}
	return authority, key, nil
}

func newServing(m Material, names []string, now time.Time) (*tls.Certificate, error) {
	key, serial, err := keyAndSerial()
	if err != nil {
		return nil, err
	}
	notAfter := now.Add(ServingLifetime)
	if limit := m.Authorities[0].NotAfter; notAfter.After(limit) {
		notAfter = limit
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "liqo.io webhook"},
		DNSNames:     names,
		NotBefore:    now.Add(-backdate),
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, m.Authorities[0], key.Public(), m.AuthorityKey)
	if err != nil {
		return nil, fmt.Errorf("making the webhook serving certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making the webhook serving certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key.Signer(), Leaf: leaf}, nil
}

func keyAndSerial() (identity.KeyPair, *big.Int, error) {
	key, err := identity.NewKeyPair(identity.AlgorithmECDSA)
	if err != nil {
		return identity.KeyPair{}, nil, fmt.Errorf("making a key for webhook certificates: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return identity.KeyPair{}, nil, fmt.Errorf("making a serial number: %w", err)
	}
	return key, serial, nil
}
