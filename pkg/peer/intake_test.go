package peer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// bar is by how much a peer may make the heap grow, in bytes.
const bar = 64 << 20

// hostile is a provider that answers everything but /version with one thing.
func hostile(t *testing.T, answer http.HandlerFunc) Clients {
	t.Helper()
	s := &server{status: http.StatusOK, arrived: make(chan struct{}, 1000)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			s.serve(w, r)
			return
		}
		answer(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	p, err := New(Options{ClusterID: "evil", Mapper: mapper, Kubeconfig: StaticSource(s.kubeconfig(t, nil)), Endpoints: identity.EndpointPolicy{AllowLoopback: true},
		RequestTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan State, 100)
	p.Subscribe(func(s State) { states <- s })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	await(t, states, "connected", connected)
	clients, err := p.Clients()
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// growth is by how much the heap grows meanwhile.
func growth(f func()) int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			goruntime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-done
	return int64(peak) - int64(before)
}

func pods(item string, count int) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Repeat(item+",", count-1) + item + `]}`
}

// proto is a list of so many empty Pods, or a Pod of so many empty containers, as protobuf.
func proto(kind string, raw []byte) string {
	data, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: kind, APIVersion: "v1"}, Raw: raw}).Marshal()
	if err != nil {
		panic(err)
	}
	return "k8s\x00" + string(data)
}

func sends(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

// endless sends one thing again and again.
func endless(code int, kind, head, part string) http.HandlerFunc {
	part = strings.Repeat(part, 1+4096/len(part))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, err := io.WriteString(w, head)
		for sent := 0; err == nil && sent < 1<<30 && r.Context().Err() == nil; sent += len(part) {
			_, err = io.WriteString(w, part)
		}
	}
}

func TestNoAnswerFillsMemory(t *testing.T) {
	const pb = "application/vnd.kubernetes.protobuf"
	squeezed := &bytes.Buffer{}
	z := gzip.NewWriter(squeezed)
	_, _ = io.WriteString(z, pods("{}", 1<<20))
	_ = z.Close()
	list := func(c Clients) error {
		_, err := c.Kube.CoreV1().Pods("twin").List(t.Context(), metav1.ListOptions{})
		return err
	}
	get := func(c Clients) error {
		_, err := c.Kube.CoreV1().Pods("twin").Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}
	raw := func(c Clients) error {
		object := &corev1.Pod{}
		return c.Client.Get(t.Context(), client.ObjectKey{Namespace: "twin", Name: "a"}, object)
	}
	watch := func(c Clients) error {
		w, err := c.Kube.CoreV1().Pods("twin").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		defer w.Stop()
		for event := range w.ResultChan() {
			if event.Type != apiwatch.Error {
				return nil
			}
		}
		return errors.New("the watch ended")
	}
	logs := func(c Clients) error {
		_, err := c.Kube.CoreV1().Pods("twin").GetLogs("a", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
		return err
	}
	inPod := func(array, item string) string {
		return `{"kind":"Pod","apiVersion":"v1","spec":{"` + array + `":[` + strings.Repeat(item+",", 1<<20) + item + `]}}`
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		ask    func(Clients) error
	}{
		"a list of empty objects": {sends("application/json", pods("{}", 1<<20)), list},
		"the same as protobuf":    {sends(pb, proto("PodList", bytes.Repeat([]byte{0x12, 0}, 1<<20))), list},
		"the same compressed": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			sends("application/json", squeezed.String())(w, r)
		}, list},
		"an object of empty containers":          {sends("application/json", inPod("containers", "{}")), get},
		"an object of empty containers, untyped": {sends("application/json", inPod("containers", "{}")), raw},
		"the same as protobuf, broken off": {sends(pb, proto("Pod", append(binary.AppendUvarint([]byte{0x12}, 2<<20),
			bytes.Repeat([]byte{0x12, 0}, (1<<20)-10)...))), get},
		"an object of empty texts":       {sends("application/json", inPod("imagePullSecrets", `{"name":""}`)), get},
		"an object nested without end":   {endless(200, "application/json", `{"spec":`, `[`), get},
		"a text without end":             {endless(200, "application/json", `{"kind":"`, "x"), get},
		"an error without end":           {endless(500, "text/plain", "", "x"), get},
		"an error as YAML":               {endless(500, "application/yaml", "", "- {}\n"), get},
		"an object as YAML":              {sends("application/yaml", "items:\n"+strings.Repeat("- {}\n", 1<<20)), list},
		"a watch refused without end":    {endless(500, "application/json", `{"message":"`, "x"), watch},
		"logs refused without end":       {endless(403, "application/json", `{"message":"`, "x"), logs},
		"an event without end":           {endless(200, "application/json", `{"type":"ADDED","object":{"a":"`, "x"), watch},
		"an event of empty containers":   {sends("application/json", `{"type":"ADDED","object":`+inPod("containers", "{}")+"}"), watch},
		"an event that says it is large": {endless(200, pb+";stream=watch", "\x7f\xff\xff\xff", "x"), watch},
		"headers without end": {func(w http.ResponseWriter, r *http.Request) {
			for i := range 1000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 4<<10))
			}
			sends("application/json", "{}")(w, r)
		}, get},
	} {
		t.Run(name, func(t *testing.T) {
			clients := hostile(t, tc.answer)
			var failures [8]error
			more := growth(func() {
				var all sync.WaitGroup
				for i := range failures {
					all.Go(func() {
						if failures[i] = tc.ask(clients); failures[i] == nil {
							t.Error("it was taken in")
						}
					})
				}
				all.Wait()
			})
			t.Logf("grew by %d MiB: %.200v", more>>20, failures[0])
			if more > bar {
				t.Errorf("the heap grew by %d MiB", more>>20)
			}
		})
	}
}

