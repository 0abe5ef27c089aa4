package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/test/fakeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

const twinNamespace = "shop-rome"

// world is two fake clusters: the local one and the provider, whose ShadowPod controller is played by the test.
type world struct {
	t      *testing.T
	local  *fake.Clientset
	kube   *fake.Clientset
	dyn    *dynamicfake.FakeDynamicClient
	peer   *fakePeer
	events *eventLog
	// wanted is what the virtual kubelet follows.
	wanted latest.Value[Wanted]

	// atomic is held by each write, the test's among them: a fake reads, changes and writes.
	atomic sync.Mutex

	mu     sync.Mutex
	writes []string
	// fail is asked before and after each write of the virtual kubelet.
	fail func(n int, before bool) bool
	uids int
	// late counts the writes to what was gone by then.
	late int
	// ran counts the remote pods that there ever were.
	ran int

	// stopRemote is what the provider's kubelet does to a remote pod before that goes; nil for nothing.
	stopRemote func()

	usesChanged func(namespace, kind, name string)
	// change of the options; nil for none.
	change func(*Options)

	stop func()
	r    *Reconciler
	// api is how pods reach the local API server, placed counts what was said about the place of pods.
	api    reflection.HomeAPI
	placed map[string]int
}

type fakePeer struct {
	mu          sync.Mutex
	clients     peer.Clients
	state       peer.State
	subscribers map[int]func(peer.State)
}

func (p *fakePeer) Clients() (peer.Clients, error) { return p.clients, nil }
func (p *fakePeer) Config() (*rest.Config, error)  { return &rest.Config{Host: "https://milan"}, nil }
func (p *fakePeer) State() peer.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *fakePeer) Subscribe(f func(peer.State)) func() {
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

func (p *fakePeer) set(change func(*peer.State)) {
	p.mu.Lock()
	before := p.state
	change(&p.state)
	if p.state.Usable() && !before.Usable() {
		p.state.Epoch++ // as a real peer
	}
	state, calls := p.state, slices.Collect(maps.Values(p.subscribers))
	p.mu.Unlock()
	for _, f := range calls {
		f(state)
	}
}

type eventLog struct {
	mu   sync.Mutex
	list []string
}

func (e *eventLog) Event(_ runtime.Object, _, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, reason+": "+message)
}

func (e *eventLog) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, local: fake.NewClientset(), kube: fake.NewClientset(), events: &eventLog{}, placed: map[string]int{},
		dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{shadowpods.Resource: "ShadowPodList"}),
	}
	w.peer = &fakePeer{subscribers: map[int]func(peer.State){}, state: peer.State{Connected: true, Epoch: 1},
		clients: peer.Clients{Kube: w.kube, Dynamic: w.dyn}}
	fakeapi.NoGaps(&w.local.Fake, w.local.Tracker())
	fakeapi.NoGaps(&w.kube.Fake, w.kube.Tracker())
	fakeapi.NoGaps(&w.dyn.Fake, w.dyn.Tracker())
	w.intercept("local", &w.local.Fake, versions{w.local.Tracker(), w})
	w.intercept("remote", &w.dyn.Fake, w.dyn.Tracker())
	return w
}

// intercept makes a fake behave more like an API server (UIDs, preconditions), counts its writes and makes them fail.
func (w *world) intercept(name string, f *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	fakeapi.React(f, "*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		verb := action.GetVerb()
		if verb != "create" && verb != "delete" && verb != "patch" && verb != "update" {
			return false, nil, nil
		}
		err := w.before(name, action, tracker)
		var object runtime.Object
		if err == nil {
			object, err = w.write(action, tracker)
		}
		if apierrors.IsNotFound(err) {
			w.mu.Lock()
			w.late++
			w.mu.Unlock()
		}
		if err == nil && w.fails(false) {
			return true, nil, errors.New("connection reset by peer")
		}
		return true, object, err
	})
}

// versions counts those of objects, as an API server does.
type versions struct {
	clienttesting.ObjectTracker
	w *world
}

func (v versions) Update(gvr schema.GroupVersionResource, object runtime.Object, ns string, o ...metav1.UpdateOptions) error {
	v.w.renew(object)
	return v.ObjectTracker.Update(gvr, object, ns, o...)
}

func (v versions) Patch(gvr schema.GroupVersionResource, object runtime.Object, ns string, o ...metav1.PatchOptions) error {
	v.w.renew(object)
	return v.ObjectTracker.Patch(gvr, object, ns, o...)
}

