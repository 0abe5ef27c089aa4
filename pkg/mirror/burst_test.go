package mirror

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/reflection"
)

// burstServer is an API server over TLS, as far as creating objects and watching them goes: what the engine and its clients do for an
// object is what there is to measure.
type burstServer struct {
	*httptest.Server
	codec *protobuf.Serializer
	raw   *protobuf.RawSerializer

	mu       sync.Mutex
	version  int
	created  int
	watchers map[string][]chan []byte
	full     chan struct{}
	want     int
}

func newBurstServer(b *testing.B) *burstServer {
	s := &burstServer{
		codec: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), raw: protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme),
		watchers: map[string][]chan []byte{}, full: make(chan struct{}, 1),
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	b.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *burstServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	switch {
	case r.Method == http.MethodPost:
		s.create(w, r)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	default:
		var list runtime.Object = &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		_ = s.codec.Encode(list, w)
	}
}

func (s *burstServer) create(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	object, gvk, err := s.codec.Decode(body, nil, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	accessor, _ := meta.Accessor(object)
	s.mu.Lock()
	s.version++
	version := s.version
	s.mu.Unlock()
	accessor.SetUID(types.UID("7f3c1f6e-" + strconv.Itoa(version)))
	accessor.SetResourceVersion(strconv.Itoa(version + 1))
	accessor.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:key":{}},"f:metadata":{"f:annotations":{".":{},"f:liqo.io/origin-uid":{}},"f:labels":{".":{}}}}`)}})
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	frame := s.frame(object)
	w.WriteHeader(http.StatusCreated)
	_ = s.codec.Encode(object, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created++
	for _, watcher := range s.watchers[r.URL.Path] {
		watcher <- frame
	}
	if s.created == s.want {
		s.full <- struct{}{}
	}
}

// frame is a watch event as it travels.
func (s *burstServer) frame(object runtime.Object) []byte {
	raw, err := runtime.Encode(s.codec, object)
	if err != nil {
		panic(err)
	}
	event, err := runtime.Encode(s.raw, &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}})
	if err != nil {
		panic(err)
	}
	return append([]byte{byte(len(event) >> 24), byte(len(event) >> 16), byte(len(event) >> 8), byte(len(event))}, event...)
}

func (s *burstServer) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	events := make(chan []byte, 10000)
	s.mu.Lock()
	s.watchers[r.URL.Path] = append(s.watchers[r.URL.Path], events)
	s.mu.Unlock()
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			_, _ = w.Write(event)
			w.(http.Flusher).Flush()
		}
	}
}

// BenchmarkBurst measures what it takes to create objects at the provider that were created at home, over HTTP/2 and TLS, the test's
// server included: go test -run '^$' -bench Burst -cpuprofile cpu.out ./pkg/mirror
func BenchmarkBurst(b *testing.B) {
	for name, object := range map[string]func(i int) reflection.Object{
		"configmap": func(i int) reflection.Object { return configMap(fmt.Sprintf("a-%d", i), "1") },
		"secret":    func(i int) reflection.Object { return secret(fmt.Sprintf("a-%d", i), "1") },
	} {
		b.Run(name, func(b *testing.B) {
			kind, _ := reflection.Lookup(name)
			server := newBurstServer(b)
			server.want = b.N
			mapper := meta.NewDefaultRESTMapper(nil)
			for _, gvk := range []schema.GroupVersionKind{kind.GVK, corev1.SchemeGroupVersion.WithKind("ConfigMap")} {
				mapper.Add(gvk, meta.RESTScopeNamespace)
			}
			remote, err := client.NewWithWatch(&rest.Config{
				Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, UserAgent: "bench",
			}, client.Options{Scheme: scheme.Scheme, Mapper: mapper})
			if err != nil {
				b.Fatal(err)
			}
			local := newCluster(namespaceObject(here))
			peer := &fakePeer{client: remote, connected: true, epoch: 1, version: "v1.36.0", subscribers: map[int]func(){}}
			engine, err := New(Options{
				Home: home, Remote: provider, NodeName: provider, Local: local, Peer: peer, Kinds: []reflection.Kind{kind},
				Wanted: latest.New(Wanted{
					Kinds:   map[string]offloadingv1beta1.ReflectorConfig{name: {NumWorkers: 10, Type: offloadingv1beta1.DenyList}},
					Mapping: map[string]string{here: there},
				}),
			})
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- engine.Run(b.Context()) }()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				local.put(object(i))
			}
			select {
			case <-server.full:
			case <-time.After(time.Minute):
				server.mu.Lock()
				defer server.mu.Unlock()
				b.Fatalf("%d of %d were created within a minute", server.created, b.N)
			}
			b.StopTimer()
		})
	}
}
