package restarts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// Events of the provider about a remote pod are seen at the local one: once, repeats for few writes, nothing again after a
// restart. A provider's Event about an object that is not at the provider is seen nowhere.
func TestEventsComeBack(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	local, private := world.Pod(namespace, "crashing"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "private",
		Annotations: map[string]string{"liqo.io/skip-reflection": ""}}}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), local))
	fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), private))
	world.AwaitPods(t, env.Milan, namespace, 1)
	world.AwaitPods(t, env.Rome, namespace, 1)
	fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(local), local))
	twin := &corev1.Pod{}
	fixture.Must(t, "reading its twin", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(local), twin))
	env.Settled(t)

	start, began := env.Rome.Recorder.Now(t), time.Now()
	env.Happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", 1)
	got := env.AwaitRemoteEvent(t, local, "restarting failed container", 1)
	if got.Message != "[cluster milan] restarting failed container" || got.Source.Component != "kubelet" || got.Reason != "BackOff" {
		t.Errorf("the Event is %+v", got)
	}

	for times := range int32(100) {
		env.Happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", times+2)
	}
	env.AwaitRemoteEvent(t, local, "restarting failed container", 20)
	fixture.Must(t, "creating an Event about what is not at milan", env.Milan.Client.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "poison"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: private.Name},
		Type:           corev1.EventTypeWarning, Reason: "Poison", Message: "poison", LastTimestamp: metav1.Now(),
	}))
	env.Settled(t)
	// Repeats are written once in ten seconds.
	most := 5 + int(time.Since(began)/(10*time.Second))
	if writes := env.EventWrites(t, start, namespace); len(writes) > most {
		t.Errorf("101 Events at milan made %d writes at rome, want at most %d:\n%s", len(writes), most, world.Summary(writes))
	}

	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	restart := env.Rome.Recorder.Now(t)
	w.Kubelet.Start(t)
	env.Happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", 200)
	again := awaitAfterRestart(t, local)
	env.Settled(t)
	if writes := env.EventWrites(t, restart, namespace); len(writes) > 2 {
		t.Errorf("the restart and one Event made %d writes:\n%s", len(writes), world.Summary(writes))
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
			env.Happens(t, twin, "crash", corev1.EventTypeWarning, "BackOff", "restarting failed container", times)
		}
		events, err := env.RemoteEvents(ctx, local)
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
