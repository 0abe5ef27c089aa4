package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func TestKeyPairsSurviveASecret(t *testing.T) {
	for _, algorithm := range []Algorithm{AlgorithmEd25519, AlgorithmRSA, AlgorithmECDSA} {
		t.Run(string(algorithm), func(t *testing.T) {
			pair := KeyPair{signer: keys()[string(algorithm)]}
			data, err := pair.Data()
			if err != nil {
				t.Fatal(err)
			}
			again, err := KeyPairFromData(data)
			if err != nil {
				t.Fatal(err)
			}
			if !SamePublicKey(pair.Public(), again.Public()) {
				t.Error("another key came back")
			}
			secret := strings.Split(string(data[PrivateKeyField]), "\n")[1]
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
				if text := fmt.Sprintf(verb, again); strings.Contains(text, secret) || len(text) > 100 {
					t.Errorf("%s prints %s", verb, text)
				}
			}
			if text := fmt.Sprint(again.MarshalLog()); len(text) > 100 {
				t.Errorf("logged as %s", text)
			}
		})
	}
}

func TestKeyPairsThatAreRefused(t *testing.T) {
	private := func(name string) []byte {
		pair := KeyPair{signer: keys()[name]}
		out, err := pair.PrivatePEM()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	public := func(name string) []byte {
		out, err := EncodePublicKey(keys()[name].Public())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	x25519 := pemBlock(blockPrivateKey, append([]byte{0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20}, make([]byte, 32)...))
	for sentence, c := range map[string]struct {
		private, public []byte
		reason          Reason
	}{
		"a weak RSA key":                     {private("RSA-1024"), public("RSA-1024"), ReasonKey},
		"a curve that is not allowed":        {private("P-521"), public("P-521"), ReasonKey},
		"a weak public key":                  {private("RSA"), public("RSA-1024"), ReasonKey},
		"a key that cannot sign":             {x25519, public("RSA"), ReasonKey},
		"halves of two pairs":                {private("ECDSA"), public("Ed25519"), ReasonPublicKeyMismatch},
		"no private key":                     {nil, public("Ed25519"), ReasonEncoding},
		"no public key":                      {private("Ed25519"), nil, ReasonEncoding},
		"a private key that is not PKCS#8":   {pemBlock(blockPrivateKey, []byte{1}), public("Ed25519"), ReasonEncoding},
		"a public key that is not PKIX":      {private("Ed25519"), pemBlock(blockPublicKey, []byte{1}), ReasonEncoding},
		"a private key where a public is":    {private("Ed25519"), private("Ed25519"), ReasonEncoding},
		"a private key of more than 64 KiB":  {make([]byte, MaxInput+1), public("Ed25519"), ReasonEncoding},
		"an Ed25519 key of 33 bytes, no PEM": {private("Ed25519"), make([]byte, 33), ReasonEncoding},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := KeyPairFromData(map[string][]byte{PrivateKeyField: c.private, PublicKeyField: c.public})
			wantReason(t, err, c.reason)
		})
	}
	if _, err := NewKeyPair("DSA"); err == nil {
		t.Error("a DSA key was made")
	}
	if _, err := (KeyPair{}).Data(); err == nil || (KeyPair{}).Public() != nil || (KeyPair{}).Signer() != nil {
		t.Error("the empty key pair is not empty")
	}
	if _, err := (KeyPair{}).PublicPEM(); err == nil {
		t.Error("the empty key pair has a public key")
	}
}

