package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// Happens writes an Event at milan about the pod's twin, as a kubelet does: times is how often it happened so far.
func (s *Shared) Happens(t *testing.T, twin *corev1.Pod, name, kind, reason, message string, times int32) {
	t.Helper()
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: twin.Namespace, Name: twin.Name, UID: twin.UID}
	s.HappensTo(t, about, name, kind, reason, message, times)
}

// HappensTo writes an Event at milan about an object there: times is how often it happened so far.
func (s *Shared) HappensTo(t *testing.T, about corev1.ObjectReference, name, kind, reason, message string, times int32) {
	t.Helper()
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: name}}
	err := s.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(event), event)
	event.LastTimestamp, event.Count = metav1.Now(), times
	if err == nil {
		fixture.Must(t, "changing an Event", s.Milan.Client.Update(t.Context(), event))
		return
	}
	event.InvolvedObject = about
	event.Type, event.Reason, event.Message, event.FirstTimestamp = kind, reason, message, metav1.Now()
	event.Source = corev1.EventSource{Component: "kubelet", Host: "worker"}
	fixture.Must(t, "creating an Event", s.Milan.Client.Create(t.Context(), event))
}

// RemoteEvents are the Events about an object at rome that came from milan.
func (s *Shared) RemoteEvents(ctx context.Context, local client.Object) ([]corev1.Event, error) {
	all := &corev1.EventList{}
	if err := s.Rome.Client.List(ctx, all, client.InNamespace(local.GetNamespace())); err != nil {
		return nil, err
	}
	var found []corev1.Event
	for _, e := range all.Items {
		if e.InvolvedObject.UID == local.GetUID() && e.Source.Host == "milan" {
			found = append(found, e)
		}
	}
	return found, nil
}

// AwaitRemoteEvent waits until an object has the Event, which must be the only one of its message.
func (s *Shared) AwaitRemoteEvent(t *testing.T, pod client.Object, message string, count int32) *corev1.Event {
	t.Helper()
	var found *corev1.Event
	fixture.Await(t, fixture.Patience, fmt.Sprintf("Event %q to be counted %d times", message, count), func(ctx context.Context) (bool, string) {
		events, err := s.RemoteEvents(ctx, pod)
		if err != nil {
			return false, err.Error()
		}
		matching := 0
		for i := range events {
			if strings.HasSuffix(events[i].Message, message) {
				found, matching = &events[i], matching+1
			}
		}
		return matching == 1 && found.Count >= count, fmt.Sprintf("%d of it among %v", matching, events)
	})
	return found
}

// EventWrites are the Events that we wrote at rome in a namespace since a moment.
func (s *Shared) EventWrites(t *testing.T, start fixture.Moment, namespace string) []fixture.Write {
	t.Helper()
	return slices.DeleteFunc(s.Rome.Recorder.EventsSince(t, start, fixture.OfLiqo), func(w fixture.Write) bool {
		return w.Namespace != namespace
	})
}

// EventsOf counts, by their UIDs, how often the Events about objects of a cluster happened that have a reason; without a name, those of all of the kind.
func EventsOf(ctx context.Context, c *fixture.Cluster, kind, namespace, name, reason string) map[string]int {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	list, counts := &corev1.EventList{}, map[string]int{}
	if c.Client.List(ctx, list, client.InNamespace(namespace)) != nil {
		return counts
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind != kind || name != "" && e.InvolvedObject.Name != name || e.Reason != reason {
			continue
		}
		counts[string(e.UID)] = max(1, int(e.Count))
		if e.Series != nil {
			counts[string(e.UID)] = int(e.Series.Count)
		}
	}
	return counts
}

// Since is how often something happened since an earlier count. What is not there any more is older than Events live.
func Since(before, now map[string]int) int {
	count := 0
	for uid, times := range now {
		count += max(0, times-before[uid])
	}
	return count
}
