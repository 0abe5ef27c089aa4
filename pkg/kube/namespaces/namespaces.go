// Package namespaces knows the annotations of namespaces, which are read one by one: the right to watch namespaces cannot be limited to some.
package namespaces

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespaces is what is known of them. Make it with New.
type Namespaces struct {
	live    client.Reader
	clock   clock.PassiveClock
	timeout time.Duration

	mu      sync.Mutex
	known   map[string]namespace
	reading map[string]*sync.Mutex
}

type namespace struct {
	annotations map[string]string
	read        time.Time
	// leaving says that it is being deleted.
	leaving bool
}

// New makes one that reads live; timeout bounds each read.
func New(live client.Reader, clock clock.PassiveClock, timeout time.Duration) *Namespaces {
	return &Namespaces{live: live, clock: clock, timeout: timeout, known: map[string]namespace{}, reading: map[string]*sync.Mutex{}}
}

// Annotations returns what is known of a namespace, and reads it if nothing is or if it is older than maxAge. Zero takes
// what is known, however old. changed tells whether a read showed something else than was known before.
func (n *Namespaces) Annotations(ctx context.Context, name string, maxAge time.Duration) (annotations map[string]string, changed bool, err error) {
	if known, there := n.lookup(name, maxAge); there {
		return known.annotations, false, nil
	}
	// One read at a time: whoever waited finds what the other read.
	reading := n.reader(name)
	reading.Lock()
	defer reading.Unlock()
	if known, there := n.lookup(name, maxAge); there {
		return known.annotations, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	var object corev1.Namespace
	if err := n.live.Get(ctx, client.ObjectKey{Name: name}, &object); err != nil {
		return nil, false, fmt.Errorf("reading namespace %q, whose annotations may keep objects at home: %w", name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known, there := n.known[name]
	n.known[name] = namespace{annotations: object.Annotations, read: n.clock.Now(), leaving: object.DeletionTimestamp != nil}
	return object.Annotations, there && !maps.Equal(known.annotations, object.Annotations), nil
}

// Leaving tells whether a namespace is known to be deleted, by a read that is not older than maxAge.
func (n *Namespaces) Leaving(ctx context.Context, name string, maxAge time.Duration) bool {
	_, _, err := n.Annotations(ctx, name, maxAge)
	known, _ := n.lookup(name, 0)
	return err == nil && known.leaving
}

func (n *Namespaces) reader(name string) *sync.Mutex {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reading[name] == nil {
		n.reading[name] = &sync.Mutex{}
	}
	return n.reading[name]
}

// lookup returns what is known of a namespace if it is not older than maxAge.
func (n *Namespaces) lookup(name string, maxAge time.Duration) (known namespace, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, ok = n.known[name]
	return known, ok && (maxAge == 0 || n.clock.Since(known.read) <= maxAge)
}

// Refresh reads a namespace again and tells whether it changed. A failure leaves what was known; again says that it may pass.
func (n *Namespaces) Refresh(ctx context.Context, name string) (changed, again bool) {
	_, changed, err := n.Annotations(ctx, name, time.Nanosecond)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("Could not refresh a namespace; its last known annotations stay in force", "namespace", name, "err", err)
	}
	return changed, err != nil && !apierrors.IsNotFound(err)
}

// Forget drops what is known of a namespace.
func (n *Namespaces) Forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, name)
	delete(n.reading, name)
}
