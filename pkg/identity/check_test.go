package identity

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/ptr"
)

var (
	nodeIP  = netip.MustParseAddr("10.1.2.3")
	nodeIP6 = netip.MustParseAddr("fd00::5")
)

func TestCheckCSRAcceptsWhatWeMake(t *testing.T) {
	for _, kind := range []string{"Ed25519", "RSA", "ECDSA", "P-384"} {
		key := keys()[kind]
		cases := map[string]struct {
			make func() ([]byte, error)
			want Expectation
		}{
			"a tenant":        {func() ([]byte, error) { return NewCSR(key, TenantSubject("rome")) }, TenantExpectation("rome")},
			"a slice":         {func() ([]byte, error) { return NewCSR(key, SliceSubject("rome", "big")) }, SliceExpectation("rome", "big")},
			"a long slice":    {func() ([]byte, error) { return NewCSR(key, SliceSubject("rome", strings.Repeat("x", 253))) }, SliceExpectation("rome", strings.Repeat("x", 253))},
			"a node's client": {func() ([]byte, error) { return NewCSR(key, nodeSubject("milan")) }, NodeClientExpectation("milan")},
			"a node's endpoint": {func() ([]byte, error) { return NewServingCSR(key, "milan", nodeIP) },
				NodeServingExpectation("milan", nodeIP)},
			"a node's endpoint over IPv6": {func() ([]byte, error) { return NewServingCSR(key, "milan", nodeIP6) },
				NodeServingExpectation("milan", nodeIP6)},
			"an address written as IPv4 in IPv6": {
				func() ([]byte, error) { return NewServingCSR(key, "milan", netip.MustParseAddr("::ffff:10.1.2.3")) },
				NodeServingExpectation("milan", nodeIP)},
			"no organizations": {func() ([]byte, error) { return NewCSR(key, Subject{CommonName: "x"}) }, Expectation{Subject: Subject{CommonName: "x"}}},
			"organizations in another order": {func() ([]byte, error) { return NewCSR(key, Subject{"x", []string{"b", "a"}}) },
				Expectation{Subject: Subject{"x", []string{"a", "b"}}}},
		}
		for sentence, c := range cases {
			t.Run(kind+"/"+sentence, func(t *testing.T) {
				csr, err := c.make()
				if err != nil {
					t.Fatal(err)
				}
				c.want.PublicKey = key.Public()
				wantReason(t, CheckCSR(csr, c.want), "")
			})
		}
	}
}

// mutant is one CSR that a hostile peer might send where "good" is expected.
type mutant struct {
	csr    []byte
	reason Reason
}

