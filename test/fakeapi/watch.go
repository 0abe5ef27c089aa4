package fakeapi

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// NoGaps lets a watch of one of client-go's fakes begin where the list before it ended, as an API server's does: by itself the
// fake forgets what is deleted between the two, and an informer keeps that object for ever. Call it right after the fake is made;
// tracker is the fake's.
func NoGaps(f *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	g := &gaps{tracker: tracker, begun: map[string][]watch.Interface{}}
	React(f, "list", "*", g.list)
	f.PrependWatchReactor("*", g.watch)
}

// React has one of client-go's fakes answer a verb ("*": any) of a resource with a function of the test first, also while others are
// talking to it: the fake goes through its reactions under its lock, and by itself takes new ones without.
func React(f *clienttesting.Fake, verb, resource string, does clienttesting.ReactionFunc) {
	f.Lock()
	defer f.Unlock()
	f.PrependReactor(verb, resource, does)
}

// gaps keeps the watches that began before a list and were not asked for yet.
type gaps struct {
	tracker clienttesting.ObjectTracker
	mu      sync.Mutex
	begun   map[string][]watch.Interface
}

func (g *gaps) list(action clienttesting.Action) (bool, runtime.Object, error) {
	w, err := g.tracker.Watch(action.GetResource(), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	options := action.(clienttesting.ListActionImpl).ListOptions
	key := place(action, options.LabelSelector, options.FieldSelector)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun[key] = append(g.begun[key], w)
	return false, nil, nil // the fake itself answers the list
}

func (g *gaps) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	options := action.(clienttesting.WatchActionImpl).ListOptions
	key := place(action, options.LabelSelector, options.FieldSelector)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.begun[key]) == 0 {
		return false, nil, nil
	}
	w := g.begun[key][0]
	g.begun[key] = slices.Delete(g.begun[key], 0, 1)
	return true, w, nil
}

// place tells lists and watches of one selection from those of another.
func place(action clienttesting.Action, labels, fields string) string {
	return action.GetResource().String() + "\n" + action.GetNamespace() + "\n" + labels + "\n" + fields
}