// What a peer sends on many streams while nobody reads them is bounded, too.
func TestStreamsThatNobodyReadsFillNoMemory(t *testing.T) {
	var sent atomic.Int64
	part := strings.Repeat("x", 16<<10)
	clients := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for n, err := 0, error(nil); err == nil && n < 8<<20; {
			n, err = io.WriteString(w, part)
			sent.Add(int64(n))
		}
	})
	for range 20 {
		stream, err := clients.Kube.CoreV1().Pods("twin").GetLogs("a", &corev1.PodLogOptions{}).Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
	}
	last := int64(-1)
	err := wait.PollUntilContextTimeout(t.Context(), 300*time.Millisecond, time.Minute, false, func(context.Context) (bool, error) {
		before := last
		last = sent.Load()
		return last == before, nil
	})
	if err != nil {
		t.Fatalf("waiting until the peer sends no more; it sent %d KiB: %v", last>>10, err)
	}
	if most := int64(20 * (maxStreamBuffer + 64<<10)); last > most {
		t.Errorf("%d KiB were taken in unread, want at most %d", last>>10, most>>10)
	}
}

// What API servers send passes unchanged, in whatever portions it comes.
func TestHonestAnswersPass(t *testing.T) {
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "twin",
		Annotations: map[string]string{"text": strings.Repeat(`[{"\`, 50<<10)}}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, 100)}}
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for range 5 {
		list.Items = append(list.Items, pod)
	}
	clients := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" {
			kind := "application/json"
			if strings.Contains(r.Header.Get("Accept"), "protobuf") {
				kind = "application/vnd.kubernetes.protobuf"
			}
			info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kind)
			data, _ := runtime.Encode(info.Serializer, list)
			sends(kind, string(data))(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for i := range 10 {
			event, _ := json.Marshal(map[string]any{"type": "ADDED", "object": pod})
			half := (i * len(event)) / 10
			_, _ = w.Write(event[:half])
			w.(http.Flusher).Flush()
			_, _ = w.Write(append(event[half:], '\n'))
		}
	})
	got, err := clients.Kube.CoreV1().Pods("twin").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(got.Items) != 5 || got.Items[4].Annotations["text"] != pod.Annotations["text"] {
		t.Errorf("protobuf: %v", err)
	}
	typed := &corev1.PodList{}
	if err := clients.Client.List(t.Context(), typed, client.InNamespace("twin")); err != nil || len(typed.Items) != 5 {
		t.Errorf("JSON: %v", err)
	}
	w, err := clients.Kube.CoreV1().Pods("twin").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for event := range w.ResultChan() {
		if seen, is := event.Object.(*corev1.Pod); !is || seen.Annotations["text"] != pod.Annotations["text"] {
			t.Fatalf("an event of %T", event.Object)
		}
		events++
	}
	if events != 10 {
		t.Errorf("%d events", events)
	}
}

// Frames of protobuf are told apart, and what is large in them is weighed inside of both envelopes.
func TestEventsAsProtobuf(t *testing.T) {
	frame := func(event string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
	}
	small := proto("WatchEvent", []byte("\x0a\x05ADDED\x12\x02\x0a\x00"))
	length, weight, err := protoEvents{}.cut(append(frame(small), "rest"...), false)
	if length != 4+len(small) || weight == 0 || err != nil {
		t.Errorf("%d bytes of %d, %v", length, 4+len(small), err)
	}
	pod := proto("Pod", append(binary.AppendUvarint([]byte{0x12}, 100_000), bytes.Repeat([]byte{0x12, 0}, 50_000)...))
	extension := append(binary.AppendUvarint([]byte{0x0a}, uint64(len(pod))), pod...)
	large := proto("WatchEvent", append(binary.AppendUvarint([]byte("\x0a\x05ADDED\x12"), uint64(len(extension))), extension...))
	if _, _, err := (protoEvents{}).cut(frame(large), false); !errors.Is(err, reconcile.ErrOversized) {
		t.Errorf("50000 containers: %v", err)
	}
}

func FuzzScale(f *testing.F) {
	f.Add([]byte(`{"a":[{},"\"",[1]]}x`))
	f.Add([]byte(proto("Pod", []byte{0x12, 0, 0x12, 0})))
	f.Add([]byte("]]}}[[{{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s scale
		s.protobuf(data)
		for name, cutter := range map[string]framing{"whole": &jsonEvents{whole: true}, "events": &jsonEvents{}, "protobuf": protoEvents{}} {
			length, _, err := cutter.cut(data, true)
			if length < 0 || length > len(data) || err == nil && length == 0 && len(data) > 0 {
				t.Errorf("%s: %d of %d bytes, %v", name, length, len(data), err)
			}
		}
	})
}
