package peer

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
)

func TestUserIsTheCertificates(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "liqo.io:slice:a", Organization: []string{"liqo.io:consumer:rome"}}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tc := range map[string]struct {
		certificate []byte
		want        string
	}{
		"a certificate names its subject": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "liqo.io:slice:a"},
		"no certificate names nobody":     {nil, ""},
		"nor does what is none":           {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), ""},
	} {
		if got := userOf(tc.certificate); got != tc.want {
			t.Errorf("%s: %q, want %q", sentence, got, tc.want)
		}
	}
}
