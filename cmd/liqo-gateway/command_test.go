package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"liqo.io/liqo/pkg/netlink"
)

func parsed(t *testing.T, args ...string) flags {
	t.Helper()
	var f flags
	set := pflag.NewFlagSet("liqo-gateway", pflag.ContinueOnError)
	f.register(set)
	if err := set.Parse(append([]string{"--name=milan", "--namespace=liqo-tenant-milan", "--remote-cluster-id=milan", "--mode=server"}, args...)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPod(t *testing.T) {
	t.Setenv("POD_IP", "10.244.1.200")
	t.Setenv("HOST_IP", "172.31.1.1")
	t.Setenv("NODE_NAME", "node-1")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a server":            {nil, "10.244.1.200 node-1 172.31.1.1 true 51840 6091 <nil>"},
		"a client":            {[]string{"--mode=client"}, "10.244.1.200 node-1 172.31.1.1 false 0 6091 <nil>"},
		"other ports":         {[]string{"--listen-port=1", "--overlay-port=65535"}, "10.244.1.200 node-1 172.31.1.1 true 1 65535 <nil>"},
		"no end of a tunnel":  {[]string{"--mode=both"}, "--mode must be server or client"},
		"no name":             {[]string{"--name="}, "--name must be given"},
		"no peer":             {[]string{"--remote-cluster-id="}, "--remote-cluster-id must be given"},
		"a port that is none": {[]string{"--overlay-port=65536"}, "--overlay-port must be a port, from 1 to 65535"},
	} {
		f := parsed(t, tc.args...)
		pod, err := f.pod()
		if text := fmt.Sprint(pod.Address, pod.Node, " ", pod.Host, pod.Server, pod.ListenPort, pod.Port, err); !strings.HasSuffix(strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(tc.want, " ", "")) {
			t.Errorf("%s: %s, want %s", name, text, tc.want)
		}
	}
	t.Setenv("HOST_IP", "")
	f := parsed(t)
	if _, err := f.pod(); err == nil || !strings.Contains(err.Error(), "the environment variable HOST_IP must hold an address") {
		t.Errorf("without HOST_IP: %v", err)
	}
}

func TestKeys(t *testing.T) {
	f := parsed(t, "--keys="+t.TempDir())
	write := func(raw []byte) {
		if err := os.WriteFile(filepath.Join(f.keys, "privateKey"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.readKey(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	write([]byte("as text"))
	if _, err := f.readKey(); err == nil || err.Error() != "the gateway's key has 7 bytes, not 32" {
		t.Errorf("of a short key: %v", err)
	}
	one, other := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("other"))
	write(one[:])
	if key, err := f.readKey(); err != nil || key != netlink.PrivateKey(one) {
		t.Errorf("%v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		go func() { ended <- f.watchKey(t.Context(), netlink.PrivateKey(one)) }()
		time.Sleep(2*keyEvery + 1)
		write([]byte("half"))
		time.Sleep(keyEvery)
		if len(ended) > 0 {
			t.Errorf("ended without another key: %v", <-ended)
		}
		write(other[:])
		if err := <-ended; !errors.Is(err, errKeyChanged) {
			t.Errorf("ended with %v", err)
		}
	})
}
