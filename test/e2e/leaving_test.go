package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// A namespace needs some seconds to go, most of them for nothing but timers. So a test only deletes its own at its end, and the
// suite proves later that it is gone: before its name is used again, before something is broken, and at the end of the run.

// absence is a namespace that is being deleted.
type absence struct {
	side *side
	name string
}

// deletes deletes a namespace of rome, and remembers that it and its twin have to go.
func (s *suite) deletes(t *testing.T, name string) {
	t.Helper()
	s.rome.deletes(t, namespaceOf(name))
	s.leaves(absence{s.rome, name}, absence{s.milan, twinOf(name)})
}

// leaves remembers that something has to go.
func (s *suite) leaves(leaving ...absence) {
	s.notes.Lock()
	defer s.notes.Unlock()
	s.notes.leaving = append(s.notes.leaving, leaving...)
}

// left is what has to go and was not seen to be gone.
func (s *suite) left() []absence {
	s.notes.Lock()
	defer s.notes.Unlock()
	return slices.Clone(s.notes.leaving)
}

// leftBy is what a test made that has to go and was not seen to be gone.
func (s *suite) leftBy(t *testing.T) []absence {
	t.Helper()
	return slices.DeleteFunc(s.left(), func(a absence) bool { return s.users.why(t, namespaceOf(a.name)) != nil })
}

// settled waits until every namespace that was deleted is gone, at home and at its provider.
func (s *suite) settled(t *testing.T) {
	t.Helper()
	if err := s.settle(context.WithoutCancel(t.Context()), s.left()); err != nil {
		t.Fatal(err)
	}
}

// settle waits until some namespaces are gone. One that is not is told of once.
func (s *suite) settle(ctx context.Context, leaving []absence) error {
	s.notes.Lock()
	s.notes.leaving = slices.DeleteFunc(s.notes.leaving, func(a absence) bool { return slices.Contains(leaving, a) })
	s.notes.Unlock()
	var errs []error
	for _, a := range leaving {
		if seen, gone := poll(ctx, patience, a.side.gone(namespaceOf(a.name))); !gone {
			errs = append(errs, fmt.Errorf("waited %s for namespace %s to be gone at %s; last seen: %s", patience, a.name, a.side.name, seen))
		}
	}
	return errors.Join(errs...)
}

// kept is whether what a test made stays to be looked at.
func kept(t *testing.T) bool { return t.Failed() && os.Getenv("LIQO_E2E_KEEP") != "" }

// twinOf is the name of a namespace at its provider.
func twinOf(name string) string { return name + "-" + consumer }
