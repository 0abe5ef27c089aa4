package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
)

const (
	// MaxInput bounds everything that is parsed here, in bytes.
	MaxInput = 64 << 10
	// MaxCSR bounds a certificate signing request, in bytes of PEM.
	MaxCSR = 16 << 10
	// MaxCertificates bounds the certificates in one bundle or chain.
	MaxCertificates = 32

	blockRequest     = "CERTIFICATE REQUEST"
	blockCertificate = "CERTIFICATE"
	blockPrivateKey  = "PRIVATE KEY"
	blockPublicKey   = "PUBLIC KEY"
)

// decodeOne returns the bytes of the only PEM block in data. The text must be exactly what an encoder writes (but for white
// space at its end), so that every parser that reads it later sees the same block.
func decodeOne(data []byte, blockType string, limit int) ([]byte, error) {
	if len(data) > limit {
		return nil, refuse(ReasonEncoding, "the %s has %d bytes and may have at most %d", blockType, len(data), limit)
	}
	block, _ := pem.Decode(data)
	switch {
	case block == nil:
		return nil, refuse(ReasonEncoding, "expected a PEM block of type %q and found none", blockType)
	case block.Type != blockType:
		return nil, refuse(ReasonEncoding, "expected a PEM block of type %q and found %s", blockType, quote(block.Type))
	case len(block.Headers) != 0:
		return nil, refuse(ReasonEncoding, "the PEM block %q has headers, which are not allowed", blockType)
	}
	canonical := bytes.TrimRight(pem.EncodeToMemory(block), "\n")
	if !bytes.Equal(bytes.TrimRight(data, " \t\r\n"), canonical) {
		return nil, refuse(ReasonEncoding, "expected one PEM block of type %q in its usual form with nothing before or after it", blockType)
	}
	return block.Bytes, nil
}

// decodeCertificates parses a bundle: one or more CERTIFICATE blocks. Text between blocks (comments) is allowed, another
// block or a broken one is not.
func decodeCertificates(data []byte) ([]*x509.Certificate, error) {
	if len(data) > MaxInput {
		return nil, refuse(ReasonEncoding, "the certificates have %d bytes and may have at most %d", len(data), MaxInput)
	}
	begun := bytes.Count(data, []byte("-----BEGIN"))
	if begun > MaxCertificates {
		return nil, refuse(ReasonEncoding, "found %d certificates, at most %d are allowed", begun, MaxCertificates)
	}
	var certs []*x509.Certificate
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != blockCertificate {
			return nil, refuse(ReasonEncoding, "expected only PEM blocks of type %q and found %s", blockCertificate, quote(block.Type))
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, refuse(ReasonEncoding, "certificate %d cannot be parsed: %s", len(certs)+1, quote(err.Error()))
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 || len(certs) != begun {
		return nil, refuse(ReasonEncoding, "expected PEM blocks of type %q; %d of %d could be read", blockCertificate, len(certs), begun)
	}
	return certs, nil
}
