package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
	"liqo.io/liqo/pkg/controller/authentication/resourceplugin"
)

// The controller manager's own client asks the sample.
func TestTheSampleDecides(t *testing.T) {
	folder, err := os.MkdirTemp("", "plugin") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	quotas := filepath.Join(folder, "quotas.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(quotas, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rome: {cpu: \"8\"}")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	address := resourceplugin.UnixScheme + filepath.Join(folder, "socket")
	go func() { ended <- run(ctx, []string{"--listen", address, "--quotas", quotas}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client, err := resourceplugin.Connect(address, "")
	if err != nil {
		t.Fatal(err)
	}
	free := map[string]string{"cpu": "7", "memory": "9Gi", "nvidia.com/gpu": "3"}
	for _, step := range []struct {
		sentence, quotas, consumer string
		want                       map[string]string
		why                        string
	}{
		{"a consumer that is named", "rome: {cpu: \"8\"}", "rome", map[string]string{"cpu": "8"}, "the quota of this consumer"},
		{"one that is not", "rome: {cpu: \"8\"}", "turin", map[string]string{"cpu": "3500m", "memory": "4608Mi", "nvidia.com/gpu": "1"}, "half of what is free"},
		{"a file that was changed", "turin: {memory: 1Gi}", "turin", map[string]string{"memory": "1Gi"}, "the quota of this consumer"},
		{"a file that is none", "turin: 7", "turin", nil, "FailedPrecondition"},
		{"an empty file", "", "turin", map[string]string{"cpu": "3500m", "memory": "4608Mi", "nvidia.com/gpu": "1"}, "half of what is free"},
	} {
		write(step.quotas)
		out, err := client.Decide(t.Context(), &resourcesv1.DecideRequest{ClusterId: step.consumer, Namespace: "liqo-tenant-" + step.consumer, Name: "a", Free: free}, grpc.WaitForReady(true))
		why := out.GetReason()
		if err != nil {
			why = err.Error()
		}
		if diff := cmp.Diff(step.want, out.GetGrant()); diff != "" || !strings.Contains(why, step.why) {
			t.Errorf("%s: %s\n%s", step.sentence, why, diff)
		}
		if err == nil && (out.GetClusterId() != step.consumer || out.GetNamespace() != "liqo-tenant-"+step.consumer || out.GetName() != "a") {
			t.Errorf("%s: it decides about %s", step.sentence, out)
		}
	}
}

// What cannot work ends at once, with a sentence.
func TestTheSampleRefuses(t *testing.T) {
	quotas := filepath.Join(t.TempDir(), "quotas.yaml")
	if err := os.WriteFile(quotas, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no quotas":               {[]string{"--listen", "unix:///s"}, "reading the quotas (--quotas)"},
		"a port without TLS":      {[]string{"--listen", "127.0.0.1:0", "--quotas", quotas}, "name a folder with certificates (--tls)"},
		"no certificates":         {[]string{"--listen", "127.0.0.1:0", "--quotas", quotas, "--tls", t.TempDir()}, "reading the certificate (--tls)"},
		"a socket that cannot be": {[]string{"--listen", "unix:///no/such/folder/s", "--quotas", quotas}, "listening (--listen)"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("ended with %v, want %q", err, tc.want)
			}
		})
	}
}
