// Package namespaces knows the annotations and labels of namespaces, which are read one by one: the right to watch namespaces cannot be limited
// to some.
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

	// known holds a namespace by name, reading a *sync.Mutex that is held while it is read.
	known, reading sync.Map
}

type namespace struct {
	annotations map[string]string
	labels      map[string]string
	read        time.Time
	// leaving says that it is being deleted.
	leaving bool
}

// New makes one that reads live; timeout bounds each read.
func New(live client.Reader, clock clock.PassiveClock, timeout time.Duration) *Namespaces {
	return &Namespaces{live: live, clock: clock, timeout: timeout}
}

// Annotations returns what is known of a namespace, and reads it if nothing is or if it is older than maxAge. Zero takes
// what is known, however old. changed tells whether a read showed something else than was known before, labels included.
func (n *Namespaces) Annotations(ctx context.Context, name string, maxAge time.Duration) (annotations map[string]string, changed bool, err error) {
	if known, there := n.lookup(name, maxAge); there {
		return known.annotations, false, nil
	}
	// One read at a time: whoever waited finds what the other read.
	reading, _ := n.reading.LoadOrStore(name, &sync.Mutex{})
	reading.(*sync.Mutex).Lock()
	defer reading.(*sync.Mutex).Unlock()
	if known, there := n.lookup(name, maxAge); there {
		return known.annotations, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	var object corev1.Namespace
	if err := n.live.Get(ctx, client.ObjectKey{Name: name}, &object); err != nil {
		return nil, false, fmt.Errorf("reading namespace %q, whose annotations may keep objects at home: %w", name, err)
	}
	read := namespace{annotations: object.Annotations, labels: object.Labels, read: n.clock.Now(), leaving: object.DeletionTimestamp != nil}
	before, there := n.known.Swap(name, read)
	if !there {
		return object.Annotations, false, nil
	}
	known := before.(namespace)
	return object.Annotations, !maps.Equal(known.annotations, object.Annotations) || !maps.Equal(known.labels, object.Labels), nil
}

// Twins returns the labels of the namespaces of a mapping by the names of their twins, but for those that are gone, or on their way, with which the
// right to read them goes.
func (n *Namespaces) Twins(ctx context.Context, mapping map[string]string) (map[string]map[string]string, error) {
	twins := make(map[string]map[string]string, len(mapping))
	for name, twin := range mapping {
		if _, _, err := n.Annotations(ctx, name, 0); apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		known, _ := n.lookup(name, 0)
		twins[twin] = known.labels
	}
	return twins, nil
}

// Leaving tells whether a namespace is known to be deleted, by a read that is not older than maxAge; changed is as for Annotations.
func (n *Namespaces) Leaving(ctx context.Context, name string, maxAge time.Duration) (leaving, changed bool) {
	_, changed, err := n.Annotations(ctx, name, maxAge)
	known, _ := n.lookup(name, 0)
	return err == nil && known.leaving, changed
}

// lookup returns what is known of a namespace if it is not older than maxAge.
func (n *Namespaces) lookup(name string, maxAge time.Duration) (known namespace, ok bool) {
	value, ok := n.known.Load(name)
	if ok {
		known = value.(namespace)
	}
	return known, ok && (maxAge == 0 || n.clock.Since(known.read) <= maxAge)
}

// Refresh reads a namespace again and tells whether it changed, or nothing was known of it. A failure leaves what was known; again says that it may
// pass.
func (n *Namespaces) Refresh(ctx context.Context, name string) (changed, again bool) {
	_, known := n.lookup(name, 0)
	_, changed, err := n.Annotations(ctx, name, time.Nanosecond)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("Could not refresh a namespace; its last known annotations stay in force", "namespace", name, "err", err)
	}
	return changed || !known && err == nil, err != nil && !apierrors.IsNotFound(err)
}

// Forget drops what is known of a namespace.
func (n *Namespaces) Forget(name string) {
	n.known.Delete(name)
	n.reading.Delete(name)
}
