package identity

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// badSigner has a good public key and cannot sign.
type badSigner struct{}

func (badSigner) Public() crypto.PublicKey { return edKey() }

func (badSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("no")
}

func nonce(t testing.TB) []byte {
	t.Helper()
	out, err := NewNonce(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sign(t testing.TB, key crypto.Signer, nonce []byte, consumer, provider string) []byte {
	t.Helper()
	out, err := SignNonce(key, nonce, consumer, provider)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNewNonce(t *testing.T) {
	a, b := nonce(t), nonce(t)
	if bytes.Equal(a, b) || CheckNonce(a) != nil || CheckNonce(b) != nil {
		t.Errorf("nonces %s and %s", a, b)
	}
	if _, err := NewNonce(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	for _, bad := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("!"), len(a)), append(a, '\n'), bytes.Repeat([]byte("A"), len(a))} {
		wantReason(t, CheckNonce(bad), ReasonNonce)
	}
}

func TestVerifyNonce(t *testing.T) {
	for _, kind := range []string{"Ed25519", "RSA", "ECDSA", "P-384"} {
		key, n := keys()[kind], nonce(t)
		good := sign(t, key, n, "rome", "milan")
		raw, err := key.Sign(rand.Reader, digestFor(key, n), signatureHash(key.Public()))
		if err != nil {
			t.Fatal(err)
		}
		flipped := bytes.Clone(good)
		flipped[len(flipped)/2] ^= 1
		for sentence, c := range map[string]struct {
			public             any
			nonce, sig         []byte
			consumer, provider string
			reason             Reason
		}{
			"as signed":                      {key.Public(), n, good, "rome", "milan", ""},
			"replayed against another nonce": {key.Public(), nonce(t), good, "rome", "milan", ReasonSignature},
			"replayed at another provider":   {key.Public(), n, good, "rome", "turin", ReasonSignature},
			"claimed by another consumer":    {key.Public(), n, good, "turin", "milan", ReasonSignature},
			"both IDs exchanged":             {key.Public(), n, good, "milan", "rome", ReasonSignature},
			"letters moved between the IDs":  {key.Public(), n, good, "romem", "ilan", ReasonSignature},
			"verified with another key":      {keys()["RSA"].Public(), n, sign(t, keys()["ECDSA"], n, "rome", "milan"), "rome", "milan", ReasonSignature},
			"one bit changed":                {key.Public(), n, flipped, "rome", "milan", ReasonSignature},
			"no signature":                   {key.Public(), n, nil, "rome", "milan", ReasonSignature},
			"a megabyte of signature":        {key.Public(), n, make([]byte, 1<<20), "rome", "milan", ReasonSignature},
			"a signature of the bare nonce":  {key.Public(), n, raw, "rome", "milan", ReasonSignature},
			"no nonce":                       {key.Public(), nil, good, "rome", "milan", ReasonNonce},
			"a weak key":                     {keys()["RSA-1024"].Public(), n, good, "rome", "milan", ReasonKey},
			"no key":                         {nil, n, good, "rome", "milan", ReasonKey},
			"a consumer's ID that is no ID":  {key.Public(), n, good, "ROME", "milan", ReasonClusterID},
			"a provider's ID that is no ID":  {key.Public(), n, good, "rome", "", ReasonClusterID},
		} {
			t.Run(kind+"/"+sentence, func(t *testing.T) {
				wantReason(t, VerifyNonce(c.public, c.nonce, c.sig, c.consumer, c.provider), c.reason)
			})
		}
	}
}

func digestFor(key crypto.Signer, message []byte) []byte {
	if hash := signatureHash(key.Public()); hash != 0 {
		return sum(hash, message)
	}
	return message
}

func TestSignNonceRefuses(t *testing.T) {
	_, err := SignNonce(keys()["Ed25519"], []byte("kubeconfig"), "rome", "milan")
	wantReason(t, err, ReasonNonce)
	_, err = SignNonce(keys()["RSA-1024"], nonce(t), "rome", "milan")
	wantReason(t, err, ReasonKey)
	if _, err := SignNonce(nil, nonce(t), "rome", "milan"); err == nil {
		t.Error("signed without a key")
	}
}

func TestNonceMessagesAreDistinct(t *testing.T) {
	part := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		a := [3][]byte{part.Draw(t, "a0"), part.Draw(t, "a1"), part.Draw(t, "a2")}
		b := [3][]byte{part.Draw(t, "b0"), part.Draw(t, "b1"), part.Draw(t, "b2")}
		same := bytes.Equal(a[0], b[0]) && bytes.Equal(a[1], b[1]) && bytes.Equal(a[2], b[2])
		if got := bytes.Equal(signedMessage(nonceDomain, a[0], string(a[1]), string(a[2])), signedMessage(nonceDomain, b[0], string(b[1]), string(b[2]))); got != same {
			t.Fatalf("%v and %v: equal messages %v", a, b, got)
		}
	})
}

