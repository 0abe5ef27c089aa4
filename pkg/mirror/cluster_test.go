package mirror

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// cluster behaves like an API server as far as the engine uses one: versions, UIDs, preconditions, JSON patches with tests,
// dry runs, immutable fields, label-selected watches with history. It counts what is asked of it.
type cluster struct {
	client.WithWatch // only what is overridden is used

	mu      sync.Mutex
	cond    *sync.Cond
	version int
	objects map[string]reflection.Object
	log     []edition
	calls   []string
	down    error
	// lies makes lists empty, as those of a server that fell behind.
	lies atomic.Bool
	// intercept may fail a call before it has an effect, after one after it.
	intercept, after func(verb, key string) error
	// deleting is told what is deleted, once the preconditions hold.
	deleting func(key string, live reflection.Object)
	// admit changes what is created or patched, as an admission webhook does; refuse may refuse what came of that.
	admit  func(reflection.Object)
	refuse func(reflection.Object) error
}

type edition struct {
	version  int
	kind     string
	old, now reflection.Object
}

func newCluster(objects ...reflection.Object) *cluster {
	c := &cluster{objects: map[string]reflection.Object{}}
	c.cond = sync.NewCond(&c.mu)
	for _, o := range objects {
		c.put(o)
	}
	return c
}

func init() {
	if err := offloadingv1beta1.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
}

// IsWatchListSemanticsUnSupported keeps client-go from streaming lists.
func (c *cluster) IsWatchListSemanticsUnSupported() bool { return true }

func kindOf(o runtime.Object) string {
	gvk, err := apiutil.GVKForObject(o, scheme.Scheme)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(gvk.Kind, "List")
}

func keyOf(o client.Object) string { return kindOf(o) + "/" + o.GetNamespace() + "/" + o.GetName() }

func resource(o runtime.Object) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(kindOf(o)) + "s"}
}

func copyOf(o reflection.Object) reflection.Object { return o.DeepCopyObject().(reflection.Object) }

// record counts a call and lets the test fail it.
func (c *cluster) record(verb, key string) error {
	c.calls = append(c.calls, verb+" "+key)
	if c.down != nil {
		return c.down
	}
	if c.intercept != nil {
		return c.intercept(verb, key)
	}
	return nil
}

func (c *cluster) done(verb, key string) error {
	if c.after != nil {
		return c.after(verb, key)
	}
	return nil
}

// store puts an object, with new version, into the history.
func (c *cluster) store(key string, now reflection.Object) reflection.Object {
	old := c.objects[key]
	c.version++
	entry := edition{version: c.version, kind: strings.SplitN(key, "/", 2)[0], old: old}
	if now == nil {
		delete(c.objects, key)
		gone := copyOf(old)
		gone.SetResourceVersion(strconv.Itoa(c.version))
		entry.old = gone
	} else {
		now = copyOf(now)
		now.SetResourceVersion(strconv.Itoa(c.version))
		c.objects[key] = now
		entry.now = now
	}
	c.log = append(c.log, entry)
	c.cond.Broadcast()
	return now
}

// put is what somebody else does: create or overwrite.
func (c *cluster) put(o reflection.Object) reflection.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	o = copyOf(o)
	if o.GetUID() == "" {
		if old := c.objects[keyOf(o)]; old != nil {
			o.SetUID(old.GetUID())
		} else {
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", c.version+1)))
		}
	}
	return copyOf(c.store(keyOf(o), o))
}

// drop is what somebody else does: delete.
func (c *cluster) drop(o reflection.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[keyOf(o)] != nil {
		c.store(keyOf(o), nil)
	}
}

// edit is what somebody else does: change.
func edit[T reflection.Object](c *cluster, o T, f func(T)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := copyOf(c.objects[keyOf(o)])
	f(now.(T))
	c.store(keyOf(o), now)
}

func (c *cluster) find(o reflection.Object) reflection.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.objects[keyOf(o)]; found != nil {
		return copyOf(found)
	}
	return nil
}

// took returns the calls since the last time, without reads and creations for trial unless asked for.
func (c *cluster) took(reads bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	if reads {
		return calls
	}
	return slices.DeleteFunc(calls, func(call string) bool {
		verb, _, _ := strings.Cut(call, " ")
		return verb == "get" || verb == "list" || verb == "watch" || verb == "rehearse"
	})
}

func (c *cluster) setDown(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
	c.cond.Broadcast()
}

func into(from, to client.Object) {
	data, err := json.Marshal(from)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		panic(err)
	}
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := kindOf(o) + "/" + key.Namespace + "/" + key.Name
	if err := c.record("get", id); err != nil {
		return err
	}
	found := c.objects[id]
	if found == nil {
		return apierrors.NewNotFound(resource(o), key.Name)
	}
	into(found, o)
	return nil
}

func selects(options *client.ListOptions, o reflection.Object) bool {
	switch {
	case o == nil, o.GetNamespace() != options.Namespace:
		return false
	case options.LabelSelector != nil && !options.LabelSelector.Matches(labelSet(o.GetLabels())):
		return false
	case options.FieldSelector != nil && !options.FieldSelector.Matches(labelSet{"metadata.name": o.GetName()}):
		return false
	}
	return true
}

func (c *cluster) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind := kindOf(list)
	if err := c.record("list", kind+"/"+options.Namespace); err != nil {
		return err
	}
	var items []runtime.Object
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		if strings.HasPrefix(key, kind+"/") && selects(options, c.objects[key]) && key > options.Continue && !c.lies.Load() {
			if options.Limit > 0 && int64(len(items)) == options.Limit {
				last := items[len(items)-1].(client.Object)
				list.SetContinue(keyOf(last))
				break
			}
			items = append(items, copyOf(c.objects[key]))
		}
	}
	list.SetResourceVersion(strconv.Itoa(c.version))
	return meta.SetList(list, items)
}

