package event

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// about has an Event be about an object of another kind.
func about(apiVersion, kind, name string) func(*corev1.Event) {
	return func(e *corev1.Event) {
		e.InvolvedObject = corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: there, Name: name, UID: "remote"}
	}
}

// What happens to the claims and EndpointSlices of the twin is told about the local ones; whether the provider speaks of what
// was asked for or of what it made of it makes no difference.
func TestEventsOfEveryKindComeBack(t *testing.T) {
	shadow := offloadingv1beta1.GroupVersion.String()
	for sentence, tc := range map[string]struct {
		about func(*corev1.Event)
		want  string
	}{
		"a claim":                        {about("v1", "PersistentVolumeClaim", "data"), "PersistentVolumeClaim data 1"},
		"a claim of another name there":  {about("v1", "PersistentVolumeClaim", "data-there"), "PersistentVolumeClaim data 1"},
		"an EndpointSlice":               {about("discovery.k8s.io/v1", "EndpointSlice", "web-1"), "EndpointSlice web-1 2"},
		"a ShadowEndpointSlice":          {about(shadow, "ShadowEndpointSlice", "web-1"), "EndpointSlice web-1 2"},
		"a claim that did not come here": {about("v1", "PersistentVolumeClaim", "private"), ""},
		"an EndpointSlice of the twin":   {about("discovery.k8s.io/v1", "EndpointSlice", "provider-1"), ""},
		"a PersistentVolume":             {about("v1", "PersistentVolume", "data"), ""},
		"a kind of the name of another":  {about("storage.example.org/v1", "PersistentVolumeClaim", "data"), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			inBubble(t, func(w *world) {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "data", UID: "1"}}
				slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "web-1", UID: "2"}}
				w.locals.add("PersistentVolumeClaim", claim)
				w.locals.addAs("PersistentVolumeClaim", "data-there", claim)
				w.locals.add("EndpointSlice", slice)
				w.start()
				w.live().Add(event("1", warning, "Trouble", "it does not work", tc.about))
				w.pass(time.Minute)
				var got []string
				for _, e := range w.all() {
					got = append(got, fmt.Sprintf("%s %s %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.InvolvedObject.UID))
				}
				want := slices.DeleteFunc([]string{tc.want}, func(s string) bool { return s == "" })
				w.equal("Events", want, got)
			})
		})
	}
}

// D13: a claim that cannot be provided and an EndpointSlice that is refused again and again cost what a pod would.
func TestClaimsAndSlicesAreBoundedToo(t *testing.T) {
	inBubble(t, func(w *world) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "data", UID: "1"}}
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "web-1", UID: "2"}}
		w.locals.add("PersistentVolumeClaim", claim)
		w.locals.add("EndpointSlice", slice)
		w.start()
		for i := range 1000 {
			w.live().Add(event(fmt.Sprint("c", i), warning, "ProvisioningFailed", fmt.Sprint("no space, try ", i), about("v1", "PersistentVolumeClaim", "data")))
			w.live().Add(event(fmt.Sprint("s", i), warning, "AddressNotAnnounced", fmt.Sprint("address ", i), about("discovery.k8s.io/v1", "EndpointSlice", "web-1")))
			w.live().Add(event(fmt.Sprint("n", i), normal, "WaitForFirstConsumer", fmt.Sprint("waiting ", i), about("v1", "PersistentVolumeClaim", "data")))
			w.pass(10 * time.Millisecond)
		}
		w.pass(time.Minute)
		// 25 Warnings of each of the two, and the last Normal Event of each ten seconds.
		writes := w.took()
		if most := 2*25 + 3; len(writes) > most {
			w.Errorf("3000 Events made %d writes, most are to be %d", len(writes), most)
		}
		if len(writes) < 2 {
			w.Errorf("3000 Events made %d writes", len(writes))
		}
	})
}