func proof(t testing.TB, kind string) TenantProof {
	t.Helper()
	key, n := keys()[kind], nonce(t)
	public, err := EncodePublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	csr, err := NewCSR(key, TenantSubject("rome"))
	if err != nil {
		t.Fatal(err)
	}
	return TenantProof{ConsumerID: "rome", ProviderID: "milan", Nonce: n, PublicKey: public, CSR: csr, Signature: sign(t, key, n, "rome", "milan")}
}

func TestVerifyTenant(t *testing.T) {
	for sentence, c := range map[string]struct {
		kind   string
		change func(*TenantProof)
		reason Reason
	}{
		"Ed25519":                      {kind: "Ed25519"},
		"RSA":                          {kind: "RSA"},
		"ECDSA":                        {kind: "ECDSA"},
		"a raw Ed25519 key":            {change: func(p *TenantProof) { p.PublicKey = edKey() }},
		"a wrong cluster ID":           {change: func(p *TenantProof) { p.ConsumerID = "turin" }, reason: ReasonSignature},
		"an ID that is no ID":          {change: func(p *TenantProof) { p.ConsumerID = "../x" }, reason: ReasonClusterID},
		"a replay with an old nonce":   {change: func(p *TenantProof) { p.Nonce = nonce(t) }, reason: ReasonSignature},
		"no nonce made yet":            {change: func(p *TenantProof) { p.Nonce = nil }, reason: ReasonNonce},
		"no public key":                {change: func(p *TenantProof) { p.PublicKey = nil }, reason: ReasonEncoding},
		"another cluster's public key": {change: func(p *TenantProof) { p.PublicKey = make([]byte, ed25519.PublicKeySize) }, reason: ReasonSignature},
		"no CSR":                       {change: func(p *TenantProof) { p.CSR = nil }, reason: ReasonEncoding},
		"a CSR with another key":       {change: func(p *TenantProof) { p.CSR = template(t, keys()["ECDSA"], nil) }, reason: ReasonPublicKeyMismatch},
		"a CSR for the incumbent's unprefixed names": {change: func(p *TenantProof) { p.CSR, _ = NewCSR(keys()["Ed25519"], Subject{"rome", []string{"liqo.io"}}) }, reason: ReasonSubject},
		"a CSR with one more group": {change: func(p *TenantProof) {
			p.CSR, _ = NewCSR(keys()["Ed25519"], Subject{TenantUser("rome"), []string{TenantsGroup, "system:masters"}})
		}, reason: ReasonOrganizations},
	} {
		t.Run(sentence, func(t *testing.T) {
			if c.kind == "" {
				c.kind = "Ed25519"
			}
			p := proof(t, c.kind)
			if c.change != nil {
				c.change(&p)
			}
			key, err := VerifyTenant(p)
			wantReason(t, err, c.reason)
			if (c.reason == "") != SamePublicKey(key, keys()[c.kind].Public()) {
				t.Errorf("returned the key %v", key)
			}
		})
	}
}
