package pki

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
)

func store(t *testing.T) (*Store, *clocktesting.FakePassiveClock) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	s, err := New(t.TempDir(), clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureCA(ClusterCA, "kubernetes"); err != nil {
		t.Fatal(err)
	}
	return s, clock
}

func serving(addresses ...string) Certificate {
	c := Certificate{Name: "apiserver", CommonName: "kube-apiserver", DNSNames: []string{"kubernetes"}}
	for _, a := range addresses {
		c.Addresses = append(c.Addresses, net.ParseIP(a))
	}
	return c
}

func TestCertificatesVerify(t *testing.T) {
	s, _ := store(t)
	if err := s.Ensure(serving("172.30.0.3")); err != nil {
		t.Fatal(err)
	}
	ca, _, err := s.load(ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	cert, _, err := s.load("apiserver")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, name := range []string{"kubernetes", "172.30.0.3"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
}

func TestWhenACertificateIsRenewed(t *testing.T) {
	for sentence, c := range map[string]struct {
		want   Certificate
		age    time.Duration
		change bool
	}{
		"nothing changed":  {serving("172.30.0.3"), 0, false},
		"another address":  {serving("172.30.0.4"), 0, true},
		"one address more": {serving("172.30.0.3", "127.0.0.1"), 0, true},
		"nearly expired":   {serving("172.30.0.3"), lifetime - time.Hour, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, clock := store(t)
			if err := s.Ensure(serving("172.30.0.3")); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(s.Cert("apiserver"))
			if err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(c.age))
			if err := s.Ensure(c.want); err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(s.Cert("apiserver"))
			if err != nil {
				t.Fatal(err)
			}
			if changed := string(before) != string(after); changed != c.change {
				t.Errorf("changed = %t, want %t", changed, c.change)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	s, _ := store(t)
	if err := s.Ensure(Certificate{Name: "admin", CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := s.Kubeconfig(path, "rome", "https://172.30.0.3:6443", "admin"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://172.30.0.3:6443" || len(config.CertData) == 0 || len(config.CAData) == 0 {
		t.Errorf("the kubeconfig lacks something: host %s", config.Host)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, error %v, want 0600", info.Mode(), err)
	}
}