// renew gives an object another version.
func (w *world) renew(object runtime.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uids++
	if object, err := meta.Accessor(object); err == nil {
		object.SetResourceVersion(fmt.Sprint(w.uids))
	}
}

// write does what an action says, all at once, and counts changes of a specification as an API server does.
func (w *world) write(action clienttesting.Action, tracker clienttesting.ObjectTracker) (runtime.Object, error) {
	w.atomic.Lock()
	defer w.atomic.Unlock()
	_, object, err := clienttesting.ObjectReaction(tracker)(action)
	if err != nil || action.GetVerb() != "patch" || action.GetSubresource() != "" {
		return object, err
	}
	changed, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	changed.SetGeneration(changed.GetGeneration() + 1)
	return object, tracker.Update(action.GetResource(), object, action.GetNamespace())
}

func (w *world) before(name string, action clienttesting.Action, tracker clienttesting.ObjectTracker) error {
	w.mu.Lock()
	w.writes = append(w.writes, fmt.Sprintf("%s %s %s/%s", name, action.GetVerb(), action.GetResource().Resource, action.GetSubresource()))
	w.mu.Unlock()
	if w.fails(true) {
		return errors.New("connection refused")
	}
	if create, ok := action.(clienttesting.CreateAction); ok {
		object, err := meta.Accessor(create.GetObject())
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.uids++
		object.SetUID(types.UID(fmt.Sprintf("%s-%d", name, w.uids)))
		w.mu.Unlock()
	}
	if remove, ok := action.(clienttesting.DeleteActionImpl); ok && remove.DeleteOptions.Preconditions != nil {
		live, err := tracker.Get(remove.Resource, remove.Namespace, remove.Name)
		if err != nil {
			return err
		}
		if object, err := meta.Accessor(live); err != nil || object.GetUID() != *remove.DeleteOptions.Preconditions.UID {
			return apierrors.NewConflict(remove.Resource.GroupResource(), remove.Name, errors.New("the UID in the precondition does not match"))
		}
	}
	return nil
}

func (w *world) fails(before bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fail != nil && w.fail(len(w.writes), before)
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.writes)
}

// start runs a virtual kubelet in this world.
func (w *world) start() {
	w.t.Helper()
	options := Options{Home: "rome", Remote: "milan", Node: "milan", NodeIP: "10.9.9.9", Local: w.local, Peer: w.peer, Recorder: w.events, Wanted: &w.wanted,
		UsesChanged: w.usesChanged,
		API:         func() reflection.HomeAPI { return w.api }, Placed: func(k key) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.placed[k.Name]++
		}}
	if w.change != nil {
		w.change(&options)
	}
	r, err := New(options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.r = r
	w.wanted.Set(Wanted{Workers: 2})
	w.tunnel(true)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.stop = func() {
		w.unchanged()
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the virtual kubelet ended with %v", err)
		}
		w.stop = func() {}
	}
	w.t.Cleanup(func() { w.stop() })
}

// tunnel says whether packets come to the provider's pods.
func (w *world) tunnel(works bool) {
	w.wanted.Change(func(now *Wanted) {
		now.Settings = Settings{PodPrefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, NetworkDown: !works, NetworkWatched: true}
	})
}

func (w *world) setMapping(mapping Mapping) {
	w.wanted.Change(func(now *Wanted) { now.Mapping = mapping })
}

func (w *world) offload() {
	w.setMapping(Mapping{Known: true, Desired: map[string]string{"shop": twinNamespace}, Effective: map[string]string{"shop": twinNamespace}})
}

// provider plays the ShadowPod controller: it runs what it is given, and ends it with the ShadowPod.
func (w *world) provider() {
	watcher, err := w.dyn.Tracker().Watch(shadowpods.Resource, twinNamespace)
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := w.dyn.Tracker().List(shadowpods.Resource, offloadingv1beta1.GroupVersion.WithKind("ShadowPod"), twinNamespace)
	if err != nil {
		w.t.Fatal(err)
	}
	raws, err := meta.ExtractList(list)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, raw := range raws {
		w.runRemote(raw)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			switch event.Type {
			case watch.Added:
				w.runRemote(event.Object)
			case watch.Deleted:
				object, _ := meta.Accessor(event.Object)
				if w.stopRemote != nil {
					w.stopRemote()
				}
				_ = w.kube.Tracker().Delete(podResource, twinNamespace, object.GetName())
			}
		}
	}()
	w.t.Cleanup(func() { watcher.Stop(); <-done })
}