type labelSet map[string]string

func (s labelSet) Has(key string) bool              { _, there := s[key]; return there }
func (s labelSet) Get(key string) string            { return s[key] }
func (s labelSet) Lookup(key string) (string, bool) { v, there := s[key]; return v, there }

type watcher struct {
	results chan watch.Event
	cancel  context.CancelFunc
}

func (w watcher) Stop()                          { w.cancel() }
func (w watcher) ResultChan() <-chan watch.Event { return w.results }

func (c *cluster) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind := kindOf(list)
	if err := c.record("watch", kind+"/"+options.Namespace); err != nil {
		return nil, err
	}
	from, err := strconv.Atoi(options.Raw.ResourceVersion)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := watcher{results: make(chan watch.Event), cancel: cancel}
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cond.Broadcast()
	})
	go c.feed(ctx, w, kind, options, from)
	return w, nil
}

func (c *cluster) feed(ctx context.Context, w watcher, kind string, options *client.ListOptions, from int) {
	defer close(w.results)
	for i := 0; ; i++ {
		c.mu.Lock()
		for i >= len(c.log) && ctx.Err() == nil && c.down == nil {
			c.cond.Wait()
		}
		if ctx.Err() != nil || c.down != nil {
			c.mu.Unlock()
			return
		}
		entry := c.log[i]
		c.mu.Unlock()
		if entry.version <= from || entry.kind != kind {
			continue
		}
		before, now := selects(options, entry.old), entry.now != nil && selects(options, entry.now)
		var event watch.Event
		switch {
		case before && now:
			event = watch.Event{Type: watch.Modified, Object: copyOf(entry.now)}
		case now:
			event = watch.Event{Type: watch.Added, Object: copyOf(entry.now)}
		case before:
			event = watch.Event{Type: watch.Deleted, Object: copyOf(entry.old)}
		default:
			continue
		}
		select {
		case w.results <- event:
		case <-ctx.Done():
			return
		}
	}
}

func (c *cluster) Create(_ context.Context, o client.Object, opts ...client.CreateOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := (&client.CreateOptions{}).ApplyOptions(opts)
	key, verb := keyOf(o), "create"
	if len(options.DryRun) > 0 {
		verb = "rehearse"
	}
	if err := c.record(verb, key); err != nil {
		return err
	}
	if c.objects[key] != nil {
		return apierrors.NewAlreadyExists(resource(o), o.GetName())
	}
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", c.version+1)))
	if c.admit != nil {
		c.admit(o)
	}
	if c.refuse != nil {
		if err := c.refuse(o.(reflection.Object)); err != nil {
			return err
		}
	}
	if verb == "create" {
		into(c.store(key, o), o)
	}
	return c.done(verb, key)
}

func invalid(o client.Object, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: message}}
}

func (c *cluster) Patch(_ context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	key, verb := keyOf(o), "patch"
	if len(options.DryRun) > 0 {
		verb = "probe"
	}
	if err := c.record(verb, key); err != nil {
		return err
	}
	live := c.objects[key]
	if live == nil {
		return apierrors.NewNotFound(resource(o), o.GetName())
	}
	data, _ := patch.Data(o)
	decoded, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	raw, _ := json.Marshal(live)
	if raw, err = decoded.Apply(raw); err != nil {
		return invalid(o, "the server rejected our request due to an error in our request")
	}
	now := live.DeepCopyObject().(reflection.Object)
	now = reflect.New(reflect.TypeOf(now).Elem()).Interface().(reflection.Object)
	if err := json.Unmarshal(raw, now); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if c.admit != nil {
		c.admit(now)
	}
	if c.refuse != nil {
		if err := c.refuse(now); err != nil {
			return err
		}
	}
	if why := immutable(live, now); why != "" {
		return invalid(o, why)
	}
	if len(options.DryRun) == 0 && !apiequality.Semantic.DeepEqual(live, now) {
		now = c.store(key, now)
	}
	into(now, o)
	return c.done(verb, key)
}

func immutable(live, now reflection.Object) string {
	switch live := live.(type) {
	case *corev1.ConfigMap:
		now := now.(*corev1.ConfigMap)
		if live.Immutable != nil && *live.Immutable && (now.Immutable == nil || !*now.Immutable || !apiequality.Semantic.DeepEqual(live.Data, now.Data)) {
			return "data: field is immutable when `immutable` is set"
		}
	case *corev1.Secret:
		now := now.(*corev1.Secret)
		if live.Immutable != nil && *live.Immutable && (now.Immutable == nil || !*now.Immutable || !apiequality.Semantic.DeepEqual(live.Data, now.Data)) {
			return "data: field is immutable when `immutable` is set"
		}
		if live.Type != now.Type {
			return "type: field is immutable"
		}
	}
	return ""
}

func (c *cluster) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	key := keyOf(o)
	if err := c.record("delete", key); err != nil {
		return err
	}
	live := c.objects[key]
	if live == nil {
		return apierrors.NewNotFound(resource(o), o.GetName())
	}
	p := options.Preconditions
	if p == nil || p.UID == nil {
		panic("delete of " + key + " without UID precondition")
	}
	if *p.UID != live.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(resource(o), o.GetName(), fmt.Errorf("the object might have been deleted and then recreated"))
	}
	if c.deleting != nil {
		c.deleting(key, live)
	}
	if len(live.GetFinalizers()) > 0 {
		now := metav1.Now()
		terminating := copyOf(live)
		terminating.SetDeletionTimestamp(&now)
		c.store(key, terminating)
		return nil
	}
	c.store(key, nil)
	return c.done("delete", key)
}
