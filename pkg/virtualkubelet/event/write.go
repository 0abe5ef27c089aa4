package event

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"liqo.io/liqo/pkg/kube/jsonpatch"
)

// names remembers the local Events that were written; losing one costs a request.
type names struct{ cache *lru.Cache }

func newNames(size int) *names { return &names{cache: lru.New(size)} }

func (n *names) add(name string) { n.cache.Add(name, struct{}{}) }

func (n *names) has(name string) bool {
	_, there := n.cache.Get(name)
	return there
}

// write makes the Event, or changes it if there is one of the name; what is tried first is what will probably do.
func (s *stage) write(ctx context.Context, e entry) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	do, instead, other := s.create, s.patch, apierrors.IsAlreadyExists
	if e.repeat {
		do, instead, other = s.patch, s.create, apierrors.IsNotFound
	}
	err := do(ctx, e.event)
	if other(err) {
		err = instead(ctx, e.event)
	}
	if err == nil {
		s.written.add(e.event.Namespace + "/" + e.event.Name)
	}
	return err
}

func (s *stage) create(ctx context.Context, event *corev1.Event) error {
	fresh := event.DeepCopy()
	fresh.ResourceVersion = ""
	if _, err := s.carrier.options.Events.Events(event.Namespace).Create(ctx, fresh, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating Event %s/%s: %w", event.Namespace, event.Name, err)
	}
	return nil
}

// patch changes an Event that tells of the same object and comes from the same provider; no other.
func (s *stage) patch(ctx context.Context, event *corev1.Event) error {
	body, err := jsonpatch.Patch{
		jsonpatch.Test(event.InvolvedObject.UID, "involvedObject", "uid"),
		jsonpatch.Test(event.Source.Host, "source", "host"),
		jsonpatch.Add(event.Count, "count"),
		jsonpatch.Add(event.LastTimestamp, "lastTimestamp"),
		jsonpatch.Add(event.Message, "message"),
	}.Encode()
	if err != nil {
		return fmt.Errorf("encoding the change of Event %s/%s: %w", event.Namespace, event.Name, err)
	}
	_, err = s.carrier.options.Events.Events(event.Namespace).Patch(ctx, event.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("changing Event %s/%s: %w", event.Namespace, event.Name, err)
	}
	return nil
}

// transient tells whether a write may succeed when it is tried again.
func transient(err error) bool {
	return !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) &&
		!apierrors.IsBadRequest(err)
}
