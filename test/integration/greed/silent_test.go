package greed

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// V15: an answer that is not read holds a place at the API server. Whoever fills its places so waits for itself alone: another consumer is served as
// before.
func TestWhoDoesNotReadItsAnswersIsInNobodyElsesWay(t *testing.T) {
	const (
		answers = 100
		objects = 8
		size    = 900 << 10
	)
	silent, honest := newStorer(t), newStorer(t)
	namespace, others := silent.Twin(t), honest.Twin(t)
	for i := range objects {
		fixture.Must(t, "making a ConfigMap", silent.user.Create(t.Context(), silent.object("ConfigMap", namespace, fmt.Sprint("large-", i), size)))
	}
	list := func(s *storer, namespace string) func(context.Context) error {
		return func(ctx context.Context) error {
			return s.user.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.Limit(1))
		}
	}
	served := func(ask func(context.Context) error, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return ask(ctx)
	}
	begin := time.Now()
	leaveUnread(t, silent.user.Config, namespace, answers)
	fixture.Await(t, fixture.Patience, "the silent consumer to have filled its places", func(context.Context) (bool, string) {
		err := served(list(silent, namespace), 3*time.Second)
		return err != nil, "it is served"
	})
	if err := served(list(honest, others), 20*time.Second); err != nil {
		t.Errorf("another consumer is not served while one leaves its answers unread: %v", err)
	}
	// It is so still: else the others were served because nobody was in the way.
	if err := served(list(silent, namespace), time.Second); err == nil {
		t.Errorf("the silent consumer's places were free again after %s", time.Since(begin))
	}
}

// leaveUnread asks for all ConfigMaps of a namespace, so many times, and reads none of the answers.
func leaveUnread(t *testing.T, config *rest.Config, namespace string, times int) {
	t.Helper()
	// What the kernel takes in for a process that does not read has to be less than an answer.
	small := &net.Dialer{Control: func(_, _ string, connection syscall.RawConn) error {
		var failed error
		err := connection.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		if err != nil {
			return err
		}
		return failed
	}}
	own := rest.CopyConfig(config)
	own.Dial, own.DisableCompression, own.NextProtos = small.DialContext, true, []string{"http/1.1"}
	transport, err := rest.TransportFor(own)
	fixture.Must(t, "the consumer's connections", err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	for range times {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/namespaces/"+namespace+"/configmaps", http.NoBody)
		fixture.Must(t, "asking for ConfigMaps", err)
		go func() {
			// The answer is left as it is until the test ends, which closes the connection.
			if response, err := transport.RoundTrip(request); err == nil {
				<-ctx.Done()
				_ = response.Body.Close()
			}
		}()
	}
}