// mutants are all signed correctly unless they say otherwise, so that each is refused for its own reason.
func mutants(t testing.TB) map[string]mutant {
	t.Helper()
	ed := keys()["Ed25519"]
	ext := func(id asn1.ObjectIdentifier, value ...byte) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.ExtraExtensions = []pkix.Extension{{Id: id, Value: value}} }
	}
	with := func(change func(*x509.CertificateRequest)) []byte { return template(t, ed, change) }
	org := func(orgs ...string) []byte {
		return with(func(r *x509.CertificateRequest) { r.Subject.Organization = orgs })
	}
	cn := func(s string) []byte { return with(func(r *x509.CertificateRequest) { r.Subject.CommonName = s }) }
	extra := func(id asn1.ObjectIdentifier, value any) []byte {
		return with(func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: id, Value: value}}
		})
	}
	subject := func(attributes ...rawName) []byte { return rawCSR{subject: name(t, attributes...)}.pem(t) }
	attrs := func(attributes ...[]byte) []byte { return rawCSR{attributes: attributes}.pem(t) }
	good := with(nil)
	goodCN, goodO := attr(oidCommonName, "liqo.io:tenant:rome"), attr(oidOrganization, "liqo.io:tenants")
	dns := sans(t, general(2, []byte("kubernetes")))
	headers := bytes.Replace(good, []byte("-----\n"), []byte("-----\nProc-Type: 4,ENCRYPTED\n\n"), 1)
	withTag := func(tag int, value string) rawName {
		return rawName{Type: oidCommonName, Value: asn1.RawValue{Tag: tag, Bytes: []byte(value)}}
	}
	return map[string]mutant{
		"one more group (V1)":                 {org("liqo.io:tenants", "system:masters"), ReasonOrganizations},
		"one more group first":                {org("system:masters", "liqo.io:tenants"), ReasonOrganizations},
		"another group":                       {org("system:masters"), ReasonOrganizations},
		"no organization (V2)":                {org(), ReasonOrganizations},
		"an empty organization":               {org(""), ReasonOrganizations},
		"the group in other case":             {org("Liqo.io:tenants"), ReasonOrganizations},
		"the group with a space":              {org("liqo.io:tenants "), ReasonOrganizations},
		"the group twice":                     {org("liqo.io:tenants", "liqo.io:tenants"), ReasonOrganizations},
		"the group twice in RDNs of its own":  {subject(goodCN, goodO, goodO), ReasonOrganizations},
		"a hidden group in an RDN of its own": {subject(goodCN, goodO, attr(oidOrganization, "system:masters")), ReasonOrganizations},
		"a group with a null byte":            {subject(goodCN, attr(oidOrganization, "liqo.io:tenants\x00")), ReasonOrganizations},
		"a thousand groups":                   {org(make([]string, 1000)...), ReasonOrganizations},

		"another cluster's name":           {cn("liqo.io:tenant:milan"), ReasonSubject},
		"the name without prefix":          {cn("rome"), ReasonSubject},
		"an administrator's name":          {cn("kubernetes-admin"), ReasonSubject},
		"a node's name":                    {cn("system:node:rome"), ReasonSubject},
		"a service account's name":         {cn("system:serviceaccount:kube-system:default"), ReasonSubject},
		"an empty name":                    {cn(""), ReasonSubject},
		"the name in other case":           {cn("LIQO.IO:tenant:rome"), ReasonSubject},
		"the name with a null byte":        {subject(attr(oidCommonName, "liqo.io:tenant:rome\x00x"), goodO), ReasonSubject},
		"the name with a space":            {cn("liqo.io:tenant:rome "), ReasonSubject},
		"a long name":                      {cn(strings.Repeat("x", 5000)), ReasonSubject},
		"two names":                        {subject(goodCN, attr(oidCommonName, "kubernetes-admin"), goodO), ReasonSubject},
		"two names, the right one last":    {subject(attr(oidCommonName, "kubernetes-admin"), goodCN, goodO), ReasonSubject},
		"the name twice":                   {subject(goodCN, goodCN, goodO), ReasonSubject},
		"no subject at all":                {subject(), ReasonSubject},
		"an organizational unit":           {with(func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }), ReasonSubject},
		"a country":                        {with(func(r *x509.CertificateRequest) { r.Subject.Country = []string{"IT"} }), ReasonSubject},
		"a locality":                       {with(func(r *x509.CertificateRequest) { r.Subject.Locality = []string{"x"} }), ReasonSubject},
		"a serial number":                  {with(func(r *x509.CertificateRequest) { r.Subject.SerialNumber = "1" }), ReasonSubject},
		"a UID (Kubernetes reads it)":      {extra(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, "0"), ReasonSubject},
		"a domain component":               {extra(asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}, "x"), ReasonSubject},
		"an e-mail address in the subject": {extra(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, "a@b"), ReasonSubject},
		"a name as a T61 string":           {subject(withTag(asn1.TagT61String, "liqo.io:tenant:rome"), goodO), ReasonSubject},
		"a name as an IA5 string":          {subject(withTag(asn1.TagIA5String, "liqo.io:tenant:rome"), goodO), ReasonSubject},
		"a name as a BMP string":           {subject(withTag(asn1.TagBMPString, "\x00r\x00o"), goodO), ReasonSubject},

		"a DNS name":         {with(func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} }), ReasonSANs},
		"an IP address":      {with(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{10, 0, 0, 1}} }), ReasonSANs},
		"an e-mail address":  {with(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b.c"} }), ReasonSANs},
		"a URI":              {with(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }), ReasonSANs},
		"an other-name":      {attrs(attribute(t, oidExtensionRequest, []pkix.Extension{sans(t, general(0, nil))})), ReasonSANs},
		"an empty SAN list":  {attrs(attribute(t, oidExtensionRequest, []pkix.Extension{sans(t)})), ReasonSANs},
		"two SAN extensions": {attrs(attribute(t, oidExtensionRequest, []pkix.Extension{dns, dns})), ReasonEncoding},

		"basic constraints (a CA)":          {with(ext(asn1.ObjectIdentifier{2, 5, 29, 19}, 0x30, 3, 1, 1, 0xff)), ReasonExtensions},
		"key usage":                         {with(ext(asn1.ObjectIdentifier{2, 5, 29, 15}, 3, 2, 1, 6)), ReasonExtensions},
		"extended key usage":                {with(ext(asn1.ObjectIdentifier{2, 5, 29, 37}, 0x30, 0)), ReasonExtensions},
		"name constraints":                  {with(ext(asn1.ObjectIdentifier{2, 5, 29, 30}, 0x30, 0)), ReasonExtensions},
		"an unknown extension":              {with(ext(asn1.ObjectIdentifier{1, 2, 3, 4}, 5, 0)), ReasonExtensions},
		"an empty list of extensions":       {attrs(attribute(t, oidExtensionRequest, []pkix.Extension{})), ReasonExtensions},
		"extensions without a value":        {attrs(attribute(t, oidExtensionRequest)), ReasonExtensions},
		"two lists in one attribute":        {attrs(attribute(t, oidExtensionRequest, []pkix.Extension{dns}, []pkix.Extension{dns})), ReasonExtensions},
		"a challenge password":              {attrs(attribute(t, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}, "secret")), ReasonExtensions},
		"Microsoft's extension request":     {attrs(attribute(t, asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 1, 14}, []pkix.Extension{dns})), ReasonExtensions},
		"an attribute that is no attribute": {attrs([]byte{4, 1, 0}), ReasonExtensions},

		"an RSA key of 1024 bits": {template(t, keys()["RSA-1024"], nil), ReasonKey},
		"an ECDSA key on P-521":   {template(t, keys()["P-521"], nil), ReasonKey},
		"a key of unknown type":   {rawCSR{spki: []byte{0x30, 0x0b, 0x30, 5, 6, 3, 0x2b, 0x65, 0x71, 3, 2, 0, 1}}.pem(t), ReasonKey},
		"another key":             {template(t, keys()["ECDSA"], nil), ReasonPublicKeyMismatch},

		"a wrong signature":        {rawCSR{breakSig: true}.pem(t), ReasonSignature},
		"another key's signature":  {rawCSR{spki: der(t, keys()["ECDSA"].Public())}.pem(t), ReasonSignature},
		"a signature with SHA-1":   {rawCSR{key: keys()["RSA"], sha1: true}.pem(t), ReasonSignature},
		"a signature with RSA-PSS": {template(t, keys()["RSA"], func(r *x509.CertificateRequest) { r.SignatureAlgorithm = x509.SHA256WithRSAPSS }), ReasonSignature},

		"version 1":                  {rawCSR{version: 1}.pem(t), ReasonEncoding},
		"nothing":                    {nil, ReasonEncoding},
		"no PEM":                     {[]byte("hello"), ReasonEncoding},
		"DER without PEM":            {[]byte{0x30, 0x00}, ReasonEncoding},
		"a certificate":              {certificate(t, ed, pkix.Name{CommonName: "liqo.io:tenant:rome"}, epoch, epoch.AddDate(1, 0, 0)), ReasonEncoding},
		"the old PEM type":           {bytes.ReplaceAll(good, []byte("CERTIFICATE"), []byte("NEW CERTIFICATE")), ReasonEncoding},
		"two requests":               {append(bytes.Clone(good), good...), ReasonEncoding},
		"text before":                {append([]byte("x\n"), good...), ReasonEncoding},
		"text after":                 {append(bytes.Clone(good), 'x'), ReasonEncoding},
		"PEM headers":                {headers, ReasonEncoding},
		"PEM lines of another width": {bytes.Replace(good, []byte("\nMI"), []byte("\nM\nI"), 1), ReasonEncoding},
		"a byte after the DER":       {pemBlock(blockRequest, append(decode(t, good), 0)), ReasonEncoding},
		"a cut DER":                  {pemBlock(blockRequest, decode(t, good)[:40]), ReasonEncoding},
		"an empty block":             {pemBlock(blockRequest, nil), ReasonEncoding},
		"17 KiB":                     {cn(strings.Repeat("x", 17<<10)), ReasonEncoding},
	}
}

