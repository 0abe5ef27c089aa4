package credential

import (
	"context"
	"crypto/x509"
	"net/netip"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
)

func TestAccount(t *testing.T) {
	directory := t.TempDir() + "/pki"
	now := testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	a, err := NewAccount(Options{Node: "milan", Directory: directory, Address: netip.MustParseAddr("10.0.0.9"),
		Bootstrap: &rest.Config{Host: "http://127.0.0.1:1", BearerToken: "t"}, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	if config := a.Config(); config.BearerToken != "t" {
		t.Errorf("the account's credentials are lost: %+v", config)
	}
	if client, err := a.Client(context.Background()); err != nil || client == nil {
		t.Errorf("client %v, error %v", client, err)
	}
	first, err := a.ServingCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Leaf.VerifyHostname("10.0.0.9"); err != nil {
		t.Error(err)
	}
	if leaf := first.Leaf; leaf.IsCA || leaf.NotBefore.After(now.Now()) || len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
		t.Errorf("the certificate is for more than serving, or not valid yet: %+v", leaf)
	}
	for name, tc := range map[string]struct {
		after time.Duration
		same  bool
	}{"a day later it is the same": {24 * time.Hour, true}, "before it ends there is another": {61 * 24 * time.Hour, false}} {
		now.SetTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(tc.after))
		again, err := a.ServingCertificate(nil)
		if err != nil || again.Leaf.Equal(first.Leaf) != tc.same {
			t.Errorf("%s: error %v, same %v", name, err, again.Leaf.Equal(first.Leaf))
		}
		a.serving = first
	}
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		t.Errorf("a key is on the disk: %v", err)
	}
	done, stop := context.WithCancel(context.Background())
	stop()
	if err := a.Run(done); err != nil {
		t.Error(err)
	}
	if _, err := NewAccount(Options{Node: "milan"}); err == nil {
		t.Error("missing options are no error")
	}
}
