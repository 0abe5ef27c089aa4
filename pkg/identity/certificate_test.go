package identity

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"pgregory.net/rapid"
)

func tenantCertificate(t testing.TB, kind string) []byte {
	t.Helper()
	return certificate(t, keys()[kind], pkix.Name{CommonName: TenantUser("rome"), Organization: []string{TenantsGroup}}, epoch, epoch.Add(3*time.Hour))
}

func TestCheckCertificate(t *testing.T) {
	good := tenantCertificate(t, "ECDSA")
	other := certificate(t, keys()["ECDSA"], pkix.Name{CommonName: TenantUser("turin"), Organization: []string{TenantsGroup}}, epoch, epoch.Add(time.Hour))
	groups := certificate(t, keys()["ECDSA"], pkix.Name{CommonName: TenantUser("rome"), Organization: []string{TenantsGroup, "system:masters"}}, epoch, epoch.Add(time.Hour))
	noon := epoch.Add(time.Hour)
	for sentence, c := range map[string]struct {
		pem    []byte
		now    time.Time
		reason Reason
	}{
		"valid":                                 {good, noon, ""},
		"valid with its chain":                  {append(bytes.Clone(good), other...), noon, ""},
		"valid with a clock slightly off":       {good, epoch.Add(-4 * time.Minute), ""},
		"expired within the skew":               {good, epoch.Add(3*time.Hour + 4*time.Minute), ""},
		"B7: valid with a clock an hour behind": {good, epoch.Add(-time.Hour), ""},
		"expired":                               {good, epoch.Add(3*time.Hour + 6*time.Minute), ReasonValidity},
		"for another key":                       {tenantCertificate(t, "Ed25519"), noon, ReasonPublicKeyMismatch},
		"for another subject":                   {other, noon, ReasonSubject},
		"with more groups":                      {groups, noon, ReasonOrganizations},
		"our own in second place":               {append(bytes.Clone(other), good...), noon, ReasonSubject},
		"nothing":                               {nil, noon, ReasonEncoding},
		"a private key in the chain":            {append(bytes.Clone(good), pemBlock(blockPrivateKey, []byte{1})...), noon, ReasonEncoding},
		"not a certificate":                     {pemBlock(blockCertificate, []byte{1}), noon, ReasonEncoding},
		"a broken block after it":               {append(bytes.Clone(good), "-----BEGIN CERTIFICATE-----\n!"...), noon, ReasonEncoding},
		"more than 64 KiB":                      {bytes.Repeat([]byte(" "), MaxInput+1), noon, ReasonEncoding},
		"33 certificates":                       {bytes.Repeat(good, 33), noon, ReasonEncoding},
	} {
		t.Run(sentence, func(t *testing.T) {
			wantReason(t, CheckCertificate(c.pem, keys()["ECDSA"].Public(), TenantSubject("rome"), c.now), c.reason)
		})
	}
}

func TestNeedsRenewal(t *testing.T) {
	pem := tenantCertificate(t, "ECDSA")
	at := epoch.Add(2 * time.Hour)
	for now, want := range map[time.Time]bool{epoch: false, at.Add(-time.Second): false, at: true, at.Add(time.Hour): true} {
		got, when, err := NeedsRenewal(pem, now)
		if err != nil || got != want || !when.Equal(at) {
			t.Errorf("at %s: got %v from %s (%v), want %v from %s", now, got, when, err, want, at)
		}
	}
	_, _, err := NeedsRenewal([]byte("x"), epoch)
	wantReason(t, err, ReasonEncoding)
	rapid.Check(t, func(t *rapid.T) {
		life := time.Duration(rapid.Int64Range(int64(time.Second), int64(100*365*24*time.Hour)).Draw(t, "life"))
		if at := RenewAt(epoch, epoch.Add(life)); at.Before(epoch) || at.After(epoch.Add(life)) || at.Sub(epoch) < life/2 {
			t.Fatalf("a life of %s is renewed at %s", life, at)
		}
	})
}

func TestCheckCA(t *testing.T) {
	good := tenantCertificate(t, "ECDSA")
	for sentence, c := range map[string]struct {
		ca     []byte
		reason Reason
	}{
		"one":                     {good, ""},
		"two with a comment":      {append(append(bytes.Clone(good), "# root\r\n"...), good...), ""},
		"none":                    {nil, ReasonCA},
		"text":                    {[]byte("hello"), ReasonCA},
		"a key among them":        {append(bytes.Clone(good), pemBlock(blockPrivateKey, []byte{1})...), ReasonCA},
		"a broken one among them": {append([]byte("-----BEGIN CERTIFICATE-----\nx\n"), good...), ReasonCA},
		"too many":                {bytes.Repeat(good, 33), ReasonCA},
		"a bundle beyond 64 KiB":  {make([]byte, MaxInput+1), ReasonCA},
	} {
		t.Run(sentence, func(t *testing.T) { wantReason(t, CheckCA(c.ca), c.reason) })
	}
}

