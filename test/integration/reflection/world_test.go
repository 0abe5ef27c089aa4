package reflection

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

var env fixture.Environment

// sideBySide is how many tests run at a time, unless -parallel says otherwise: they wait for API servers, whatever the processors.
const sideBySide = "10"

// Rome has what milan does not: a second IP family, and some node ports more. API servers choose none of the lowest ones by themselves.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", sideBySide)
	fixture.Main(m, &env, fixture.Options{Rome: map[string]string{
		"service-cluster-ip-range": "10.11.0.0/16,fd00:11::/112",
		"service-node-port-range":  "29990-32767",
	}, Values: map[string]any{"offloading": map[string]any{"consumers": map[string]any{"networkPolicies": true}}}})
}

const (
	home, provider = "rome", "milan"
	sliceName      = "slice"
	// localBinding is the RoleBinding of the reflection account.
	localBinding = "reflection"
	// parentName is the Service that objects of kinds with a parent hang on.
	parentName = "parent"
)

// link is the connection to the provider, which the test cuts and mends.
type link struct {
	client client.WithWatch

	mu          sync.Mutex
	cut         bool
	epoch       int64
	subscribers []func()
}

var errCut = errors.New("the test cut the connection")

func (l *link) Client() (client.WithWatch, error) {
	if connected, _ := l.State(); !connected {
		return nil, errCut
	}
	return l.client, nil
}

func (l *link) State() (connected bool, epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.cut, l.epoch
}

func (l *link) Version() string { return "v1.36.3" }

func (l *link) Subscribe(f func()) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribers = append(l.subscribers, f)
	return func() {}
}

// connect mends or cuts the connection.
func (l *link) connect(connected bool) {
	l.mu.Lock()
	if connected && l.cut {
		l.epoch++
	}
	l.cut = !connected
	subscribers := slices.Clone(l.subscribers)
	l.mu.Unlock()
	for _, f := range subscribers {
		f()
	}
}

// notebook keeps Events.
type notebook struct {
	mu     sync.Mutex
	events []string
}

// Event notes an Event.
func (n *notebook) Event(_ runtime.Object, _, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, reason+": "+message)
}

func (n *notebook) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.events, "\n")
}

// world is an offloaded namespace with an engine that reflects one kind.
type world struct {
	*testing.T
	kind            reflection.Kind
	namespace, twin string
	link            *link
	events          *notebook
	local           *fixture.User
	account         string
	engine          *mirror.Engine
	// wanted is what the engine follows.
	wanted *latest.Value[mirror.Wanted]
	stop   func()
}

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

func newWorld(t *testing.T, kindName string) *world {
	t.Helper()
	kind, known := reflection.Lookup(kindName)
	if !known {
		t.Fatalf("no kind %q", kindName)
	}
	w := &world{T: t, kind: kind, namespace: fixture.Unique("shop"), events: &notebook{}}
	w.twin = w.namespace + "-" + home
	w.account = "system:serviceaccount:" + w.namespace + ":virtual-kubelet"
	w.local = env.Rome.As(t, w.account)
	w.link = &link{client: env.Milan.Slice(t, home, sliceName), epoch: 1}
	w.createHome()
	w.createTwin()
	if kind.WriteOnly() {
		w.keepLedger()
	}
	w.start()
	return w
}

// createHome makes the namespace at home, and waits until its objects may be read.
func (w *world) createHome() {
	w.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: localBinding, Namespace: w.namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "liqo-virtual-kubelet-local"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.account}},
		},
	}
	if w.kind.Parent != "" {
		objects = append(objects, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: parentName, Namespace: w.namespace},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	}
	for _, object := range objects {
		w.createAnew(env.Rome, object)
	}
	fixture.Await(w, fixture.Patience, "the rights of reflection at home", func(ctx context.Context) (bool, string) {
		err := errors.Join(w.local.List(ctx, w.kind.NewList().(client.ObjectList), client.InNamespace(w.namespace)),
			w.local.Get(ctx, client.ObjectKey{Name: w.namespace}, &corev1.Namespace{}))
		return err == nil, fmt.Sprint(err)
	})
}

