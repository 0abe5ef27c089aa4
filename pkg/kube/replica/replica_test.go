package replica

import (
	"context"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// client-go pauses after errors by a clock of its own, which differs from that of the tests by decades.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	m.Run()
}

// server answers lists and watches of one namespace.
type server struct {
	mu       sync.Mutex
	list     []corev1.ConfigMap
	streams  bool
	refusal  error
	watchers []*watch.RaceFreeFakeWatcher
}

func (s *server) lists(_ context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil {
		return nil, s.refusal
	}
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: slices.Clone(s.list)}, nil
}

func (s *server) watches(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil {
		return nil, s.refusal
	}
	w := watch.NewRaceFreeFake()
	s.watchers = append(s.watchers, w)
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		for i := range s.list {
			w.Add(&s.list[i])
		}
		w.Action(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "10", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	}
	return w, nil
}

// newest is the watch that runs.
func (s *server) newest() *watch.RaceFreeFakeWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchers[len(s.watchers)-1]
}

func (s *server) set(refusal error, list ...corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal, s.list = refusal, list
}

// source streams the first list; without one it is read page by page.
func (s *server) source() cache.ListerWatcher {
	if !s.streams {
		return nil
	}
	return &cache.ListWatch{ListWithContextFunc: s.lists, WatchFuncWithContext: s.watches}
}

func object(name, value string) corev1.ConfigMap {
	return corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: name, ResourceVersion: "9", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Data:       map[string]string{"": value},
	}
}

// listener notes what a replica tells, and what the replica holds at that moment.
type listener struct {
	*Replica[*corev1.ConfigMap]
	*testing.T

	mu   sync.Mutex
	told []string
}

func (l *listener) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, what)
}

// heard is what was told since the last time, sorted, as lists have no order.
func (l *listener) heard(what string, want ...string) {
	l.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.told)
	if diff := cmp.Diff(want, l.told, cmpopts.EquateEmpty()); diff != "" {
		l.Errorf("%s (-want +got):\n%s", what, diff)
	}
	l.told = nil
}