func params(t testing.TB) KubeconfigParams {
	t.Helper()
	return KubeconfigParams{
		Endpoint:          Endpoint{APIServer: "https://milan.example.org:6443", CA: tenantCertificate(t, "RSA"), ProxyURL: "http://proxy:8118"},
		ClientCertificate: tenantCertificate(t, "ECDSA"), Key: KeyPair{signer: keys()["ECDSA"]},
		Namespace: "liqo-tenant-rome", Cluster: "milan", User: TenantUser("rome"),
	}
}

func TestKubeconfig(t *testing.T) {
	p := params(t)
	out, err := Kubeconfig(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Kubeconfig(p)
	if err != nil || !bytes.Equal(out, again) {
		t.Errorf("another kubeconfig the second time (%v)", err)
	}
	key, err := p.Key.PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.StdEncoding.EncodeToString
	want := strings.Join([]string{
		"apiVersion: v1",
		"clusters:",
		"- cluster:",
		"    certificate-authority-data: " + b64(p.CA),
		"    proxy-url: http://proxy:8118",
		"    server: https://milan.example.org:6443",
		"  name: milan",
		"contexts:",
		"- context:",
		"    cluster: milan",
		"    namespace: liqo-tenant-rome",
		"    user: liqo.io:tenant:rome",
		"  name: liqo.io:tenant:rome@milan",
		"current-context: liqo.io:tenant:rome@milan",
		"kind: Config",
		"users:",
		"- name: liqo.io:tenant:rome",
		"  user:",
		"    client-certificate-data: " + b64(p.ClientCertificate),
		"    client-key-data: " + b64(key),
		"",
	}, "\n")
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}
	if _, err := clientcmd.RESTConfigFromKubeConfig(out); err != nil {
		t.Errorf("client-go does not take it: %v", err)
	}
}

func TestKubeconfigsThatAreRefused(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*KubeconfigParams)
		reason Reason
	}{
		"no CA, the machine's roots": {func(p *KubeconfigParams) { p.CA = nil }, ""},
		"no proxy, no namespace":     {func(p *KubeconfigParams) { p.ProxyURL, p.Namespace = "", "" }, ""},
		"a server over http":         {func(p *KubeconfigParams) { p.APIServer = "http://milan:6443" }, ReasonEndpoint},
		"no server":                  {func(p *KubeconfigParams) { p.APIServer = "" }, ReasonEndpoint},
		"a proxy that is no URL":     {func(p *KubeconfigParams) { p.ProxyURL = "proxy:8118" }, ReasonEndpoint},
		"a CA that is none":          {func(p *KubeconfigParams) { p.CA = []byte("x") }, ReasonCA},
		"no certificate":             {func(p *KubeconfigParams) { p.ClientCertificate = nil }, ReasonEncoding},
		"a certificate of another":   {func(p *KubeconfigParams) { p.ClientCertificate = tenantCertificate(t, "RSA") }, ReasonPublicKeyMismatch},
		"no key":                     {func(p *KubeconfigParams) { p.Key = KeyPair{} }, ReasonPublicKeyMismatch},
		"no cluster name":            {func(p *KubeconfigParams) { p.Cluster = "" }, ReasonEncoding},
		"a user of two lines":        {func(p *KubeconfigParams) { p.User = "a\nb" }, ReasonEncoding},
		"a namespace that is none":   {func(p *KubeconfigParams) { p.Namespace = "../x" }, ReasonEncoding},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := params(t)
			c.change(&p)
			_, err := Kubeconfig(p)
			wantReason(t, err, c.reason)
		})
	}
}