// createAnew makes an object of a namespace that may have been there before: the API server's admission may still take the new one for
// the one that went.
func (w *world) createAnew(c *fixture.Cluster, object client.Object) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "namespace "+w.namespace+" to be made anew in "+c.ID, func(ctx context.Context) (bool, string) {
		err := c.Client.Create(ctx, object)
		if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			w.Fatalf("creating %s in %s: %v", object.GetName(), c.ID, err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// createTwin makes the namespace at the provider, and waits until its objects may be read.
func (w *world) createTwin() {
	w.Helper()
	for _, object := range fixture.TwinNamespace(w.twin, home) {
		w.createAnew(env.Milan, object)
	}
	fixture.Await(w, fixture.Patience, "the rights of reflection at the provider", func(ctx context.Context) (bool, string) {
		err := w.link.client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(w.twin))
		return err == nil, fmt.Sprint(err)
	})
}

// keepLedger writes the ledger of Secrets, as the provider's controller manager does.
func (w *world) keepLedger() {
	go wait.UntilWithContext(w.Context(), func(ctx context.Context) {
		data, err := w.entries(ctx)
		if err != nil {
			return
		}
		ledger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.twin, Name: offloadingv1beta1.SecretLedger}}
		if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(ledger), ledger); apierrors.IsNotFound(err) {
			ledger.Data = data
			_ = env.Milan.Client.Create(ctx, ledger)
			return
		}
		if !maps.Equal(ledger.Data, data) {
			ledger.Data = data
			_ = env.Milan.Client.Update(ctx, ledger)
		}
	}, 100*time.Millisecond)
}

// ledgerKept waits until the ledger shows all that was written.
func (w *world) ledgerKept() {
	w.Helper()
	fixture.Await(w, fixture.Patience, "the ledger to be in step", func(ctx context.Context) (bool, string) {
		data, err := w.entries(ctx)
		ledger := &corev1.ConfigMap{}
		err = errors.Join(err, env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: w.twin, Name: offloadingv1beta1.SecretLedger}, ledger))
		return err == nil && maps.Equal(ledger.Data, data), fmt.Sprint(ledger.Data, data, err)
	})
}

// entries are what the ledger has to show.
func (w *world) entries(ctx context.Context) (map[string]string, error) {
	var secrets corev1.SecretList
	err := env.Milan.Client.List(ctx, &secrets, client.InNamespace(w.twin), client.MatchingLabels{offloadingv1beta1.OriginLabel: home})
	data := map[string]string{}
	for _, s := range secrets.Items {
		data[s.Name] = reflection.OriginUID(&s) + " " + reflection.SecretHash(&s)
	}
	return data, err
}

// start runs a new engine, as after a restart.
func (w *world) start() {
	w.Helper()
	kinds := []reflection.Kind{w.kind}
	if parent, there := reflection.Lookup(w.kind.Parent); there {
		kinds = append(kinds, parent)
	}
	w.wanted = latest.New(mirror.Wanted{Mapping: map[string]string{w.namespace: w.twin}})
	if w.kind.DefaultWorkers == 0 {
		w.wanted.Change(func(now *mirror.Wanted) {
			now.Kinds = map[string]offloadingv1beta1.ReflectorConfig{w.kind.Name: {NumWorkers: 3}}
		})
	}
	engine, err := mirror.New(mirror.Options{
		Home: home, Remote: provider, NodeName: provider, Kinds: kinds,
		Local: w.local, Peer: w.link, Recorder: w.events, Wanted: w.wanted,
	})
	fixture.Must(w, "making an engine", err)
	w.engine = engine
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("running the engine: %v", err)
		}
	})
	w.Cleanup(w.stop)
}

// restart ends the engine and runs another one.
func (w *world) restart() {
	w.Helper()
	if w.kind.WriteOnly() {
		w.ledgerKept()
	}
	w.stop()
	w.start()
}

// newObject is an empty object of the kind as it is in a cluster.
func (w *world) newObject(c *fixture.Cluster) reflection.Object {
	if c == env.Milan {
		return w.kind.RemoteKind().NewObject()
	}
	return w.kind.NewObject()
}

// put creates an object at home.
func (w *world) put(o reflection.Object) reflection.Object {
	w.Helper()
	o.SetNamespace(w.namespace)
	fixture.Must(w, "creating "+o.GetName()+" at home", env.Rome.Client.Create(w.Context(), o))
	return o
}

