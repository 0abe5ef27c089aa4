package pod

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// BenchmarkBurst tells how much processor time and memory the way of a pod takes, from its binding to its being ready and seen to be:
// one creation of a ShadowPod, one write of the status, and the events of both sides. The answers are encoded beforehand; what is
// left of the servers is HTTP.
func BenchmarkBurst(b *testing.B) {
	const pods = 300
	b.ReportAllocs()
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		play := newPlay(b, pods)
		server := httptest.NewServer(play)
		r, stop := runOn(b, server.URL)
		play.await(b, "the node's pods are read", r.Informed)
		before := processorTime(b)
		b.StartTimer()
		for i := range pods {
			play.locals.send(play.scenes[i].bound)
		}
		play.await(b, "all pods are ready and seen to be", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return play.written() >= pods && remembered(r, func(s *state) bool { return s.taken && s.patched == nil }) == pods && r.work.Len()+r.status.Len() == 0
		})
		b.StopTimer()
		used += processorTime(b) - before
		stop()
		server.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Microseconds())/float64(b.N*pods), "cpu-µs/pod")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// scene is what both API servers send of one pod.
type scene struct {
	// bound and ready are the events of the local pod, made that of the ShadowPod, runs those of the remote pod.
	bound, ready, made []byte
	runs               [][]byte
	// answer is that to the creation of the ShadowPod, patched that to the write of the status.
	answer, patched []byte
}

// play are two API servers that have pods run as soon as they are made.
type play struct {
	b                        testing.TB
	scenes                   []scene
	locals, shadows, remotes stream

	mu    sync.Mutex
	ready int
}

// stream is a watch.
type stream struct {
	watch chan []byte
	// first ends the list that a watch begins with.
	first []byte
}

func (s *stream) send(events ...[]byte) {
	for _, event := range events {
		s.watch <- event
	}
}

func (s *stream) serve(w http.ResponseWriter, request *http.Request, contentType string) {
	w.Header().Set("Content-Type", contentType+";stream=watch")
	_, _ = w.Write(s.first)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-request.Context().Done():
			return
		case event := <-s.watch:
			_, _ = w.Write(event)
			w.(http.Flusher).Flush()
		}
	}
}

var numberOf = regexp.MustCompile(`shop-5d4f8c7b9-x([0-9]{4})`)

// ServeHTTP implements http.Handler.
func (p *play) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch path := request.URL.Path; {
	case request.Method == http.MethodGet && request.URL.Query().Get("sendInitialEvents") == "true":
		switch path {
		case "/api/v1/pods":
			p.locals.serve(w, request, apiruntime.ContentTypeProtobuf)
		case "/api/v1/namespaces/" + twinNamespace + "/pods":
			p.remotes.serve(w, request, apiruntime.ContentTypeProtobuf)
		default:
			p.shadows.serve(w, request, apiruntime.ContentTypeJSON)
		}
	case request.Method == http.MethodPost:
		body, _ := io.ReadAll(request.Body)
		s := p.scene(body)
		w.Header().Set("Content-Type", apiruntime.ContentTypeJSON)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(s.answer)
		p.shadows.send(s.made)
		p.remotes.send(s.runs...)
	case request.Method == http.MethodPatch:
		s := p.scene([]byte(path))
		w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf)
		_, _ = w.Write(s.patched)
		p.locals.send(s.ready)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ready++
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (p *play) scene(naming []byte) scene {
	match := numberOf.FindSubmatch(naming)
	if match == nil {
		p.b.Errorf("no pod is named in %s", naming)
		return p.scenes[0]
	}
	i, _ := strconv.Atoi(string(match[1]))
	return p.scenes[i]
}

// written is how many pods were said to be ready.
func (p *play) written() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *play) await(b *testing.B, what string, done func() bool) {
	b.Helper()
	err := wait.PollUntilContextTimeout(b.Context(), 5*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		b.Fatalf("waited in vain until %s (%d statuses were written): %v", what, p.written(), err)
	}
}