func TestEndpoints(t *testing.T) {
	deny := []netip.Prefix{
		netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00:96::/112"), netip.MustParsePrefix("::ffff:172.30.0.0/112"),
	}
	good := []string{
		"https://milan.example.org", "https://milan:6443", "https://203.0.113.7:6443/", "https://[2001:db8::1]:6443",
		"https://10.0.0.1:6443", "https://rancher.example.org/k8s/clusters/c-1", "https://milan_1.example.org.", "https://1.example.org",
		"https://[64:ff9b::cb00:7107]",
	}
	for _, raw := range good {
		wantReason(t, CheckAPIServerURL(raw, deny), "")
	}
	bad := []string{
		"", "milan", "milan:6443", "//milan", "https://", "https:milan", "http://milan", "ftp://milan", "HTTPS//milan", "https://:6443",
		"https://u@milan", "https://u:p@milan", "https://milan?x=1", "https://milan?", "https://milan#x", "https://milan#", "https://milan/../x",
		"https://milan:", "https://milan:0", "https://milan:65536", "https://milan:https", "https://mi lan", "https://milan\n", "https://mil\\an",
		"https://mìlan", "https://%6dilan%00", "https://-milan", "https://milan..org", "https://[milan]", "https://[10.0.0.1]:1x",
		"https://localhost", "https://LOCALHOST:6443", "https://localhost.", "https://a.localhost", "https://localhost.localdomain", "https://ip6-localhost",
		"https://kubernetes", "https://kubernetes.default", "https://kubernetes.default.svc", "https://x.y.svc.cluster.local", "https://x.y.svc.corp.example",
		"https://metadata.google.internal", "https://127.0.0.1", "https://127.1", "https://0x7f.1", "https://0x7f000001", "https://2130706433", "https://0177.0.0.1",
		"https://[::1]", "https://[::ffff:127.0.0.1]", "https://[::127.0.0.1]", "https://[64:ff9b::7f00:1]", "https://[2002:7f00:1::]", "https://0.0.0.0", "https://0.1.2.3", "https://[::]",
		"https://169.254.169.254", "https://[fe80::1]", "https://[fe80::1%25eth0]", "https://[fd00::1%25eth0]", "https://224.0.0.1", "https://[ff02::1]", "https://255.255.255.255",
		"https://10.96.0.1", "https://[::ffff:10.96.0.1]", "https://[64:ff9b::a60:1]", "https://[fd00:96::1]", "https://172.30.5.5",
		"https://" + strings.Repeat("a", 64), "https://milan/" + strings.Repeat("a", 2048),
	}
	for _, raw := range bad {
		if reason, _ := ReasonOf(CheckAPIServerURL(raw, deny)); reason != ReasonEndpoint {
			t.Errorf("%q: got reason %q", raw, reason)
		}
	}
	for raw, want := range map[string]Reason{
		"http://proxy:8118": "", "https://user:secret@proxy.example.org": "", "socks5://203.0.113.7:1080": "", "http://proxy/": "",
		"http://proxy/x": ReasonEndpoint, "ssh://proxy": ReasonEndpoint, "http://127.0.0.1:8118": ReasonEndpoint, "http://10.96.3.4": ReasonEndpoint,
	} {
		wantReason(t, CheckProxyURL(raw, deny), want)
	}
	lab := EndpointPolicy{AllowLoopback: true}
	for raw, want := range map[string]Reason{
		"https://127.0.0.1:6443": "", "https://[::1]:6443": "", "https://localhost:6443": "", "https://a.localhost": "",
		"https://169.254.0.1": ReasonEndpoint, "https://127.1": ReasonEndpoint, "https://kubernetes.default": ReasonEndpoint,
	} {
		wantReason(t, lab.CheckAPIServer(raw), want)
	}
}

func TestSameEndpoint(t *testing.T) {
	a, b := tenantCertificate(t, "ECDSA"), tenantCertificate(t, "RSA")
	both, reversed := append(bytes.Clone(a), b...), append(bytes.Clone(b), a...)
	pinned := Endpoint{APIServer: "https://milan:443", CA: both, ProxyURL: "http://u:secret@proxy"}
	for sentence, c := range map[string]struct {
		offered Endpoint
		reason  Reason
	}{
		"the same":                         {pinned, ""},
		"the same in another form":         {Endpoint{"https://MILAN/", append([]byte("# ours\n"), reversed...), "http://u:secret@proxy:80/"}, ""},
		"another host":                     {Endpoint{"https://turin", both, pinned.ProxyURL}, ReasonEndpointChanged},
		"another port":                     {Endpoint{"https://milan:6443", both, pinned.ProxyURL}, ReasonEndpointChanged},
		"another scheme":                   {Endpoint{"http://milan:443", both, pinned.ProxyURL}, ReasonEndpointChanged},
		"another path":                     {Endpoint{"https://milan/x", both, pinned.ProxyURL}, ReasonEndpointChanged},
		"no URL":                           {Endpoint{"", both, pinned.ProxyURL}, ReasonEndpointChanged},
		"not a URL":                        {Endpoint{"\x00", both, pinned.ProxyURL}, ReasonEndpointChanged},
		"no proxy any more":                {Endpoint{pinned.APIServer, both, ""}, ReasonEndpointChanged},
		"G3: one CA less":                  {Endpoint{pinned.APIServer, a, pinned.ProxyURL}, ""},
		"G3: one CA less and another more": {Endpoint{pinned.APIServer, append(bytes.Clone(b), tenantCertificate(t, "P-384")...), pinned.ProxyURL}, ""},
		"W6: other CAs only":               {Endpoint{pinned.APIServer, append(tenantCertificate(t, "ECDSA"), tenantCertificate(t, "P-384")...), pinned.ProxyURL}, ReasonEndpointChanged},
		"W6: a CA more, at another host":   {Endpoint{"https://turin", append(bytes.Clone(both), tenantCertificate(t, "P-384")...), pinned.ProxyURL}, ReasonEndpointChanged},
		"W6: a CA that is not one":         {Endpoint{pinned.APIServer, append(bytes.Clone(both), "-----BEGIN CERTIFICATE-----\n!"...), pinned.ProxyURL}, ReasonEndpointChanged},
		"no CA any more":                   {Endpoint{pinned.APIServer, nil, pinned.ProxyURL}, ReasonEndpointChanged},
		"G3: one CA more":                  {Endpoint{pinned.APIServer, append(bytes.Clone(both), tenantCertificate(t, "P-384")...), pinned.ProxyURL}, ""},
		"a CA twice instead of the second": {Endpoint{pinned.APIServer, append(bytes.Clone(a), a...), pinned.ProxyURL}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := SameEndpoint(pinned, c.offered)
			wantReason(t, err, c.reason)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the message tells the password: %v", err)
			}
		})
	}
}
