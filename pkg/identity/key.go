package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Algorithm names the kind of a new key.
type Algorithm string

const (
	// AlgorithmEd25519 is the default.
	AlgorithmEd25519 Algorithm = "Ed25519"
	// AlgorithmRSA makes RSA keys of 2048 bits: the TLS compatibility mode, for API servers that refuse Ed25519.
	AlgorithmRSA Algorithm = "RSA"
	// AlgorithmECDSA makes ECDSA keys on P-256, which every signer of Kubernetes takes.
	AlgorithmECDSA Algorithm = "ECDSA"

	// PrivateKeyField is the key of a Secret's data that holds the private key (PEM, PKCS#8).
	PrivateKeyField = "privateKey"
	// PublicKeyField is the key of a Secret's data that holds the public key (PEM, PKIX).
	PublicKeyField = "publicKey"

	minRSABits     = 2048
	maxRSABits     = 4096
	minRSAExponent = 65537
)

// KeyPair is a private key with its public half. The zero value is empty. Printing or logging it shows no secret.
type KeyPair struct{ signer crypto.Signer }

// NewKeyPair makes a key pair.
func NewKeyPair(algorithm Algorithm) (KeyPair, error) {
	var signer crypto.Signer
	var err error
	switch algorithm {
	case AlgorithmEd25519:
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	case AlgorithmRSA:
		signer, err = rsa.GenerateKey(rand.Reader, minRSABits)
	case AlgorithmECDSA:
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		return KeyPair{}, fmt.Errorf("the key algorithm %q is unknown: use %s, %s or %s", algorithm, AlgorithmEd25519, AlgorithmRSA, AlgorithmECDSA)
	}
	if err != nil {
		return KeyPair{}, fmt.Errorf("generating a key with %s: %w", algorithm, err)
	}
	return KeyPair{signer: signer}, nil
}

// ParseKeyPair reads a private key in PEM (PKCS#8). The key must be one that CheckPublicKey allows.
func ParseKeyPair(privatePEM []byte) (KeyPair, error) {
	der, err := decodeOne(privatePEM, blockPrivateKey, MaxInput)
	if err != nil {
		return KeyPair{}, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		// The parser's own words are left out: they could tell about the secret.
		return KeyPair{}, refuse(ReasonEncoding, "the private key is not a PKCS#8 key of a known type")
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return KeyPair{}, refuse(ReasonKey, "the private key cannot sign: use Ed25519, RSA or ECDSA")
	}
	if err := CheckPublicKey(signer.Public()); err != nil {
		return KeyPair{}, err
	}
	return KeyPair{signer: signer}, nil
}

// KeyPairFromData reads the key pair of a Secret's data. The two halves must belong together.
func KeyPairFromData(data map[string][]byte) (KeyPair, error) {
	pair, err := ParseKeyPair(data[PrivateKeyField])
	if err != nil {
		return KeyPair{}, fmt.Errorf("reading %s: %w", PrivateKeyField, err)
	}
	public, err := ParsePublicKey(data[PublicKeyField])
	if err != nil {
		return KeyPair{}, fmt.Errorf("reading %s: %w", PublicKeyField, err)
	}
	if !SamePublicKey(pair.Public(), public) {
		return KeyPair{}, refuse(ReasonPublicKeyMismatch, "%s and %s do not belong together: delete both and new ones are made", PrivateKeyField, PublicKeyField)
	}
	return pair, nil
}

// Signer returns the private key, nil for the zero value.
func (k KeyPair) Signer() crypto.Signer { return k.signer }

// Public returns the public key, nil for the zero value.
func (k KeyPair) Public() crypto.PublicKey {
	if k.signer == nil {
		return nil
	}
	return k.signer.Public()
}

// PrivatePEM encodes the private key as PEM (PKCS#8).
func (k KeyPair) PrivatePEM() ([]byte, error) {
	if k.signer == nil {
		return nil, errors.New("encoding a private key: the key pair is empty")
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.signer)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockPrivateKey, Bytes: der}), nil
}

// PublicPEM encodes the public key as PEM (PKIX).
func (k KeyPair) PublicPEM() ([]byte, error) { return EncodePublicKey(k.Public()) }

// Data encodes both halves as a Secret's data, under PrivateKeyField and PublicKeyField.
func (k KeyPair) Data() (map[string][]byte, error) {
	private, err := k.PrivatePEM()
	if err != nil {
		return nil, err
	}
	public, err := k.PublicPEM()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{PrivateKeyField: private, PublicKeyField: public}, nil
}

// String names the kind of key only.
func (k KeyPair) String() string { return fmt.Sprintf("key pair of type %T", k.Public()) }

// GoString is String, so that no format verb prints the secret.
func (k KeyPair) GoString() string { return k.String() }

// MarshalLog is String, for structured logs.
func (k KeyPair) MarshalLog() any { return k.String() }

// EncodePublicKey encodes a public key as PEM (PKIX).
func EncodePublicKey(public crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockPublicKey, Bytes: der}), nil
}

// ParsePublicKey reads a peer's public key: PEM (PKIX), or the 32 raw bytes of an Ed25519 key as old versions wrote it.
// The key must be one that CheckPublicKey allows.
func ParsePublicKey(data []byte) (crypto.PublicKey, error) {
	if len(data) == ed25519.PublicKeySize {
		return ed25519.PublicKey(append([]byte(nil), data...)), nil
	}
	der, err := decodeOne(data, blockPublicKey, MaxInput)
	if err != nil {
		return nil, err
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, refuse(ReasonEncoding, "the public key cannot be parsed: %s", quote(err.Error()))
	}
	if err := CheckPublicKey(public); err != nil {
		return nil, err
	}
	return public, nil
}

// CheckPublicKey returns nil for Ed25519, RSA of 2048 to 4096 bits, and ECDSA on P-256 or P-384; else a *Refusal with
// ReasonKey. It is cheap, so it stands before any use of a peer's key.
func CheckPublicKey(public crypto.PublicKey) error {
	switch key := public.(type) {
	case ed25519.PublicKey:
		if len(key) == ed25519.PublicKeySize {
			return nil
		}
		return refuse(ReasonKey, "the Ed25519 key has %d bytes instead of %d", len(key), ed25519.PublicKeySize)
	case *rsa.PublicKey:
		if key == nil || key.N == nil {
			break
		}
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return refuse(ReasonKey, "the RSA key has %d bits: use %d to %d", bits, minRSABits, maxRSABits)
		}
		if key.E < minRSAExponent || key.E%2 == 0 || key.N.Bit(0) == 0 {
			return refuse(ReasonKey, "the RSA key has an unsafe modulus or exponent: use the exponent %d", minRSAExponent)
		}
		return nil
	case *ecdsa.PublicKey:
		if key != nil && (key.Curve == elliptic.P256() || key.Curve == elliptic.P384()) {
			return nil
		}
		return refuse(ReasonKey, "the ECDSA key is on a curve that is not allowed: use P-256 or P-384")
	}
	return refuse(ReasonKey, "keys of type %T are not allowed: use Ed25519, RSA or ECDSA", public)
}

// SamePublicKey tells whether two public keys are equal. Nil equals nothing.
func SamePublicKey(a, b crypto.PublicKey) bool {
	comparable, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && b != nil && comparable.Equal(b)
}