// edit changes an object of a cluster until nobody else's write comes between.
func (w *world) edit(c *fixture.Cluster, namespace, name string, change func(reflection.Object)) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "an edit of "+name, func(ctx context.Context) (bool, string) {
		o := w.newObject(c)
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return false, err.Error()
		}
		change(o)
		err := c.Client.Update(ctx, o)
		return err == nil, fmt.Sprint(err)
	})
}

func (w *world) editLocal(name string, change func(reflection.Object)) {
	w.Helper()
	w.edit(env.Rome, w.namespace, name, change)
}

func (w *world) editRemote(name string, change func(reflection.Object)) {
	w.Helper()
	w.edit(env.Milan, w.twin, name, change)
}

func (w *world) deleteFrom(c *fixture.Cluster, namespace, name string) {
	w.Helper()
	o := w.newObject(c)
	o.SetNamespace(namespace)
	o.SetName(name)
	fixture.Must(w, "deleting "+name, c.Client.Delete(w.Context(), o))
}

// remote reads a remote object; nil if there is none.
func (w *world) remote(ctx context.Context, name string) reflection.Object {
	o := w.newObject(env.Milan)
	if env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: w.twin, Name: name}, o) != nil {
		return nil
	}
	return o
}

// converged waits until the remote object is what the local one is translated to, and returns it.
func (w *world) converged(name string) reflection.Object {
	w.Helper()
	var remote reflection.Object
	// Something that was refused for a while is tried again after a minute at the latest.
	fixture.Await(w, 3*fixture.Patience, w.kind.Name+" "+name+" to be in step", func(ctx context.Context) (bool, string) {
		local := w.kind.NewObject()
		if err := w.local.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, local); err != nil {
			return false, err.Error()
		}
		in := reflection.Input{Local: local, Home: home, Remote: provider, RemoteNamespace: w.twin}
		if w.kind.Parent != "" {
			in.Parent = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: parentName, Namespace: w.namespace}}
		}
		result := w.kind.Translate(in)
		remote = w.remote(ctx, name)
		if remote == nil || result.Apply == nil {
			return false, fmt.Sprintf("remote object: %v; skip: %+v; events:\n%s", remote != nil, result.Skip, w.events.all())
		}
		if reflection.OriginUID(remote) != string(local.GetUID()) || w.kind.Immutable(remote, result.Apply) != "" {
			return false, "the remote object stands for another one; events:\n" + w.events.all()
		}
		rest := w.kind.Differences(remote, result.Apply)
		return len(rest) == 0, fmt.Sprintf("to change: %+v; events:\n%s", rest, w.events.all())
	})
	return remote
}

// gone waits until there is no remote object.
func (w *world) gone(name string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "the remote "+name+" to go", func(ctx context.Context) (bool, string) {
		return w.remote(ctx, name) == nil, "it is there"
	})
}

// told waits until an Event says all words.
func (w *world) told(words ...string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "an Event that says "+strings.Join(words, " and "), func(context.Context) (bool, string) {
		for event := range strings.Lines(w.events.all()) {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(event, word) }) {
				return true, ""
			}
		}
		return false, w.events.all()
	})
}

// wrote checks what the engine wrote of an object at the provider since a moment, and nothing else. What can be seen already may not be
// written down yet.
func (w *world) wrote(since fixture.Moment, name string, want ...string) {
	w.Helper()
	var seen []string
	fixture.Await(w, fixture.Patience, fmt.Sprintf("writes %v of %s", want, name), func(context.Context) (bool, string) {
		seen = w.writes(since, name)
		return len(seen) >= len(want), fmt.Sprint(seen)
	})
	if diff := cmp.Diff(want, seen); diff != "" {
		w.Errorf("writes of %s: %s", name, diff)
	}
}

// writes are what the engine wrote of an object at the provider since a moment.
func (w *world) writes(since fixture.Moment, name string) []string {
	w.Helper()
	var list []string
	for _, write := range env.Milan.Recorder.Since(w, since, func(user string) bool { return user == identity.SliceUser(home, sliceName) }) {
		if write.Namespace == w.twin && write.Name == name {
			list = append(list, write.Verb)
		}
	}
	return list
}
