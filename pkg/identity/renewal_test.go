package identity

import (
	"bytes"
	"testing"
)

// Whoever copied an earlier key cannot name the next one.
func TestCheckSuccession(t *testing.T) {
	first, second, thief := keys()["Ed25519"], keys()["ECDSA"], keys()["RSA"]
	access := Access{Consumer: "rome", Peering: peeringID(t, first)}
	subject := access.TenantExpectation().Subject
	introduced, renewed := csr(t, first, subject), csr(t, second, subject)
	foreign := csr(t, first, TenantSubject("rome").InPeering(peeringID(t, second)))
	signature, err := SignRenewal(first, renewed, "rome", "milan")
	if err != nil {
		t.Fatal(err)
	}
	stolen := csr(t, thief, subject)
	by := func(name string, csr []byte, consumer, provider string) []byte {
		signature, err := SignRenewal(keys()[name], csr, consumer, provider)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	for sentence, c := range map[string]struct {
		recorded, next, signature []byte
		consumer, provider        string
		reason                    Reason
	}{
		"signed with the key of the peering":  {nil, renewed, signature, "rome", "milan", ""},
		"the same once more":                  {renewed, renewed, nil, "rome", "milan", ""},
		"the present key once more":           {renewed, csr(t, second, subject), nil, "rome", "milan", ""},
		"signed with the present key":         {renewed, stolen, by("ECDSA", stolen, "rome", "milan"), "rome", "milan", ""},
		"not signed":                          {nil, renewed, nil, "rome", "milan", ReasonSignature},
		"signed with its own key":             {renewed, stolen, by("RSA", stolen, "rome", "milan"), "rome", "milan", ReasonSignature},
		"signed with the key before":          {renewed, stolen, by("Ed25519", stolen, "rome", "milan"), "rome", "milan", ReasonSignature},
		"back to the key before":              {renewed, introduced, nil, "rome", "milan", ReasonSignature},
		"signed for another provider":         {nil, renewed, by("Ed25519", renewed, "rome", "turin"), "rome", "milan", ReasonSignature},
		"signed by another consumer":          {nil, renewed, by("Ed25519", renewed, "turin", "milan"), "rome", "milan", ReasonSignature},
		"signed for another request":          {nil, renewed, by("Ed25519", stolen, "rome", "milan"), "rome", "milan", ReasonSignature},
		"with a signature too long":           {nil, renewed, bytes.Repeat([]byte("x"), 1<<20), "rome", "milan", ReasonSignature},
		"no request":                          {nil, nil, signature, "rome", "milan", ReasonEncoding},
		"after the CSR of an earlier peering": {foreign, renewed, signature, "rome", "milan", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			present := access.PresentRequest(c.recorded, introduced)
			wantReason(t, CheckSuccession(present, c.next, c.signature, c.consumer, c.provider), c.reason)
		})
	}
}

// A nonce's signature is no signature of a renewal, and the other way round.
func TestSignaturesServeOnePurpose(t *testing.T) {
	key, n := keys()["Ed25519"], nonce(t)
	signature, err := SignRenewal(key, n, "rome", "milan")
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, VerifyNonce(key.Public(), n, signature, "rome", "milan"), ReasonSignature)
	if signed(key.Public(), signedMessage(renewalDomain, n, "rome", "milan"), sign(t, key, n, "rome", "milan")) {
		t.Error("a signed nonce serves as a signed renewal")
	}
	if _, err := SignRenewal(nil, n, "rome", "milan"); err == nil {
		t.Error("signed without a key")
	}
}
