package event

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/fakeapi"
)

const (
	home, provider = "rome", "milan"
	here, there    = "shop", "shop-rome"
)

// world is a home, whose Events are kept and whose writes are counted, and a provider, whose watches the test feeds.
type world struct {
	*testing.T
	peer    *fakePeer
	locals  *fakeLocals
	carrier *Carrier
	// wanted is what the carrier follows.
	wanted *latest.Value[Wanted]
	remote *fake.Clientset
	stop   func()

	mu     sync.Mutex
	events map[string]*corev1.Event
	writes []string
	fail   func(write string) error
	// streams are the open watches, each with the version that it began at.
	streams []*stream
	// version is what the provider answers to lists.
	version string
	lists   int
}

type stream struct {
	*watch.FakeWatcher
	from string
}

type fakePeer struct {
	mu          sync.Mutex
	clients     peer.Clients
	state       peer.State
	subscribers []func(peer.State)
}

func (p *fakePeer) Clients() (peer.Clients, error) { return p.clients, nil }

func (p *fakePeer) State() peer.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *fakePeer) Subscribe(f func(peer.State)) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, f)
	return func() {}
}

func (p *fakePeer) set(connected bool, epoch int64) {
	p.mu.Lock()
	p.state = peer.State{Connected: connected, Epoch: epoch}
	calls := slices.Clone(p.subscribers)
	p.mu.Unlock()
	for _, f := range calls {
		f(p.State())
	}
}

type fakeLocals struct {
	mu      sync.Mutex
	objects map[string]reflection.Object
}

func (l *fakeLocals) Find(_ string, target corev1.ObjectReference) (reflection.Object, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	object, ok := l.objects[target.Kind+"/"+target.Namespace+"/"+target.Name]
	return object, ok
}

func (l *fakeLocals) Crossed(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, object := range l.objects {
		if object.GetNamespace() == namespace {
			return true
		}
	}
	return false
}

func (l *fakeLocals) add(kind string, object reflection.Object) {
	l.addAs(kind, object.GetName(), object)
}

// addAs adds an object that has another name at the provider.
func (l *fakeLocals) addAs(kind, remoteName string, object reflection.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objects[kind+"/"+object.GetNamespace()+"/"+remoteName] = object
}

func localPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name, UID: types.UID("local-" + name)}}
}

// inBubble runs a test on a clock that jumps ahead whenever nothing is left to do; it fails if a goroutine is left over.
func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, events: map[string]*corev1.Event{}, version: "100", locals: &fakeLocals{objects: map[string]reflection.Object{}}}
		w.remote = fake.NewClientset()
		fakeapi.React(&w.remote.Fake, "list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lists++
			return true, &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: w.version}}, nil
		})
		w.remote.PrependWatchReactor("events", func(action clienttesting.Action) (bool, watch.Interface, error) {
			s := &stream{watch.NewFake(), action.(clienttesting.WatchActionImpl).ListOptions.ResourceVersion}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.streams = append(w.streams, s)
			return true, s, nil
		})
		w.peer = &fakePeer{clients: peer.Clients{Kube: w.remote}, state: peer.State{Connected: true, Epoch: 1}}
		w.locals.add("Pod", localPod("web"))
		defer func() {
			if w.stop != nil {
				w.stop()
			}
		}()
		f(w)
	})
}

// start runs a new carrier, as after a restart.
func (w *world) start(adjust ...func(*Options)) {
	w.Helper()
	o := Options{
		Home: home, Remote: provider, NodeName: provider, Events: w.local().CoreV1(), Peer: w.peer, Locals: w.locals,
		Wanted: latest.New(Wanted{Config: offloadingv1beta1.ReflectorConfig{NumWorkers: 3}}),
	}
	for _, f := range adjust {
		f(&o)
	}
	carrier, err := New(o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error)
	go func() { done <- carrier.Run(ctx) }()
	w.carrier = carrier
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
		w.stop = nil
	}
	w.wanted = o.Wanted
	w.wanted.Change(func(now *Wanted) { now.Mapping = map[string]string{here: there} })
	synctest.Wait()
}

// local is a client of the home, which keeps Events as an API server does.
func (w *world) local() *fake.Clientset {
	c := fake.NewClientset()
	fakeapi.React(&c.Fake, "create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*corev1.Event).DeepCopy()
		return true, event, w.write("create", event.Name, func(old *corev1.Event) (*corev1.Event, error) {
			if old != nil {
				return nil, apierrors.NewAlreadyExists(corev1.Resource("events"), event.Name)
			}
			return event, nil
		})
	})
	fakeapi.React(&c.Fake, "patch", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		return true, &corev1.Event{}, w.write("patch", patch.GetName(), func(old *corev1.Event) (*corev1.Event, error) {
			if old == nil {
				return nil, apierrors.NewNotFound(corev1.Resource("events"), patch.GetName())
			}
			return patched(old, patch.GetPatch())
		})
	})
	return c
}

func patched(old *corev1.Event, raw []byte) (*corev1.Event, error) {
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Event").GroupKind(), old.Name, nil)
	}
	event := &corev1.Event{}
	return event, json.Unmarshal(after, event)
}

func (w *world) write(verb, name string, do func(old *corev1.Event) (*corev1.Event, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, verb)
	if w.fail != nil {
		if err := w.fail(verb); err != nil {
			return err
		}
	}
	event, err := do(w.events[name])
	if err == nil {
		w.events[name] = event
	}
	return err
}

// took returns the writes since the last call.
func (w *world) took() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	writes := w.writes
	w.writes = nil
	return writes
}

// all returns the Events that are at home, in order of their names.
func (w *world) all() []*corev1.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []*corev1.Event
	for _, name := range slices.Sorted(maps.Keys(w.events)) {
		events = append(events, w.events[name])
	}
	return events
}

// opened returns all watches that were opened so far.
func (w *world) opened() []*stream {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.streams)
}

// live is the watch that was opened last.
func (w *world) live() *stream {
	w.Helper()
	streams := w.opened()
	if len(streams) == 0 {
		w.Fatal("no watch was opened")
	}
	return streams[len(streams)-1]
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var versions = 100

// event is what a kubelet at the provider writes.
func event(id, kind, reason, message string, change ...func(*corev1.Event)) *corev1.Event {
	versions++
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: there, Name: "web." + id, UID: types.UID(id), ResourceVersion: fmt.Sprint(versions)},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: there, Name: "web", UID: "remote"},
		Type:           kind, Reason: reason, Message: message, Count: 1,
		Source:         corev1.EventSource{Component: "kubelet", Host: "worker"},
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}
	for _, f := range change {
		f(e)
	}
	return e
}
