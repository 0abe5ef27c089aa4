package identity

import (
	"crypto/x509"
	"encoding/asn1"
	"net/netip"
	"slices"
)

var (
	oidCommonName       = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization     = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidSubjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidExtensionRequest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}

	// allowedSignatures leaves out MD5 and SHA-1, which the standard library still takes for requests.
	allowedSignatures = []x509.SignatureAlgorithm{
		x509.PureEd25519, x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512,
	}
)

const tagIPAddress = 7

// The structures below repeat those of PKCS#10, because the standard library passes over what it does not know, and here
// anything unknown must be seen in order to be refused.
type (
	rawRequest struct {
		Version    int
		Subject    asn1.RawValue
		PublicKey  asn1.RawValue
		Attributes []asn1.RawValue `asn1:"tag:0"`
	}
	rawAttribute struct {
		ID     asn1.ObjectIdentifier
		Values []asn1.RawValue `asn1:"set"`
	}
	rawExtension struct {
		ID       asn1.ObjectIdentifier
		Critical bool `asn1:"optional"`
		Value    []byte
	}
	rawName struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	// rawNameSET is read as an ASN.1 SET because of how its name ends.
	rawNameSET []rawName
)

// CheckCSR returns nil if the request asks for exactly what is wanted: the common name, the organizations as a set, no other
// part of a name, the addresses, no other alternative name, extension or attribute, and if it is signed with a key of an
// allowed type and size (and equal to want.PublicKey, if given). Usages are not part of a CSR: see CheckRequest.
// Every other error is a *Refusal.
func CheckCSR(pem []byte, want Expectation) error {
	_, err := checkCSR(pem, want)
	return err
}

func checkCSR(pem []byte, want Expectation) (*x509.CertificateRequest, error) {
	der, err := decodeOne(pem, blockRequest, MaxCSR)
	if err != nil {
		return nil, err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, refuse(ReasonEncoding, "the CSR cannot be parsed: %s", quote(err.Error()))
	}
	if csr.Version != 0 {
		return nil, refuse(ReasonEncoding, "the CSR has version %d: only version 0 exists", csr.Version)
	}
	// The key comes before the signature: verifying with an enormous key would cost time.
	if err := CheckPublicKey(csr.PublicKey); err != nil {
		return nil, err
	}
	if !slices.Contains(allowedSignatures, csr.SignatureAlgorithm) {
		return nil, refuse(ReasonSignature, "the CSR is signed with %s, which is not allowed: use SHA-256 or better", csr.SignatureAlgorithm)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, refuse(ReasonSignature, "the signature of the CSR is wrong: whoever sent it does not hold the private key")
	}
	if err := checkSubject(csr.RawSubject, want.Subject); err != nil {
		return nil, err
	}
	if err := checkAttributes(csr.RawTBSCertificateRequest, want.IPs); err != nil {
		return nil, err
	}
	if want.PublicKey != nil && !SamePublicKey(want.PublicKey, csr.PublicKey) {
		return nil, refuse(ReasonPublicKeyMismatch, "the CSR is for another key than the expected one")
	}
	return csr, nil
}

func checkSubject(raw []byte, want Subject) error {
	if want.CommonName == "" {
		return refuse(ReasonSubject, "no common name is expected, so none is accepted")
	}
	var sets []rawNameSET
	if rest, err := asn1.Unmarshal(raw, &sets); err != nil || len(rest) != 0 {
		return refuse(ReasonSubject, "the subject cannot be parsed")
	}
	var commonNames, organizations []string
	for _, set := range sets {
		for _, name := range set {
			tag := name.Value.Tag
			if name.Value.Class != asn1.ClassUniversal || (tag != asn1.TagPrintableString && tag != asn1.TagUTF8String) {
				return refuse(ReasonSubject, "the subject holds a value that is not a printable or UTF-8 string")
			}
			switch {
			case name.Type.Equal(oidCommonName):
				commonNames = append(commonNames, string(name.Value.Bytes))
			case name.Type.Equal(oidOrganization):
				organizations = append(organizations, string(name.Value.Bytes))
			default:
				return refuse(ReasonSubject, "the subject holds the attribute %s: only a common name and organizations are accepted", quote(name.Type.String()))
			}
		}
	}
	if len(commonNames) != 1 {
		return refuse(ReasonSubject, "the subject holds %d common names instead of one", len(commonNames))
	}
	if commonNames[0] != want.CommonName {
		return refuse(ReasonSubject, "the common name is %s instead of %s", quote(commonNames[0]), quote(want.CommonName))
	}
	if !sameSet(organizations, want.Organizations) {
		return refuse(ReasonOrganizations, "the organizations are %s instead of %s", quoteAll(organizations), quoteAll(want.Organizations))
	}
	return nil
}

