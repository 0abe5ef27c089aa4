// Package latest holds what is wanted as of now: one value that is handed over whole, compared by value, and read where it is used.
//
// Contract:
//   - A version is plain data that nobody changes once it was handed over: who wants another one hands over another one.
//   - Who reads gets the latest version, and waits for nobody.
//   - Who follows is told of each version that differs from the one before, in the order in which they came, one at a time, before the change
//     returns. Followers do not change the value that they follow, and do not block.
package latest

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
)

// Value is the latest version of a T. The zero Value holds the zero T.
type Value[T any] struct {
	now atomic.Pointer[T]

	mu        sync.Mutex
	followers []*func(before, now T)
}

// New makes a Value of a first version.
func New[T any](first T) *Value[T] {
	v := &Value[T]{}
	v.now.Store(&first)
	return v
}

// Get returns the latest version.
func (v *Value[T]) Get() (now T) {
	if latest := v.now.Load(); latest != nil {
		now = *latest
	}
	return now
}

// Set hands over a version.
func (v *Value[T]) Set(now T) { v.Change(func(version *T) { *version = now }) }

// Change makes a version out of the latest one, which nobody else does meanwhile: change sets fields of a copy, and leaves alone what they
// point to.
func (v *Value[T]) Change(change func(*T)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.Get()
	now := before
	change(&now)
	if reflect.DeepEqual(before, now) {
		return
	}
	v.now.Store(&now)
	for _, follow := range v.followers {
		(*follow)(before, now)
	}
}

// Follow calls a function at once, with the latest version twice, and then with each version and the one before, until it is stopped. Who
// began earlier is told earlier.
func (v *Value[T]) Follow(follow func(before, now T)) (stop func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	mine := &follow
	v.followers = append(v.followers, mine)
	now := v.Get()
	follow(now, now)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.followers = slices.DeleteFunc(v.followers, func(f *func(before, now T)) bool { return f == mine })
	}
}

// Until waits for a version that is as asked; false means that the context ended before.
func (v *Value[T]) Until(ctx context.Context, is func(T) bool) bool {
	reached, once := make(chan struct{}), sync.Once{}
	defer v.Follow(func(_, now T) {
		if is(now) {
			once.Do(func() { close(reached) })
		}
	})()
	select {
	case <-reached:
		return true
	case <-ctx.Done():
		return false
	}
}

// Of is a Value that is made of another one, whenever that changes.
func Of[S, T any](source *Value[S], of func(S) T) *Value[T] {
	v := &Value[T]{}
	source.Follow(func(_, now S) { v.Set(of(now)) })
	return v
}

// Join is a Value that is made of two others, whenever one of these changes.
func Join[A, B, T any](a *Value[A], b *Value[B], of func(A, B) T) *Value[T] {
	v := &Value[T]{}
	// The versions are read while nobody else changes v: what is made last is made of the latest ones.
	join := func() { v.Change(func(version *T) { *version = of(a.Get(), b.Get()) }) }
	a.Follow(func(_, _ A) { join() })
	b.Follow(func(_, _ B) { join() })
	return v
}