func decode(t testing.TB, data []byte) []byte {
	t.Helper()
	out, err := decodeOne(data, blockRequest, MaxCSR)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNoMutatedCSRIsAccepted(t *testing.T) {
	want := TenantExpectation("rome")
	want.PublicKey = keys()["Ed25519"].Public()
	wantReason(t, CheckCSR(template(t, keys()["Ed25519"], nil), want), "")
	wantReason(t, CheckCSR(rawCSR{}.pem(t), want), "")
	all := mutants(t)
	if len(all) < 40 {
		t.Fatalf("only %d mutants", len(all))
	}
	for sentence, m := range all {
		t.Run(sentence, func(t *testing.T) { wantReason(t, CheckCSR(m.csr, want), m.reason) })
	}
}

func TestNoMutatedServingCSRIsAccepted(t *testing.T) {
	serving := func(extensions ...pkix.Extension) []byte {
		r := rawCSR{subject: name(t, attr(oidCommonName, "system:node:milan"), attr(oidOrganization, "system:nodes"))}
		if len(extensions) > 0 {
			r.attributes = [][]byte{attribute(t, oidExtensionRequest, extensions)}
		}
		return r.pem(t)
	}
	ip := general(7, nodeIP.AsSlice())
	critical := sans(t, ip)
	critical.Critical = true
	mapped := netip.MustParseAddr("::ffff:10.1.2.3")
	basic := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0}}
	cases := map[string]mutant{
		"exactly the address":           {serving(sans(t, ip)), ""},
		"no names":                      {serving(), ReasonSANs},
		"an empty list":                 {serving(sans(t)), ReasonSANs},
		"another address":               {serving(sans(t, general(7, []byte{10, 1, 2, 4}))), ReasonSANs},
		"one address more":              {serving(sans(t, ip, general(7, []byte{10, 1, 2, 4}))), ReasonSANs},
		"the address twice":             {serving(sans(t, ip, ip)), ReasonSANs},
		"the address as IPv4 in IPv6":   {serving(sans(t, general(7, append([]byte(nil), mapped.AsSlice()...)))), ReasonSANs},
		"an address of 5 bytes":         {serving(sans(t, general(7, []byte{10, 1, 2, 3, 0}))), ReasonEncoding},
		"a DNS name too":                {serving(sans(t, ip, general(2, []byte("milan")))), ReasonSANs},
		"a URI too":                     {serving(sans(t, ip, general(6, []byte("spiffe://x")))), ReasonSANs},
		"a registered ID too":           {serving(sans(t, ip, general(8, []byte{42, 3}))), ReasonSANs},
		"a directory name too":          {serving(sans(t, ip, general(4, nil))), ReasonSANs},
		"critical":                      {serving(critical), ReasonExtensions},
		"basic constraints too":         {serving(sans(t, ip), basic), ReasonExtensions},
		"basic constraints alone":       {serving(basic), ReasonExtensions},
		"the list twice":                {serving(sans(t, ip), sans(t, ip)), ReasonEncoding},
		"for another node's name":       {rawCSR{attributes: [][]byte{attribute(t, oidExtensionRequest, []pkix.Extension{sans(t, ip)})}}.pem(t), ReasonSubject},
		"a list with bytes after it":    {serving(pkix.Extension{Id: oidSubjectAltName, Value: append(sans(t, ip).Value, 5, 0)}), ReasonSANs},
		"a list that is not a sequence": {serving(pkix.Extension{Id: oidSubjectAltName, Value: []byte{4, 0}}), ReasonEncoding},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) { wantReason(t, CheckCSR(c.csr, NodeServingExpectation("milan", nodeIP)), c.reason) })
	}
}

