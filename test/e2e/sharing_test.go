package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/lab/cluster"
)

// Every test says first how it uses the lab:
//
//	the.alone(t)   nothing else runs meanwhile. It may break, change and end what there is, and leaves it as it found it.
//	the.shared(t)  it runs beside others of its sort, after all those that are alone, and touches only namespaces that it made. What
//	               it does to anything else fails: the programs and clients that it uses ask for the right (owns, lends).
//	the.last(t)    as alone, but when all others have ended.
//
// Go runs tests that are parallel only when all the others have returned, so those come last by themselves.

// users knows which tests use the lab, and how.
type users struct {
	sync.Mutex
	tests map[string]*user // by name
	// together are the tests that share the lab and have not ended, the waiting ones among them.
	together sync.WaitGroup
}

// user is a test that uses the lab.
type user struct {
	alone   bool
	running bool
	// namespaces are those that it made, and their twins: what it may change if it is not alone.
	namespaces map[string]bool
}

// rootOf is the name of the test that a subtest belongs to.
func rootOf(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// enters has a test use the lab until it ends.
func (u *users) enters(t *testing.T, alone bool) *user {
	t.Helper()
	u.Lock()
	defer u.Unlock()
	entered := &user{alone: alone, namespaces: map[string]bool{}}
	u.tests[rootOf(t)] = entered
	t.Cleanup(func() {
		u.Lock()
		defer u.Unlock()
		delete(u.tests, rootOf(t))
	})
	return entered
}

// runs says that a test does not wait for others any more.
func (u *users) runs(entered *user) {
	u.Lock()
	defer u.Unlock()
	entered.running = true
}

// running are the names of the tests that use the lab now.
func (u *users) running() (names []string) {
	u.Lock()
	defer u.Unlock()
	for _, name := range slices.Sorted(maps.Keys(u.tests)) {
		if u.tests[name].running {
			names = append(names, name)
		}
	}
	return names
}

// of is what is known of a test.
func (u *users) of(t *testing.T) user {
	t.Helper()
	found := u.tests[rootOf(t)]
	if found == nil {
		t.Fatal("the test does not say how it uses the lab: it calls alone, shared or last first")
	}
	return *found
}

// takes makes namespaces the test's own. Two tests at a time must not have the same ones.
func (u *users) takes(t *testing.T, namespaces ...string) {
	t.Helper()
	u.Lock()
	defer u.Unlock()
	own := u.of(t)
	for name, other := range u.tests {
		for _, namespace := range namespaces {
			if name != rootOf(t) && other.namespaces[namespace] {
				t.Fatalf("namespace %s is one of %s, which runs beside", namespace, name)
			}
		}
	}
	for _, namespace := range namespaces {
		own.namespaces[namespace] = true
	}
}

// isAlone is whether no other test uses the lab.
func (u *users) isAlone(t *testing.T) bool {
	t.Helper()
	u.Lock()
	defer u.Unlock()
	return u.of(t).alone
}

// why returns why a test may not change an object; nil if it may.
func (u *users) why(t *testing.T, object client.Object) error {
	t.Helper()
	u.Lock()
	defer u.Unlock()
	found, namespace := u.of(t), object.GetNamespace()
	if _, is := object.(*corev1.Namespace); is {
		namespace = object.GetName()
	}
	if found.alone || found.namespaces[namespace] {
		return nil
	}
	return fmt.Errorf("%T %s is none of the test's own, and others run beside it: it has to be alone", object, client.ObjectKeyFromObject(object))
}

// alone has a test use the peered pair by itself.
func (s *suite) alone(t *testing.T) {
	t.Helper()
	s.claimed(t)
	s.peered(t)
}

// claimed has a test use the lab by itself, in whatever state it is.
func (s *suite) claimed(t *testing.T) {
	t.Helper()
	s.users.runs(s.users.enters(t, true))
	s.recordFailure(t)
}

// shared has a test use the peered pair beside others.
func (s *suite) shared(t *testing.T) {
	t.Helper()
	s.users.together.Add(1)
	t.Cleanup(s.users.together.Done)
	entered := s.users.enters(t, false)
	t.Parallel()
	s.users.runs(entered)
	s.peered(t)
}

// last has a test use the peered pair when all other tests have ended.
func (s *suite) last(t *testing.T) {
	t.Helper()
	entered := s.users.enters(t, true)
	t.Parallel()
	s.users.together.Wait()
	s.users.runs(entered)
	s.peered(t)
}

// breaks lends the lab to who is alone, to break it.
func (s *suite) breaks(t *testing.T) *cluster.Lab {
	t.Helper()
	s.solitary(t, "breaking the lab")
	return s.lab
}

// solitary fails a test that does what disturbs others while they run.
func (s *suite) solitary(t *testing.T, what string) {
	t.Helper()
	if !s.users.isAlone(t) {
		t.Fatalf("%s disturbs the tests that run beside this one: it has to be alone", what)
	}
}

// harmless are the verbs of liqoctl that concern a namespace of the test's own, or change nothing. About nodes are those of kubectl that do not.
var (
	harmless   = []string{"offload", "unoffload", "move", "info", "version"}
	aboutNodes = []string{"cordon", "uncordon", "drain", "taint"}
)