func (l *listener) holds(what string, want ...string) {
	l.Helper()
	synctest.Wait()
	var got []string
	for _, o := range l.List() {
		got = append(got, o.Name+"="+o.Data[""])
		if len(o.ManagedFields) > 0 {
			l.Errorf("%s: %s was not made small", what, o.Name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || l.Len() != len(want) {
		l.Errorf("%s: %d (-want +got):\n%s", what, l.Len(), diff)
	}
}

// listen runs a replica of a server, on a clock that jumps ahead whenever nothing is left to do.
func listen(t *testing.T, s *server, f func(*listener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &listener{T: t}
		l.Replica = New(Options[*corev1.ConfigMap]{
			Name: "test", Namespace: "here", Source: s.source(), Page: s.lists, Watch: s.watches, Example: func() runtime.Object { return &corev1.ConfigMap{} },
			Synced: func() { l.note("synced") },
			Slim:   func(c *corev1.ConfigMap) { c.ManagedFields = nil },
			Event: func(before, c *corev1.ConfigMap, deleted bool) {
				held, there := l.Get(c.Name)
				was := ""
				if before != nil {
					was = " after " + before.Data[""]
				}
				switch {
				case deleted && !there:
					l.note("- " + c.Name + was)
				case !deleted && there && held == c:
					l.note("+ " + c.Name + "=" + c.Data[""] + was)
				default:
					t.Errorf("the replica does not hold what it tells of %s", c.Name)
				}
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Replica.Run(ctx)
		}()
		f(l)
		cancel()
		<-done
	})
}

func TestReplica(t *testing.T) {
	elsewhere := object("c", "1")
	elsewhere.Namespace = "elsewhere"
	for name, streams := range map[string]bool{"page by page": false, "with streamed lists": true} {
		t.Run(name, func(t *testing.T) {
			s := &server{streams: streams}
			s.set(nil, object("a", "1"), object("b", "1"), elsewhere)
			listen(t, s, func(l *listener) {
				l.heard("the first list", "+ a=1", "+ b=1", "synced")
				l.holds("the first list", "a=1", "b=1")
				if !l.Synced() {
					t.Error("the first list is in, but not said to be")
				}
				change, added, gone := object("a", "2"), object("d", "1"), object("b", "1")
				s.newest().Modify(&change)
				s.newest().Add(&added)
				s.newest().Delete(&gone)
				s.newest().Add(&elsewhere)
				s.newest().Delete(&elsewhere)
				l.heard("changes", "+ a=2 after 1", "+ d=1", "- b after 1")
				l.holds("changes", "a=2", "d=1")
				if _, there := l.Get("b"); there {
					t.Error("what is gone is held")
				}

				// Meanwhile "a" went, "b" came, and the server knows no more of how.
				s.set(nil, object("b", "2"), object("d", "1"))
				s.newest().Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
				l.heard("at once") // The next try is not made at once.
				time.Sleep(2 * time.Minute)
				l.heard("what was missed", "+ b=2", "+ d=1 after 1", "- a after 2")
				l.holds("what was missed", "b=2", "d=1")
			})
		})
	}
}

// note is what is held of an object instead of it.
type note struct{ namespace, name, value string }

func (n *note) GetName() string      { return n.name }
func (n *note) GetNamespace() string { return n.namespace }

func TestReplicaHoldsWhatIsMadeOfObjects(t *testing.T) {
	elsewhere := object("c", "1")
	elsewhere.Namespace = "elsewhere"
	for name, streams := range map[string]bool{"page by page": false, "with streamed lists": true} {
		t.Run(name, func(t *testing.T) {
			s := &server{streams: streams}
			s.set(nil, object("a", "1"), object("odd", "1"), elsewhere)
			synctest.Test(t, func(t *testing.T) {
				r := New(Options[*note]{
					Name: "test", Namespace: "here", Source: s.source(), Page: s.lists, Watch: s.watches, Example: func() runtime.Object { return &corev1.ConfigMap{} },
					Synced: func() {}, Event: func(_, _ *note, _ bool) {},
					Hold: func(watched any) (*note, bool) {
						c, ok := watched.(*corev1.ConfigMap)
						if !ok || c.Name == "odd" {
							return nil, false
						}
						return &note{c.Namespace, c.Name, c.Data[""]}, true
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { r.Run(ctx) })
				holds := func(want ...note) {
					t.Helper()
					synctest.Wait()
					var got []note
					for _, n := range r.List() {
						got = append(got, *n)
					}
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(note{})); diff != "" {
						t.Errorf("holds (-want +got):\n%s", diff)
					}
				}
				holds(note{"here", "a", "1"})
				change := object("a", "2")
				s.newest().Modify(&change)
				holds(note{"here", "a", "2"})
				s.newest().Delete(&change)
				holds()
				cancel()
				running.Wait()
			})
		})
	}
}

// A server that refuses says nothing about what is there.
func TestARefusalRemovesNothing(t *testing.T) {
	s := &server{}
	s.set(apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil))
	listen(t, s, func(l *listener) {
		time.Sleep(time.Hour)
		l.heard("refused from the start")
		if l.Synced() {
			t.Error("synced without a list")
		}
		s.set(nil, object("a", "1"))
		time.Sleep(2 * time.Minute)
		l.heard("no longer refused", "+ a=1", "synced")
		s.set(apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil))
		s.newest().Stop()
		time.Sleep(time.Hour)
		l.heard("refused again")
		l.holds("refused again", "a=1")
		s.set(nil)
		time.Sleep(2 * time.Minute)
		l.heard("everything is gone", "- a after 1")
		l.holds("everything is gone")
		if strings.Count(strings.Join(l.told, " "), "synced") > 0 || !l.Synced() {
			t.Error("synced is told once, and for good")
		}
	})
}

// A replica costs the goroutine that runs it and the one that client-go's Reflector has beside it: there are hundreds of replicas.
func TestGoroutines(t *testing.T) {
	const replicas = 10
	for name, streams := range map[string]bool{"page by page": false, "with streamed lists": true} {
		t.Run(name, func(t *testing.T) {
			s := &server{streams: streams}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				before := goruntime.NumGoroutine()
				var running sync.WaitGroup
				for range replicas {
					r := New(Options[*corev1.ConfigMap]{
						Name: "test", Namespace: "here", Source: s.source(), Page: s.lists, Watch: s.watches, Example: func() runtime.Object { return &corev1.ConfigMap{} },
						Synced: func() {}, Event: func(_, _ *corev1.ConfigMap, _ bool) {},
					})
					running.Go(func() { r.Run(ctx) })
				}
				synctest.Wait()
				if more := goruntime.NumGoroutine() - before; more > 2*replicas {
					t.Errorf("%d goroutines for %d replicas", more, replicas)
				}
				cancel()
				running.Wait()
			})
		})
	}
}
