package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// happens writes an Event at milan about the pod's twin, as a kubelet does: times is how often it happened so far.
func happens(t *testing.T, twin *corev1.Pod, name, kind, reason, message string, times int32) {
	t.Helper()
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: twin.Namespace, Name: twin.Name, UID: twin.UID}
	happensTo(t, about, name, kind, reason, message, times)
}

// happensTo writes an Event at milan about an object there: times is how often it happened so far.
func happensTo(t *testing.T, about corev1.ObjectReference, name, kind, reason, message string, times int32) {
	t.Helper()
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: name}}
	err := env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(event), event)
	event.LastTimestamp, event.Count = metav1.Now(), times
	if err == nil {
		fixture.Must(t, "changing an Event", env.Milan.Client.Update(t.Context(), event))
		return
	}
	event.InvolvedObject = about
	event.Type, event.Reason, event.Message, event.FirstTimestamp = kind, reason, message, metav1.Now()
	event.Source = corev1.EventSource{Component: "kubelet", Host: "worker"}
	fixture.Must(t, "creating an Event", env.Milan.Client.Create(t.Context(), event))
}

// remoteEvents are the Events about an object at rome that came from milan.
func remoteEvents(ctx context.Context, local client.Object) ([]corev1.Event, error) {
	all := &corev1.EventList{}
	if err := env.Rome.Client.List(ctx, all, client.InNamespace(local.GetNamespace())); err != nil {
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

// awaitRemoteEvent waits until an object has the Event, which must be the only one of its message.
func awaitRemoteEvent(t *testing.T, pod client.Object, message string, count int32) *corev1.Event {
	t.Helper()
	var found *corev1.Event
	fixture.Await(t, fixture.Patience, fmt.Sprintf("Event %q to be counted %d times", message, count), func(ctx context.Context) (bool, string) {
		events, err := remoteEvents(ctx, pod)
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

// Events of the provider about a remote pod are seen at the local one: once, repeats for few writes, nothing again after a
// restart. A provider's Event about an object that is not at the provider is seen nowhere.
func TestEventsComeBack(t *testing.T) {
	w := peered(t)
	namespace := offloaded(t)
	local, private := pod(namespace, "crashing"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "private",
		Annotations: map[string]string{"liqo.io/skip-reflection": ""}}}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), local))
	fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), private))
	awaitPods(t, env.Milan, namespace, 1)
	awaitPods(t, env.Rome, namespace, 1)
	fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(local), local))
	twin := &corev1.Pod{}
	fixture.Must(t, "reading its twin", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(local), twin))
	settled(t)

	start, began := env.Rome.Recorder.Now(t), time.Now()
	happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", 1)
	got := awaitRemoteEvent(t, local, "restarting failed container", 1)
	if got.Message != "[cluster milan] restarting failed container" || got.Source.Component != "kubelet" || got.Reason != "BackOff" {
		t.Errorf("the Event is %+v", got)
	}

	for times := range int32(100) {
		happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", times+2)
	}
	awaitRemoteEvent(t, local, "restarting failed container", 20)
	fixture.Must(t, "creating an Event about what is not at milan", env.Milan.Client.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "poison"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: private.Name},
		Type:           corev1.EventTypeWarning, Reason: "Poison", Message: "poison", LastTimestamp: metav1.Now(),
	}))
	settled(t)
	// Repeats are written once in ten seconds.
	most := 5 + int(time.Since(began)/(10*time.Second))
	if writes := eventWrites(t, start, namespace); len(writes) > most {
		t.Errorf("101 Events at milan made %d writes at rome, want at most %d:\n%s", len(writes), most, summary(writes))
	}

	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	restart := env.Rome.Recorder.Now(t)
	w.kubelet.Start(t)
	happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", 200)
	again := awaitAfterRestart(t, local)
	settled(t)
	if writes := eventWrites(t, restart, namespace); len(writes) > 2 {
		t.Errorf("the restart and one Event made %d writes:\n%s", len(writes), summary(writes))
	}
	if again.Name != got.Name {
		t.Errorf("the repeat became Event %s beside %s", again.Name, got.Name)
	}
	events := &corev1.EventList{}
	fixture.Must(t, "listing Events", env.Rome.Client.List(t.Context(), events, client.InNamespace(namespace)))
	for _, e := range events.Items {
		if strings.Contains(e.Message, "poison") {
			t.Errorf("the poison came through: %+v", e)
		}
	}
}

// eventWrites are the Events that we wrote at rome in a namespace since a moment.
func eventWrites(t *testing.T, start fixture.Moment, namespace string) []fixture.Write {
	t.Helper()
	return slices.DeleteFunc(env.Rome.Recorder.EventsSince(t, start, fixture.OfLiqo), func(w fixture.Write) bool {
		return w.Namespace != namespace
	})
}

// awaitAfterRestart has it happen until the watch, which begins at the present, sees it.
func awaitAfterRestart(t *testing.T, local *corev1.Pod) *corev1.Event {
	t.Helper()
	twin := &corev1.Pod{}
	fixture.Must(t, "reading the twin", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(local), twin))
	const every = 3 * time.Second
	times, next := int32(200), time.Now()
	var found *corev1.Event
	fixture.Await(t, fixture.Patience, "the repeat to be counted", func(ctx context.Context) (bool, string) {
		if time.Now().After(next) {
			times, next = times+1, time.Now().Add(every)
			happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", times)
		}
		events, err := remoteEvents(ctx, local)
		if err != nil {
			return false, err.Error()
		}
		for i := range events {
			if events[i].Count >= 200 {
				found = &events[i]
			}
		}
		return found != nil, fmt.Sprint(events)
	})
	return found
}
