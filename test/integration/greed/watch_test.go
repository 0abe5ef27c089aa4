package greed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// T39, V15: a watch that is open takes no place at a priority level, so Kubernetes does not bound how many a consumer has. Where consumers have an API
// server of their own (docs/guide/api-server-for-consumers.md) the others do not send to them.
func TestWatchesAtTheConsumersOwnAPIServerCostTheOthersNothing(t *testing.T) {
	const (
		watches, size = 500, 900 << 10
		writes        = 8
	)
	s := newStorer(t)
	namespace := s.Twin(t)
	server := env.Environment.Lab.PID("milan/kube-apiserver")
	host, own := anotherAPIServer(t, server)

	config := rest.CopyConfig(s.user.Config)
	config.Host = host
	user, err := client.New(config, client.Options{Scheme: fixture.Scheme})
	fixture.Must(t, "making a client of the consumers' API server", err)
	big := s.object("ConfigMap", namespace, "big", size)
	fixture.Await(t, fixture.Patience, "the consumers' API server to let a consumer write", func(ctx context.Context) (bool, string) {
		err := user.Create(ctx, big.DeepCopyObject().(client.Object))
		return err == nil || apierrors.IsAlreadyExists(err), fmt.Sprint(err)
	})
	received := watchMany(t, config, namespace, watches)
	await := func(what string, times int) {
		fixture.Await(t, fixture.Patience, "each watch to have "+what, func(context.Context) (bool, string) {
			got := received()
			return got >= int64(watches*times*size), fmt.Sprintf("%d MiB came", got>>20)
		})
	}
	await("the ConfigMap", 1)

	here, there := -processorOf(t, server), -processorOf(t, own)
	for i := range writes {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"write":"%d"}}}`, i))
		fixture.Must(t, "writing the ConfigMap", user.Patch(t.Context(), big, patch))
	}
	await("each write", 1+writes)
	here, there = here+processorOf(t, server), there+processorOf(t, own)
	t.Logf("%d writes of %d KiB to %d watches: the consumers' API server spent %s of processor time, the other one %s", writes, size>>10, watches, there, here)
	if here*2 > there {
		t.Errorf("the provider's API server spent %s of processor time on watches that another one serves for %s", here, there)
	}
}

// anotherAPIServer starts one more API server beside a running one, as docs/guide/api-server-for-consumers.md says, and returns its URL and process.
func anotherAPIServer(t *testing.T, beside int) (host string, pid int) {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", beside))
	fixture.Must(t, "reading how the API server was started", err)
	port := fixture.FreePort(t)
	arguments, address := []string{}, ""
	for argument := range strings.SplitSeq(strings.TrimRight(string(line), "\x00"), "\x00") {
		switch name, value, _ := strings.Cut(argument, "="); name {
		case "--secure-port":
			argument = fmt.Sprintf("--secure-port=%d", port)
		case "--bind-address":
			address = value
		case "--endpoint-reconciler-type":
			continue
		case "--audit-log-path":
			argument = name + "=" + filepath.Join(t.TempDir(), "audit.log")
		}
		arguments = append(arguments, argument)
	}
	command := exec.Command(arguments[0], append(arguments[1:], "--endpoint-reconciler-type=none")...)
	var said bytes.Buffer
	command.Stderr = &said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fixture.Must(t, "starting another API server", command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(said.String()[max(0, said.Len()-2000):])
		}
	})
	return fmt.Sprintf("https://%s:%d", address, port), command.Process.Pid
}

// watchMany opens watches of a namespace's ConfigMaps from now on, and returns how to ask how many bytes they received.
func watchMany(t *testing.T, config *rest.Config, namespace string, count int) (received func() int64) {
	t.Helper()
	transport, err := rest.TransportFor(config)
	fixture.Must(t, "the consumer's connections", err)
	total := &total{}
	for range count {
		url := config.Host + "/api/v1/namespaces/" + namespace + "/configmaps?watch=1&fieldSelector=metadata.name%3Dbig"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		fixture.Must(t, "asking for a watch", err)
		answer, err := transport.RoundTrip(request)
		fixture.Must(t, "opening a watch", err)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("a watch was answered with %s", answer.Status)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		go func() { _, _ = io.Copy(total, answer.Body) }()
	}
	return total.bytes.Load
}

// total counts what is written to it.
type total struct{ bytes atomic.Int64 }

// Write implements io.Writer.
func (t *total) Write(p []byte) (int, error) {
	t.bytes.Add(int64(len(p)))
	return len(p), nil
}
