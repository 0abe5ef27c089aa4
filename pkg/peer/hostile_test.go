package peer_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/peer"
)

// W9: the bound of an answer is in bytes on the wire; in memory each byte of a hostile list becomes hundreds.
func TestNoAnswerFillsTheVirtualKubelet(t *testing.T) {
	const items = 1 << 20
	body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Repeat("{},", items-1) + `{}]}`
	var wire atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
			return
		}
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			g := gzip.NewWriter(count{w, &wire})
			_, _ = g.Write([]byte(body))
			_ = g.Close()
			return
		}
		_, _ = count{w, &wire}.Write([]byte(body))
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.URL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": "t"}}}})
	p, err := peer.New(peer.Options{ClusterID: "evil", Kubeconfig: peer.StaticSource(kubeconfig), Endpoints: identity.EndpointPolicy{AllowLoopback: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = p.Run(ctx) }()
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return p.State().Epoch != 0, nil }); err != nil {
		t.Fatalf("waiting for the connection to the provider: %v", err)
	}
	clients, err := p.Clients()
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{}, 1)
	r := replica.New(replica.Options[*corev1.Pod]{Name: "pods", Namespace: "twin", Limit: 100, Budget: replica.NewBudget(8 << 20),
		Over: func() {
			select {
			case over <- struct{}{}:
			default:
			}
		},
		Example: func() runtime.Object { return &corev1.Pod{} }, Event: func(_, _ *corev1.Pod, _ bool) {}, Synced: func() {},
		Page: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return clients.Kube.CoreV1().Pods("twin").List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return clients.Kube.CoreV1().Pods("twin").Watch(ctx, o)
		},
	})
	goruntime.GC() // What other tests left.
	var peak atomic.Uint64
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				var m goruntime.MemStats
				goruntime.ReadMemStats(&m)
				if m.HeapAlloc > peak.Load() {
					peak.Store(m.HeapAlloc)
				}
			}
		}
	}()
	go r.Run(ctx)
	select {
	case <-over:
	case <-time.After(2 * time.Minute):
		t.Error("the replica never said that it is over its limit")
	}
	close(stop)
	t.Logf("limit 100 objects, budget 8 MiB: one page of %d KiB (%d KiB on the wire) made the heap %d MiB", len(body)>>10, wire.Load()>>10, peak.Load()>>20)
	if peak.Load() > 64<<20 {
		t.Errorf("the heap was %d MiB", peak.Load()>>20)
	}
}

type count struct {
	w http.ResponseWriter
	n *atomic.Int64
}

func (c count) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return c.w.Write(p) }