func TestAnEmptyExpectationAcceptsNothing(t *testing.T) {
	csr := template(t, keys()["Ed25519"], func(r *x509.CertificateRequest) { r.Subject = pkix.Name{} })
	wantReason(t, CheckCSR(csr, Expectation{}), ReasonSubject)
	object := request(t, keys()["Ed25519"], "", nil)
	object.Spec.SignerName, object.Spec.Username = "", ""
	wantReason(t, CheckRequest(object, RequestExpectation{Expectation: NodeClientExpectation("milan")}), ReasonSigner)
	wantReason(t, CheckRequest(object, RequestExpectation{SignerName: "x"}), ReasonSigner)
	object.Spec.SignerName = "x"
	wantReason(t, CheckRequest(object, RequestExpectation{SignerName: "x"}), ReasonRequester)
}

func request(t *testing.T, key crypto.Signer, node string, usages []certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	if node == "" {
		node = "milan"
	}
	csr, err := NewCSR(key, nodeSubject(node))
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: csr, Usages: usages, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Username: "system:serviceaccount:liqo:vk", ExpirationSeconds: ptr.To[int32](3600),
	}}
}

func TestCheckRequest(t *testing.T) {
	const ds, ke, client, server = certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth
	type spec = certificatesv1.CertificateSigningRequestSpec
	cases := map[string]struct {
		key    string
		usages []certificatesv1.KeyUsage
		change func(*spec)
		reason Reason
	}{
		"exactly the usages":                    {usages: []certificatesv1.KeyUsage{client, ds}},
		"key encipherment with an RSA key":      {key: "RSA", usages: []certificatesv1.KeyUsage{ds, ke, client}},
		"an RSA key without key encipherment":   {key: "RSA", usages: []certificatesv1.KeyUsage{ds, client}},
		"key encipherment with another key":     {usages: []certificatesv1.KeyUsage{ds, ke, client}, reason: ReasonUsages},
		"server auth too":                       {usages: []certificatesv1.KeyUsage{ds, client, server}, reason: ReasonUsages},
		"server auth instead":                   {usages: []certificatesv1.KeyUsage{ds, server}, reason: ReasonUsages},
		"a usage missing":                       {usages: []certificatesv1.KeyUsage{client}, reason: ReasonUsages},
		"a usage twice":                         {usages: []certificatesv1.KeyUsage{ds, client, client}, reason: ReasonUsages},
		"no usages":                             {reason: ReasonUsages},
		"certificate signing, with an RSA key":  {key: "RSA", usages: []certificatesv1.KeyUsage{ds, client, ke, "cert sign"}, reason: ReasonUsages},
		"another signer":                        {change: func(s *spec) { s.SignerName = certificatesv1.KubeAPIServerClientSignerName }, reason: ReasonSigner},
		"made by another service account (N10)": {change: func(s *spec) { s.Username = "system:serviceaccount:default:vk" }, reason: ReasonRequester},
		"too long a life":                       {change: func(s *spec) { s.ExpirationSeconds = ptr.To[int32](86401) }, reason: ReasonLifetime},
		"no word about its life":                {change: func(s *spec) { s.ExpirationSeconds = nil }, reason: ReasonLifetime},
		"a request for another node":            {change: func(s *spec) { s.Request = template(t, keys()["ECDSA"], nil) }, reason: ReasonSubject},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			if c.key == "" {
				c.key = "ECDSA"
			}
			object := request(t, keys()[c.key], "", c.usages)
			if c.change != nil {
				c.change(&object.Spec)
			}
			wantReason(t, CheckRequest(object, RequestExpectation{
				Expectation: NodeClientExpectation("milan"), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Username: "system:serviceaccount:liqo:vk", MaxExpirationSeconds: 86400,
			}), c.reason)
		})
	}
	t.Run("without a bound the lifetime is the signer's", func(t *testing.T) {
		object := request(t, keys()["ECDSA"], "", ClientUsages())
		object.Spec.ExpirationSeconds = nil
		wantReason(t, CheckRequest(object, RequestExpectation{
			Expectation: NodeClientExpectation("milan"), SignerName: object.Spec.SignerName, Username: object.Spec.Username,
		}), "")
	})
	t.Run("a tenant's RSA key gets no key encipherment", func(t *testing.T) {
		csr, err := NewCSR(keys()["RSA"], TenantSubject("rome"))
		if err != nil {
			t.Fatal(err)
		}
		object := &certificatesv1.CertificateSigningRequest{Spec: spec{Request: csr, SignerName: "s", Username: "u", Usages: []certificatesv1.KeyUsage{ds, ke, client}}}
		wantReason(t, CheckRequest(object, RequestExpectation{Expectation: TenantExpectation("rome"), SignerName: "s", Username: "u"}), ReasonUsages)
	})
}

func TestCSRsThatWeRefuseToMake(t *testing.T) {
	for sentence, err := range map[string]error{
		"no key":          second(NewCSR(nil, TenantSubject("rome"))),
		"no name":         second(NewCSR(keys()["ECDSA"], Subject{})),
		"a weak key":      second(NewCSR(keys()["RSA-1024"], TenantSubject("rome"))),
		"no address":      second(NewServingCSR(keys()["ECDSA"], "milan", netip.Addr{})),
		"an address zone": second(NewServingCSR(keys()["ECDSA"], "milan", netip.MustParseAddr("fe80::1%eth0"))),
	} {
		if err == nil {
			t.Errorf("%s: made", sentence)
		}
	}
}

func second[T any](_ T, err error) error { return err }
