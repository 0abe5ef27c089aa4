package replication

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/peer"
)

// hostile is a provider that shows more and more ResourceSlices of ours.
type hostile struct {
	sent  atomic.Int64
	bound int64
	how   atomic.Value
	// later has it show nothing in its lists, and all of it in its watches; one has it show one object, which grows and grows.
	later, one bool
	// names has it send no annotations but status entries, two bytes each.
	names bool
}

func (h *hostile) slice(n int64) map[string]any {
	if h.one {
		n = 0
	}
	return map[string]any{"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"metadata": map[string]any{"name": fmt.Sprintf("s-%d", n), "namespace": "liqo-tenant-rome", "uid": fmt.Sprint(n), "resourceVersion": "1",
			"labels":      map[string]string{"liqo.io/originID": "rome", "liqo.io/replicated": "true"},
			"annotations": map[string]string{"a": strings.Repeat("x", 20<<10)}}}
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/version":
		_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
	case strings.HasSuffix(r.URL.Path, "/resourceslices") && r.URL.Query().Get("watch") == "true":
		h.how.Store("watch, sendInitialEvents=" + r.URL.Query().Get("sendInitialEvents"))
		for h.sent.Load() < h.bound && r.Context().Err() == nil {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": h.slice(h.sent.Add(1))})
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/resourceslices"):
		h.how.Store("pages")
		if h.later {
			_, _ = w.Write([]byte(`{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSliceList","metadata":{"resourceVersion":"1"},"items":[]}`))
			return
		}
		if h.names {
			_, _ = w.Write([]byte(`{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSliceList","metadata":{"resourceVersion":"1"},"items":[{"status":{"conditions":[` +
				strings.Repeat("{},", 1<<20) + `{}]}}]}`))
			return
		}
		if h.sent.Load()+500 > h.bound {
			<-r.Context().Done()
			return
		}
		// One after the other: the memory of this test is not what is measured.
		_, _ = w.Write([]byte(`{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSliceList","metadata":{"resourceVersion":"1","continue":"more"},"items":[`))
		for range 499 {
			_ = json.NewEncoder(w).Encode(h.slice(h.sent.Add(1)))
			_, _ = w.Write([]byte(","))
		}
		_ = json.NewEncoder(w).Encode(h.slice(h.sent.Add(1)))
		_, _ = w.Write([]byte("]}"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// W9: no hostile provider fills the memory of the controller manager, which serves all peers, tenants and webhooks.
func TestNoProviderFillsTheControllerManager(t *testing.T) {
	const bound = 40_000 // 800 MB, so that this machine survives
	for name, h := range map[string]*hostile{
		"pages without end":              {bound: bound},
		"events without end":             {bound: bound, later: true},
		"an object that changes forever": {bound: bound / 8, later: true, one: true},
		"an object of empty conditions":  {bound: bound, names: true},
	} {
		t.Run(name, func(t *testing.T) { h.attack(t) })
	}
}

func (h *hostile) attack(t *testing.T) {
	server := httptest.NewTLSServer(h)
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.URL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": "t"}}}})
	scheme := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	p, err := peer.New(peer.Options{ClusterID: "evil", Kubeconfig: peer.StaticSource(kubeconfig), Scheme: scheme, Mapper: mapper(),
		Endpoints: identity.EndpointPolicy{AllowLoopback: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = p.Run(ctx) }()
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return p.State().Epoch != 0, nil }); err != nil {
		t.Fatalf("waiting for the connection to the provider: %v", err)
	}
	f := &reflector{target: target{clusterID: "evil", namespace: "liqo-tenant-evil", remoteNamespace: "liqo-tenant-rome"},
		home: &Reconciler{client: fake.NewClientBuilder().WithScheme(scheme).Build(), options: Options{ClusterID: "rome", Clock: clock.RealClock{}}}, peer: p, kinds: kinds(), nudge: make(chan struct{}, 1),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]())}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	if err := f.connect(ctx, p.State().Epoch); err != nil {
		t.Fatal(err)
	}
	over := false
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
		over = reconcile.ReasonOf(f.flooded()) == offloadingv1beta1.ReasonRemoteOverLimit
		return over || !h.names && h.sent.Load() >= h.bound, nil
	})
	if err != nil {
		t.Fatalf("waiting until the peer is not followed any more, or has sent all; it sent %d objects: %v", h.sent.Load(), err)
	}
	t.Logf("the provider sent %d objects by %v; the heap grew by %d MiB", h.sent.Load(), h.how.Load(), (peak-before)>>20)
	if held := peak - before; held > 64<<20 {
		t.Errorf("no bound: %d MiB of one peer", held>>20)
	}
	if !over && !h.one {
		t.Error("it does not say RemoteOverLimit")
	}
	if _, known := f.copyOf(item{0, "s-1"}); over && known {
		t.Error("something is concluded from what such a peer shows")
	}
}