func checkAttributes(tbs []byte, ips []netip.Addr) error {
	var request rawRequest
	if rest, err := asn1.Unmarshal(tbs, &request); err != nil || len(rest) != 0 {
		return refuse(ReasonEncoding, "the CSR cannot be parsed")
	}
	extensions, err := requestedExtensions(&request)
	switch {
	case err != nil:
		return err
	case len(extensions) > 1:
		return refuse(ReasonExtensions, "the CSR asks for the same extension %d times", len(extensions))
	case len(extensions) == 0 && len(request.Attributes) > 0:
		return refuse(ReasonExtensions, "the CSR holds an empty list of extensions")
	case len(extensions) == 0 && len(ips) > 0:
		return refuse(ReasonSANs, "the CSR holds no addresses, expected %v", ips)
	case len(extensions) == 0:
		return nil
	case len(ips) == 0:
		return refuse(ReasonSANs, "the CSR holds alternative names, and none are accepted")
	case extensions[0].Critical:
		return refuse(ReasonExtensions, "the CSR marks its alternative names as critical")
	}
	return checkSANs(extensions[0].Value, ips)
}

// requestedExtensions returns the extensions of a CSR, all of which are of the only kind that is accepted: alternative names.
func requestedExtensions(request *rawRequest) ([]rawExtension, error) {
	var extensions []rawExtension
	for i, raw := range request.Attributes {
		var attribute rawAttribute
		rest, err := asn1.Unmarshal(raw.FullBytes, &attribute)
		if err != nil || len(rest) != 0 || !attribute.ID.Equal(oidExtensionRequest) || i > 0 || len(attribute.Values) != 1 {
			return nil, refuse(ReasonExtensions, "the CSR holds an attribute other than one list of extensions")
		}
		if rest, err = asn1.Unmarshal(attribute.Values[0].FullBytes, &extensions); err != nil || len(rest) != 0 {
			return nil, refuse(ReasonExtensions, "the extensions of the CSR cannot be parsed")
		}
	}
	for _, extension := range extensions {
		if !extension.ID.Equal(oidSubjectAltName) {
			return nil, refuse(ReasonExtensions, "the CSR asks for the extension %s, which is not accepted", quote(extension.ID.String()))
		}
	}
	return extensions, nil
}

// checkSANs walks the raw list, since the standard library passes over names of kinds that it does not know.
func checkSANs(raw []byte, want []netip.Addr) error {
	var names []asn1.RawValue
	if rest, err := asn1.Unmarshal(raw, &names); err != nil || len(rest) != 0 {
		return refuse(ReasonSANs, "the alternative names of the CSR cannot be parsed")
	}
	var got []netip.Addr
	for _, name := range names {
		addr, ok := netip.AddrFromSlice(name.Bytes)
		if name.Class != asn1.ClassContextSpecific || name.Tag != tagIPAddress || name.IsCompound || !ok || addr.Is4In6() {
			return refuse(ReasonSANs, "the CSR holds an alternative name that is not an IP address: only the addresses %v are accepted", want)
		}
		got = append(got, addr)
	}
	if !sameSet(got, want) {
		return refuse(ReasonSANs, "the CSR holds %d addresses that are not exactly %v", len(got), want)
	}
	return nil
}

// sameSet tells whether got, without repeating anything, holds just the values of want.
func sameSet[T comparable](got, want []T) bool {
	seen := make(map[T]bool, len(got))
	for _, value := range got {
		if seen[value] || !slices.Contains(want, value) {
			return false
		}
		seen[value] = true
	}
	for _, value := range want {
		if !seen[value] {
			return false
		}
	}
	return true
}

// quoteAll quotes a list of a peer's strings, cut to a bounded length.
func quoteAll(values []string) string {
	const limit = 8
	list := "["
	for i, value := range values {
		if i == limit {
			list += " ..."
			break
		}
		if i > 0 {
			list += " "
		}
		list += quote(value)
	}
	return list + "]"
}
