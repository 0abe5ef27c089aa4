package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/reflection"
)

const (
	home, provider = "rome", "milan"
	here, there    = "demo", "demo-rome"
)

// fakePeer is a connection that the test cuts and mends.
type fakePeer struct {
	mu          sync.Mutex
	client      client.WithWatch
	connected   bool
	epoch       int64
	version     string
	subscribers map[int]func()
}

func (p *fakePeer) Client() (client.WithWatch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return nil, errors.New("no credentials")
	}
	return p.client, nil
}

func (p *fakePeer) State() (bool, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected, p.epoch
}

func (p *fakePeer) Version() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

func (p *fakePeer) Subscribe(f func()) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := len(p.subscribers)
	p.subscribers[id] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subscribers, id)
	}
}

func (p *fakePeer) set(f func(*fakePeer)) {
	p.mu.Lock()
	before := p.connected
	f(p)
	if p.connected && !before {
		p.epoch++ // as a real peer
	}
	calls := slices.Collect(maps.Values(p.subscribers))
	p.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// recorder keeps Events.
type recorder struct {
	mu     sync.Mutex
	events []string
	// said are the messages.
	said []string
}

func (r *recorder) Event(object runtime.Object, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, message)
	r.events = append(r.events, fmt.Sprintf("%s %s %s", object.(client.Object).GetName(), kind, reason))
}

// saying are the messages with these words since the beginning.
func (r *recorder) saying(words string) (messages []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, message := range r.said {
		if strings.Contains(message, words) {
			messages = append(messages, message)
		}
	}
	return messages
}

func (r *recorder) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

// world is a home, a provider and an engine between them.
type world struct {
	*testing.T
	local, remote *cluster
	peer          *fakePeer
	events        *recorder
	engine        *Engine
	// wanted is what the engine follows.
	wanted *latest.Value[Wanted]
	stop   func()
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, local: newCluster(namespaceObject(here)), remote: newCluster(), events: &recorder{}}
	w.peer = &fakePeer{client: w.remote, connected: true, epoch: 1, version: "v1.30.0", subscribers: map[int]func(){}}
	return w
}

// start runs a new engine, as after a restart, and lets it come to rest.
func (w *world) start(adjust ...func(*Options)) {
	w.Helper()
	o := Options{Home: home, Remote: provider, NodeName: provider, Local: w.local, Peer: w.peer, Recorder: w.events, Wanted: &latest.Value[Wanted]{}}
	for _, f := range adjust {
		f(&o)
	}
	engine, err := New(o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := engine.Run(ctx); err != nil {
			w.Error(err)
		}
	}()
	w.engine, w.wanted = engine, o.Wanted
	w.stop = func() {
		cancel()
		<-done
	}
	w.setMapping(map[string]string{here: there})
	w.rest()
}

func (w *world) setMapping(mapping map[string]string) {
	w.wanted.Change(func(now *Wanted) { now.Mapping = mapping })
}

func (w *world) setProvider(provider reflection.Provider) {
	w.wanted.Change(func(now *Wanted) { now.Provider = provider })
}

func (w *world) setNotReflected(not reflection.NotReflected) {
	w.wanted.Change(func(now *Wanted) { now.NotReflected = not })
}

func (w *world) setConfig(kind string, config offloadingv1beta1.ReflectorConfig) {
	w.wanted.Change(func(now *Wanted) {
		kinds := map[string]offloadingv1beta1.ReflectorConfig{kind: config}
		for other, config := range now.Kinds {
			if other != kind {
				kinds[other] = config
			}
		}
		now.Kinds = kinds
	})
}

func (w *world) refreshNamespaces() {
	w.wanted.Change(func(now *Wanted) { now.Skipped += "another one, " })
}

// inBubble runs a test on a clock that jumps ahead whenever nothing is left to do; it fails if a goroutine is left over.
func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() {
			if w.stop != nil {
				w.stop()
			}
		}()
		f(w)
	})
}

// rest waits until nothing is left to do but timers.
func (w *world) rest() { synctest.Wait() }

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// publish writes the ledger, as the provider's controller does.
func (w *world) publish() {
	w.remote.mu.Lock()
	data := map[string]string{}
	for _, o := range w.remote.objects {
		if s, ok := o.(*corev1.Secret); ok && s.Labels[offloadingv1beta1.OriginLabel] == home {
			data[s.Name] = reflection.OriginUID(s) + " " + reflection.SecretHash(s)
		}
	}
	w.remote.mu.Unlock()
	w.remote.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: offloadingv1beta1.SecretLedger}, Data: data})
	w.rest()
}

func (w *world) equal(what string, want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wrote checks the writes at the provider, and that there were none at home.
func (w *world) wrote(what string, want ...string) {
	w.Helper()
	w.rest()
	w.equal(what, want, w.remote.took(false))
	w.equal(what+": writes at home", []string(nil), w.local.took(false))
}

func namespaceObject(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name}, Data: map[string]string{"key": value}}
}

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"key": []byte(value)},
	}
}

// at returns an empty object at the provider, to find one by.
func at[T reflection.Object](o T) T {
	o = o.DeepCopyObject().(T)
	o.SetNamespace(there)
	o.SetUID("")
	o.SetResourceVersion("")
	return o
}

// value is what key holds at the provider; empty if the object is not there.
func (w *world) value(o reflection.Object) string {
	switch found := w.remote.find(at(o)).(type) {
	case *corev1.ConfigMap:
		return found.Data["key"]
	case *corev1.Secret:
		return string(found.Data["key"])
	default:
		return ""
	}
}

// marked puts our mark on an object.
func marked[T reflection.Object](o T, originUID string) T {
	o.SetNamespace(there)
	o.SetLabels(map[string]string{offloadingv1beta1.OriginLabel: home, offloadingv1beta1.DestinationLabel: provider})
	o.SetAnnotations(map[string]string{corev1beta1.OriginUIDAnnotation: originUID})
	return o
}