func (w *world) runRemote(raw runtime.Object) {
	shadow := shadowpods.Typed(raw.(*unstructured.Unstructured))
	w.mu.Lock()
	w.uids++
	w.ran++
	uid := types.UID(fmt.Sprintf("pod-%d", w.uids))
	w.mu.Unlock()
	_ = w.kube.Tracker().Add(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: shadow.Name, Namespace: twinNamespace, UID: uid, Labels: shadow.Labels, Annotations: shadow.Annotations},
		Spec:       shadow.Spec.Pod,
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.0.7", HostIP: "192.0.2.1",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	})
}

func newPod(name string, uid types.UID, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: uid, Labels: map[string]string{"app": "shop"}},
		Spec: corev1.PodSpec{NodeName: "milan", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func (w *world) add(pod *corev1.Pod) {
	w.t.Helper()
	w.renew(pod)
	if err := w.local.Tracker().Add(pod); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) update(change func(*corev1.Pod)) {
	w.t.Helper()
	w.atomic.Lock()
	defer w.atomic.Unlock()
	pod := w.pod("p").DeepCopy()
	change(pod)
	w.renew(pod)
	if err := w.local.Tracker().Update(podResource, pod, "shop"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) updateRemote(change func(*corev1.Pod)) {
	w.t.Helper()
	w.atomic.Lock()
	defer w.atomic.Unlock()
	pod := w.remote("p").DeepCopy()
	change(pod)
	if err := w.kube.Tracker().Update(podResource, pod, twinNamespace); err != nil {
		w.t.Fatal(err)
	}
}

// terminate marks the pod as a user's deletion does.
func (w *world) terminate() {
	w.t.Helper()
	w.update(func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	})
}

func (w *world) force() {
	w.t.Helper()
	if err := w.local.Tracker().Delete(podResource, "shop", "p"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pod(name string) *corev1.Pod {
	object, err := w.local.Tracker().Get(podResource, "shop", name)
	if err != nil {
		return nil
	}
	return object.(*corev1.Pod)
}

func (w *world) remote(name string) *corev1.Pod {
	object, err := w.kube.Tracker().Get(podResource, twinNamespace, name)
	if err != nil {
		return nil
	}
	return object.(*corev1.Pod)
}

func (w *world) shadow(name string) *offloadingv1beta1.ShadowPod {
	object, err := w.dyn.Tracker().Get(shadowpods.Resource, twinNamespace, name)
	if err != nil {
		return nil
	}
	return shadowpods.Typed(object.(*unstructured.Unstructured))
}

// addShadow puts a ShadowPod of this node at the provider that stands for the local pod with that UID.
func (w *world) addShadow(uid string, change ...func(*offloadingv1beta1.ShadowPod)) {
	w.t.Helper()
	shadow := &offloadingv1beta1.ShadowPod{
		TypeMeta: metav1.TypeMeta{APIVersion: offloadingv1beta1.GroupVersion.String(), Kind: "ShadowPod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: twinNamespace, UID: types.UID("shadow-of-" + uid),
			Labels:      map[string]string{offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.DestinationLabel: "milan", offloadingv1beta1.NodeNameLabel: "milan"},
			Annotations: map[string]string{corev1beta1.OriginUIDAnnotation: uid}},
	}
	for _, f := range change {
		f(shadow)
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shadow)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.dyn.Tracker().Create(shadowpods.Resource, &unstructured.Unstructured{Object: raw}, twinNamespace); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits for a condition and says what it waited for.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 5*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) { return ok(), nil })
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		status, _ := json.MarshalIndent(w.pod("p"), "", " ")
		w.t.Fatalf("waited in vain: %s\nwrites:\n%s\npod: %s", what, strings.Join(w.writes, "\n"), status)
	}
}

// calm waits until all queued work is done and nothing more comes.
func (w *world) calm() {
	w.t.Helper()
	since := w.r.options.Clock.Now()
	for range 3 {
		w.r.work.Add(pulseKey)
		w.r.status.Add(pulseKey)
		w.eventually("the queues handle their pulse", func() bool { return w.r.Alive(since) && w.r.work.Len() == 0 && w.r.status.Len() == 0 })
		since = w.r.options.Clock.Now()
	}
}

func isReady(p *corev1.Pod) bool {
	if p == nil {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func newShadowList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(offloadingv1beta1.GroupVersion.WithKind("ShadowPodList"))
	return list
}

// remembered is of how many pods it is true what is remembered. The caller locks.
func remembered(r *Reconciler, is func(*state) bool) (n int) {
	for _, s := range r.memory.pods {
		if is(s) {
			n++
		}
	}
	return n
}
