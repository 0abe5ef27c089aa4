package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // what must be refused has to be made first
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// keys are made once: RSA keys take long.
var keys = sync.OnceValue(func() map[string]crypto.Signer {
	made := map[string]crypto.Signer{}
	for _, algorithm := range []Algorithm{AlgorithmEd25519, AlgorithmRSA, AlgorithmECDSA} {
		pair, err := NewKeyPair(algorithm)
		if err != nil {
			panic(err)
		}
		made[string(algorithm)] = pair.Signer()
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		panic(err)
	}
	rsa1024, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	made["P-384"], made["P-521"], made["RSA-1024"] = p384, p521, rsa1024
	return made
})

func wantReason(t *testing.T, err error, want Reason) {
	t.Helper()
	got, refused := ReasonOf(err)
	if want == "" {
		if err != nil {
			t.Fatalf("refused with %s: %v", got, err)
		}
		return
	}
	if !refused || got != want {
		t.Fatalf("got reason %q (error %v), want %q", got, err, want)
	}
	if len(err.Error()) > 4096 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
}

func pemBlock(blockType string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der})
}

// template makes a CSR with the standard library.
func template(t testing.TB, key crypto.Signer, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	tmpl := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "liqo.io:tenant:rome", Organization: []string{"liqo.io:tenants"}}}
	if change != nil {
		change(tmpl)
	}
	out, err := x509.CreateCertificateRequest(rand.Reader, tmpl, key)
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock(blockRequest, out)
}

// rawCSR makes what the standard library would never make, signed correctly.
type rawCSR struct {
	version    int
	subject    []byte
	spki       []byte
	attributes [][]byte
	key        crypto.Signer
	sha1       bool
	breakSig   bool
}

func (r rawCSR) pem(t testing.TB) []byte {
	t.Helper()
	if r.key == nil {
		r.key = keys()["Ed25519"]
	}
	if r.spki == nil {
		r.spki = der(t, r.key.Public())
	}
	if r.subject == nil {
		r.subject = name(t, attr(oidCommonName, "liqo.io:tenant:rome"), attr(oidOrganization, "liqo.io:tenants"))
	}
	request := rawRequest{Version: r.version, Subject: asn1.RawValue{FullBytes: r.subject}, PublicKey: asn1.RawValue{FullBytes: r.spki}}
	for _, attribute := range r.attributes {
		request.Attributes = append(request.Attributes, asn1.RawValue{FullBytes: attribute})
	}
	tbs, err := asn1.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	algorithm := pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 3, 101, 112}}
	message, hash := tbs, crypto.Hash(0)
	if r.sha1 {
		digest := sha1.Sum(tbs) //nolint:gosec // see above
		message, hash = digest[:], crypto.SHA1
		algorithm = pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 5}, Parameters: asn1.NullRawValue}
	}
	signature, err := r.key.Sign(rand.Reader, message, hash)
	if err != nil {
		t.Fatal(err)
	}
	if r.breakSig {
		signature[7] ^= 1
	}
	out, err := asn1.Marshal(struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: tbs}, algorithm, asn1.BitString{Bytes: signature, BitLength: len(signature) * 8}})
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock(blockRequest, out)
}

func der(t testing.TB, public crypto.PublicKey) []byte {
	t.Helper()
	out, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func attr(id asn1.ObjectIdentifier, value string) rawName {
	return rawName{Type: id, Value: asn1.RawValue{Tag: asn1.TagUTF8String, Bytes: []byte(value)}}
}

func name(t testing.TB, attributes ...rawName) []byte {
	t.Helper()
	var sets []rawNameSET
	for _, attribute := range attributes {
		sets = append(sets, rawNameSET{attribute})
	}
	out, err := asn1.Marshal(sets)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// attribute makes a PKCS#10 attribute whose values are given as DER.
func attribute(t testing.TB, id asn1.ObjectIdentifier, values ...any) []byte {
	t.Helper()
	out := rawAttribute{ID: id}
	for _, value := range values {
		encoded, err := asn1.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out.Values = append(out.Values, asn1.RawValue{FullBytes: encoded})
	}
	encoded, err := asn1.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func sans(t testing.TB, names ...asn1.RawValue) pkix.Extension {
	t.Helper()
	value, err := asn1.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	return pkix.Extension{Id: oidSubjectAltName, Value: value}
}

func general(tag int, value []byte) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, Bytes: value}
}

// certificate signs a certificate with its own key.
func certificate(t testing.TB, key crypto.Signer, subject pkix.Name, from, to time.Time) []byte {
	t.Helper()
	out, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject, NotBefore: from, NotAfter: to,
	}, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "ca"}}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock(blockCertificate, out)
}

func edKey() ed25519.PublicKey { return keys()["Ed25519"].Public().(ed25519.PublicKey) }
