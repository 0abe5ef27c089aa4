package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/peer"
)

// W9: a provider that shows more claims than are accepted is not followed: that is told, nothing is concluded from what it shows, and
// it is asked again a minute later. Once there are fewer, the claims that waited get their volumes.
func TestTooManyClaims(t *testing.T) {
	for name, later := range map[string]bool{"from the beginning": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var flood []runtime.Object
				for i := range 30 {
					remote, _ := provided(local(fmt.Sprintf("flood-%d", i), "gone", "pvc-gone"), "r9")
					remote.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] = "Retain"
					flood = append(flood, remote)
				}
				start := flood
				if later {
					start = flood[:10]
				}
				claims := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
				w := startWith(t, []runtime.Object{local("idle", "u2", "")}, start, func(_ *world, o *Options) { o.MaxRemoteClaims = 20 })
				synctest.Wait()
				for _, remote := range flood[len(start):] {
					if err := w.remote.Tracker().Add(remote); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if _, err := w.home.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), local("data", "u1", "pvc-u1"), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				w.mu.Lock()
				told := strings.Join(w.events, "\n")
				w.mu.Unlock()
				if n := strings.Count(told, "data: "+offloadingv1beta1.ReasonRemoteOverLimit); n != 1 {
					t.Errorf("told %d times:\n%s", n, told)
				}
				lists := 0
				for _, action := range w.remote.Actions() {
					if action.Matches("list", "persistentvolumeclaims") {
						lists++
					}
				}
				if lists > 30 {
					t.Errorf("%d lists in ten minutes", lists)
				}
				if w.reconciler.Crossed("shop") {
					t.Error("something is concluded from what is not followed")
				}
				for _, remote := range flood {
					if err := w.remote.Tracker().Delete(claims, "shop-rome", remote.(*corev1.PersistentVolumeClaim).Name); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if _, err := w.home.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), local("new", "u3", ""), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				await(t, "a volume", func(context.Context) bool { return w.told("new: " + offloadingv1beta1.ReasonVolumeProvisioned) })
			})
		})
	}
}

const (
	// flooded is how many claims of a megabyte each the provider has.
	flooded = 1000
	// bearable is how much may be held while they are read, in bytes: the budget, and a few answers.
	bearable = 256 << 20
)

// flooding is an API server with many large claims, which are made as they are asked for. It notes how much memory is in use.
type flooding struct {
	claim string // as JSON
	mu    sync.Mutex
	most  uint64
	pages int
}

func (f *flooding) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	first, _ := strconv.Atoi(query.Get("continue"))
	if limit == 0 {
		limit = flooded
	}
	survey := limit == 1 // It may come first, and opens the view.
	if survey {
		limit = 2
	}
	var stats goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&stats)
	f.mu.Lock()
	f.most = max(f.most, stats.HeapAlloc)
	if !survey {
		f.pages++
	}
	f.mu.Unlock()
	last, proceed := min(first+limit, flooded), ""
	if last < flooded {
		proceed = strconv.Itoa(last)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := fmt.Fprintf(w, `{"apiVersion":"v1","kind":"PersistentVolumeClaimList","metadata":{"resourceVersion":"7","continue":%q},"items":[`, proceed)
	for i := first; i < last && err == nil; i++ { // until the reader has had enough
		separator := ","
		if i == last-1 {
			separator = "]}"
		}
		_, err = fmt.Fprint(w, strings.ReplaceAll(f.claim, "flood", fmt.Sprintf("flood-%d", i)), separator)
	}
}

// boundedAnswers reads no more of an answer than the connection to a provider does.
type boundedAnswers struct{ next http.RoundTripper }

func (b boundedAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	if len(data) == 64<<20 {
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(nil), failing{}))
	}
	return response, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) {
	return 0, fmt.Errorf("%w: in this test", reconcile.ErrOversized)
}

type floodedPeer struct{ kube kubernetes.Interface }

func (p floodedPeer) Clients() (peer.Clients, error)             { return peer.Clients{Kube: p.kube}, nil }
func (p floodedPeer) State() peer.State                          { return peer.State{Connected: true, Epoch: 1} }
func (p floodedPeer) Subscribe(func(peer.State)) (cancel func()) { return func() {} }

// W9: a provider that shows claims of a megabyte each, a gigabyte of them, costs no more memory than the budget and a few answers, and
// none once it was given up.
func TestLargeClaimsAreNotHeld(t *testing.T) {
	remote, _ := provided(local("flood", "gone", "pvc-gone"), "r9")
	remote.Annotations["large"] = strings.Repeat("x", 1<<20)
	claim, err := json.Marshal(remote)
	if err != nil {
		t.Fatal(err)
	}
	flood := &flooding{claim: string(claim)}
	server := httptest.NewServer(flood)
	defer server.Close()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1,
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return boundedAnswers{next} }})
	if err != nil {
		t.Fatal(err)
	}
	w := startWith(t, []runtime.Object{local("data", "u1", "")}, nil, func(_ *world, o *Options) { o.Peer, o.Budget = floodedPeer{kube}, replica.NewBudget(16<<20) })
	await(t, "the flood to be told", func(context.Context) bool { return w.told("data: " + offloadingv1beta1.ReasonRemoteOverLimit) })
	flood.mu.Lock()
	most, pages := flood.most, flood.pages
	flood.mu.Unlock()
	if most > bearable {
		t.Errorf("%d MiB were in use", most>>20)
	}
	if pages < 2 {
		t.Errorf("only %d pages were asked for: this shows nothing", pages)
	}
	await(t, "the memory to be given back", func(context.Context) bool {
		var stats goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&stats)
		return w.reconciler.budget.Held() == 0 && stats.HeapAlloc < bearable/4
	})
}
