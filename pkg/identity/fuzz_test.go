package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

// Every target states what must hold of whatever is accepted; that nothing panics is tested by all of them.

func FuzzCheckCSR(f *testing.F) {
	f.Add(template(f, keys()["Ed25519"], nil))
	for _, m := range mutants(f) {
		f.Add(m.csr)
	}
	serving, err := NewServingCSR(keys()["ECDSA"], "milan", nodeIP)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(serving)
	f.Fuzz(func(t *testing.T, data []byte) {
		if CheckCSR(data, NodeServingExpectation("milan", nodeIP)) == nil {
			if csr := reparse(t, data); len(csr.IPAddresses) != 1 || len(csr.DNSNames)+len(csr.URIs)+len(csr.EmailAddresses) != 0 || len(csr.Extensions) != 1 {
				t.Errorf("accepted the names of %v", csr)
			}
		}
		if CheckCSR(data, TenantExpectation("rome")) != nil {
			return
		}
		csr := reparse(t, data)
		if csr.Subject.CommonName != "liqo.io:tenant:rome" || cmp.Diff(csr.Subject.Organization, []string{"liqo.io:tenants"}) != "" ||
			len(csr.Subject.Names) != 2 || len(csr.Extensions) != 0 || CheckPublicKey(csr.PublicKey) != nil {
			t.Errorf("accepted %v", csr.Subject)
		}
	})
}

func reparse(t *testing.T, data []byte) *x509.CertificateRequest {
	t.Helper()
	block, _ := pem.Decode(data)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return csr
}

func FuzzVerifyNonce(f *testing.F) {
	n := nonce(f)
	for _, kind := range []string{"Ed25519", "RSA", "ECDSA", "P-384"} {
		public, err := EncodePublicKey(keys()[kind].Public())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(public, n, sign(f, keys()[kind], n, "rome", "milan"), "rome")
	}
	f.Add([]byte(edKey()), n, []byte{}, "milan")
	f.Fuzz(func(t *testing.T, public, nonce, signature []byte, consumer string) {
		key, err := ParsePublicKey(public)
		if err != nil {
			return
		}
		if VerifyNonce(key, nonce, signature, consumer, "milan") != nil {
			return
		}
		if VerifyNonce(key, nonce, signature, consumer+"x", "milan") == nil && SamePublicKey(key, edKey()) {
			t.Error("one signature for two consumers")
		}
	})
}

func FuzzVerifyTenant(f *testing.F) {
	p := proof(f, "Ed25519")
	f.Add(p.ConsumerID, p.PublicKey, p.CSR, p.Signature, p.Nonce)
	f.Fuzz(func(t *testing.T, consumer string, public, csr, signature, nonce []byte) {
		key, err := VerifyTenant(TenantProof{ConsumerID: consumer, ProviderID: "milan", PublicKey: public, CSR: csr, Signature: signature, Nonce: nonce})
		if (err == nil) != (key != nil) {
			t.Errorf("key %v with error %v", key, err)
		}
		if _, refused := ReasonOf(err); err != nil && !refused {
			t.Errorf("not a refusal: %v", err)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	for _, kind := range []string{"Ed25519", "RSA", "ECDSA", "P-521"} {
		data, err := KeyPair{signer: keys()[kind]}.Data()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[PrivateKeyField])
		f.Add(data[PublicKeyField])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if key, err := ParsePublicKey(data); err == nil && CheckPublicKey(key) != nil {
			t.Error("a key that is not allowed was read")
		}
		if pair, err := ParseKeyPair(data); err == nil && CheckPublicKey(pair.Public()) != nil {
			t.Error("a key pair that is not allowed was read")
		}
	})
}

func FuzzCheckCertificate(f *testing.F) {
	f.Add(tenantCertificate(f, "ECDSA"))
	f.Add(bytes.Repeat(tenantCertificate(f, "Ed25519"), 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		if CheckCertificate(data, keys()["ECDSA"].Public(), TenantSubject("rome"), epoch) == nil && CheckCA(data) != nil {
			t.Error("accepted a certificate that is none as a CA")
		}
		if _, at, err := NeedsRenewal(data, epoch); err == nil && at.IsZero() {
			t.Error("no time of renewal")
		}
	})
}

func FuzzKubeconfig(f *testing.F) {
	f.Add("https://milan:6443", "http://proxy", "ns", "milan", "liqo.io:tenant:rome", []byte{})
	f.Add("https://[::1]", "", "", "a", "b", []byte("x"))
	f.Fuzz(func(t *testing.T, server, proxy, namespace, cluster, user string, ca []byte) {
		p := params(t)
		p.Endpoint, p.Namespace, p.Cluster, p.User = Endpoint{server, ca, proxy}, namespace, cluster, user
		out, err := Kubeconfig(p)
		if err != nil {
			return
		}
		config, err := clientcmd.Load(out)
		if err != nil {
			t.Fatalf("client-go does not read it: %v", err)
		}
		c := config.Contexts[config.CurrentContext]
		if len(config.Clusters) != 1 || len(config.AuthInfos) != 1 || c == nil || c.Cluster != cluster || c.AuthInfo != user || c.Namespace != namespace {
			t.Fatalf("context %v of %s", c, out)
		}
		got := Endpoint{config.Clusters[cluster].Server, config.Clusters[cluster].CertificateAuthorityData, config.Clusters[cluster].ProxyURL}
		if got.APIServer != server || got.ProxyURL != proxy || !bytes.Equal(got.CA, ca) || config.Clusters[cluster].InsecureSkipTLSVerify {
			t.Errorf("got %v", got)
		}
	})
}

func FuzzCheckAPIServerURL(f *testing.F) {
	for _, raw := range []string{"https://milan:6443", "https://[::ffff:7f00:1]", "https://127.1", "http://u:p@x?y#z", "https://[64:ff9b::1]:0"} {
		f.Add(raw, "https://milan")
	}
	deny := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}
	f.Fuzz(func(t *testing.T, raw, pinned string) {
		_ = CheckProxyURL(raw, deny)
		if SameEndpoint(Endpoint{APIServer: raw}, Endpoint{APIServer: raw}) != nil {
			t.Error("an endpoint differs from itself")
		}
		_ = SameEndpoint(Endpoint{APIServer: pinned, ProxyURL: raw}, Endpoint{APIServer: raw, ProxyURL: pinned})
		if CheckAPIServerURL(raw, deny) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("accepted %q", raw)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && (a.Unmap().IsLoopback() || deny[0].Contains(a.Unmap())) {
			t.Errorf("accepted the address %s", a)
		}
	})
}