func TestCheckPublicKey(t *testing.T) {
	odd := new(big.Int).SetBit(big.NewInt(1), 2047, 1)
	for sentence, c := range map[string]struct {
		key    any
		reason Reason
	}{
		"Ed25519":                        {edKey(), ""},
		"RSA of 2048 bits":               {keys()["RSA"].Public(), ""},
		"P-256":                          {keys()["ECDSA"].Public(), ""},
		"P-384":                          {keys()["P-384"].Public(), ""},
		"nothing":                        {nil, ReasonKey},
		"text":                           {"key", ReasonKey},
		"a short Ed25519 key":            {ed25519.PublicKey{1}, ReasonKey},
		"an empty RSA key":               {&rsa.PublicKey{}, ReasonKey},
		"a nil RSA key":                  {(*rsa.PublicKey)(nil), ReasonKey},
		"a nil ECDSA key":                {(*ecdsa.PublicKey)(nil), ReasonKey},
		"RSA of 4097 bits":               {&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 4096, 1), E: 65537}, ReasonKey},
		"RSA with exponent 3":            {&rsa.PublicKey{N: odd, E: 3}, ReasonKey},
		"RSA with an even exponent":      {&rsa.PublicKey{N: odd, E: 65538}, ReasonKey},
		"RSA with an even modulus":       {&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(0), 2047, 1), E: 65537}, ReasonKey},
		"a private key":                  {keys()["Ed25519"], ReasonKey},
		"ECDSA on no curve":              {&ecdsa.PublicKey{}, ReasonKey},
		"RSA that is large but accepted": {&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 4095, 1), E: 65537}, ""},
	} {
		t.Run(sentence, func(t *testing.T) { wantReason(t, CheckPublicKey(c.key), c.reason) })
	}
	if SamePublicKey(nil, nil) || SamePublicKey(edKey(), nil) || SamePublicKey("x", "x") || !SamePublicKey(edKey(), edKey()) {
		t.Error("SamePublicKey is wrong")
	}
}

func TestRawEd25519KeysAreRead(t *testing.T) {
	key, err := ParsePublicKey(edKey())
	if err != nil || !SamePublicKey(key, edKey()) {
		t.Errorf("got %v, %v", key, err)
	}
}

// D4: whatever is a cluster ID fits into labels and names.
func TestClusterIDs(t *testing.T) {
	for _, id := range []string{"a", "rome", "rome-1", "1", strings.Repeat("x", MaxClusterIDLength)} {
		wantReason(t, ValidateClusterID(id), "")
	}
	for _, id := range []string{"", "Rome", "-a", "a-", "a.b", "a_b", "a/b", "a:b", "è", "a\n", strings.Repeat("x", MaxClusterIDLength+1), strings.Repeat("x", 1<<20)} {
		wantReason(t, ValidateClusterID(id), ReasonClusterID)
	}
	rapid.Check(t, func(t *rapid.T) {
		if id := rapid.String().Draw(t, "id"); ValidateClusterID(id) == nil && !labelPattern.MatchString(corev1beta1.TenantNamespacePrefix+id) {
			t.Fatalf("%q is accepted and gives no namespace", id)
		}
	})
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		TenantUser("rome"):             "liqo.io:tenant:rome",
		ConsumerGroup("rome"):          "liqo.io:consumer:rome",
		SliceUser("rome", "big"):       "liqo.io:slice:big-a8a4c692b93b",
		NodeUser("milan"):              "system:node:milan",
		TenantsGroup:                   "liqo.io:tenants",
		fmt.Sprint(MaxClusterIDLength): "51",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSliceUsersAreBoundedAndDistinct(t *testing.T) {
	slice := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?`)
	id := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,49}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		idA, idB := id.Draw(t, "idA"), id.Draw(t, "idB")
		sliceA, sliceB := slice.Draw(t, "sliceA"), slice.Draw(t, "sliceB")
		a, b := SliceUser(idA, sliceA), SliceUser(idB, sliceB)
		if len(a) > 253 || !strings.HasPrefix(a, UserPrefix) {
			t.Fatalf("%q has %d bytes", a, len(a))
		}
		if (a == b) != (idA == idB && sliceA == sliceB) {
			t.Fatalf("%q/%q and %q/%q share %q", idA, sliceA, idB, sliceB, a)
		}
	})
	long := strings.Repeat("x", 230)
	if SliceUser("rome", long+"a") == SliceUser("rome", long+"b") {
		t.Error("long names collide")
	}
}

func TestNonWorkingKeysAreErrors(t *testing.T) {
	if _, err := (KeyPair{signer: badSigner{}}).PrivatePEM(); err == nil {
		t.Error("an unknown key was encoded")
	}
	if _, err := NewCSR(badSigner{}, TenantSubject("rome")); err == nil {
		t.Error("a CSR was made with a key that does not sign")
	}
	nonce, err := NewNonce(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SignNonce(badSigner{}, nonce, "rome", "milan"); err == nil {
		t.Error("a nonce was signed with a key that does not sign")
	}
	if _, ok := ReasonOf(x509.ErrUnsupportedAlgorithm); ok {
		t.Error("a foreign error has a reason")
	}
}
