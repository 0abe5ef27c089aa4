package system

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// W4 and D13 for claims and EndpointSlices: their Events come back to the local object, whether the provider speaks of what it
// was asked for or of what it made of it; a storm of them is bounded, and none is about an object that only has the name of one.
func TestW4D13EventsOfClaimsAndSlices(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := offloaded(t)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	data, private := claim(namespace, "data", virtualClass), claim(namespace, "private", simulated)
	service := &corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: named("web-made"), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.9.8.7"}}}}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service.Name}
	for _, o := range []client.Object{data, private, service, slice, podWith(namespace, "db", data.Name)} {
		fixture.Must(t, "creating "+o.GetName(), env.Rome.Client.Create(t.Context(), o))
	}
	awaitClaim(t, env.Rome, data, "to be bound", bound)
	awaitPods(t, env.Rome, namespace, 1)
	shadow := &offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: named(slice.Name)}
	made := &discoveryv1.EndpointSlice{ObjectMeta: named(slice.Name)}
	for _, o := range []client.Object{shadow, made} {
		awaitThere(t, env.Milan, o)
	}
	settled(t)

	about := func(apiVersion, kind, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: "as milan says"}
	}
	start := env.Rome.Recorder.Now(t)
	theClaim := about("v1", "PersistentVolumeClaim", data.Name)
	theSlice := about("discovery.k8s.io/v1", "EndpointSlice", slice.Name)
	happensTo(t, about("v1", "PersistentVolumeClaim", private.Name), "poison", corev1.EventTypeWarning, "Poison", "poison", 1)
	happensTo(t, theClaim, "claim", corev1.EventTypeWarning, "ProvisioningFailed", "no space left", 1)
	happensTo(t, theSlice, "slice", corev1.EventTypeWarning, "Unreachable", "what was made", 1)
	happensTo(t, about(offloadingv1beta1.GroupVersion.String(), "ShadowEndpointSlice", slice.Name), "shadow", corev1.EventTypeWarning, "Refused", "what was asked for", 1)
	if e := awaitRemoteEvent(t, data, "no space left", 1); e.InvolvedObject.Kind != "PersistentVolumeClaim" || e.Message != "[cluster milan] no space left" {
		t.Errorf("the claim's Event is %+v", e)
	}
	awaitRemoteEvent(t, slice, "what was made", 1)
	awaitRemoteEvent(t, slice, "what was asked for", 1)

	for i := range 60 {
		happensTo(t, theClaim, fmt.Sprint("claim-storm-", i), corev1.EventTypeWarning, "ProvisioningFailed", fmt.Sprint("storm, try ", i), 1)
		happensTo(t, theSlice, fmt.Sprint("slice-storm-", i), corev1.EventTypeWarning, "Unreachable", fmt.Sprint("storm, address ", i), 1)
	}
	settled(t)
	writes := eventWrites(t, start, namespace)
	// 25 at once of each object, and those of this cluster.
	if len(writes) > 2*25+10 || len(writes) < 4 {
		t.Errorf("124 Events at milan made %d writes at rome:\n%s", len(writes), summary(writes))
	}
	events := &corev1.EventList{}
	fixture.Must(t, "listing Events", env.Rome.Client.List(t.Context(), events, client.InNamespace(namespace)))
	for _, e := range events.Items {
		if strings.Contains(e.Message, "poison") {
			t.Errorf("the poison came through: %+v", e)
		}
	}
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), pod(namespace, "db")))
	awaitGone(t, env.Milan, pod(namespace, "db"))
	for _, c := range []*corev1.PersistentVolumeClaim{data, private} {
		fixture.Must(t, "deleting a claim", env.Rome.Client.Delete(t.Context(), c))
		awaitGone(t, env.Rome, c)
	}
}