// wire is how an API server writes objects of some kinds.
type wire struct {
	info  apiruntime.SerializerInfo
	codec serializer.CodecFactory
	gv    schema.GroupVersion
}

func (w wire) object(object apiruntime.Object) []byte {
	var buffer bytes.Buffer
	if err := w.codec.EncoderForVersion(w.info.Serializer, w.gv).Encode(object, &buffer); err != nil {
		panic(err)
	}
	return buffer.Bytes()
}

func (w wire) event(is watch.EventType, object apiruntime.Object) []byte {
	var buffer bytes.Buffer
	encoder := restwatch.NewEncoder(streaming.NewEncoder(w.info.StreamSerializer.Framer.NewFrameWriter(&buffer), w.info.StreamSerializer.Serializer),
		w.codec.EncoderForVersion(w.info.Serializer, w.gv))
	if err := encoder.Encode(&watch.Event{Type: is, Object: object}); err != nil {
		panic(err)
	}
	return buffer.Bytes()
}

func newPlay(b *testing.B, pods int) *play {
	b.Helper()
	own := apiruntime.NewScheme()
	if err := offloadingv1beta1.AddToScheme(own); err != nil {
		b.Fatal(err)
	}
	core, shadows := wire{codec: scheme.Codecs, gv: corev1.SchemeGroupVersion}, wire{codec: serializer.NewCodecFactory(own), gv: offloadingv1beta1.GroupVersion}
	core.info, _ = apiruntime.SerializerInfoForMediaType(core.codec.SupportedMediaTypes(), apiruntime.ContentTypeProtobuf)
	shadows.info, _ = apiruntime.SerializerInfoForMediaType(shadows.codec.SupportedMediaTypes(), apiruntime.ContentTypeJSON)
	marked := metav1.ObjectMeta{ResourceVersion: "500", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	p := &play{b: b, scenes: make([]scene, pods)}
	p.locals.first = core.event(watch.Bookmark, &corev1.Pod{ObjectMeta: marked})
	p.remotes.first = p.locals.first
	p.shadows.first = shadows.event(watch.Bookmark, &offloadingv1beta1.ShadowPod{ObjectMeta: marked})
	for _, s := range []*stream{&p.locals, &p.shadows, &p.remotes} {
		s.watch = make(chan []byte, 4*pods)
	}
	for i := range pods {
		local, shadow, remote := inStep(i)
		for _, object := range []metav1.Object{local, shadow, remote} {
			object.SetManagedFields(managed(fmt.Sprintf("manager-%d", i)))
		}
		bound, ready := local.DeepCopy(), local
		bound.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: remote.CreationTimestamp}}}
		ready.ResourceVersion = fmt.Sprint(10_000 + i)
		made, placed := remote.DeepCopy(), remote.DeepCopy()
		made.Status, made.Spec.NodeName = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable}, ""
		placed.Status, placed.ResourceVersion = bound.Status, fmt.Sprint(10_000+i)
		remote.ResourceVersion = fmt.Sprint(20_000 + i)
		p.scenes[i] = scene{
			bound: core.event(watch.Added, bound), ready: core.event(watch.Modified, ready), made: shadows.event(watch.Added, shadow),
			runs:   [][]byte{core.event(watch.Added, made), core.event(watch.Modified, placed), core.event(watch.Modified, remote)},
			answer: shadows.object(shadow), patched: core.object(ready),
		}
	}
	return p
}

// managed is about as much as an API server notes of who wrote what.
func managed(manager string) []metav1.ManagedFieldsEntry {
	const fields = `{"f:metadata":{"f:annotations":{".":{},"f:liqo.io/origin-uid":{}},"f:labels":{".":{},"f:app":{},"f:liqo.io/managed":{},` +
		`"f:pod-template-hash":{}}},"f:spec":{"f:pod":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},` +
		`"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},` +
		`"f:enableServiceLinks":{},"f:restartPolicy":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:tolerations":{}}}}`
	return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}}
}
