package offloading

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
	"liqo.io/liqo/test/integration/world"
)

// W4 and D13 for claims and EndpointSlices: their Events come back to the local object, whether the provider speaks of what it
// was asked for or of what it made of it; a storm of them is bounded, and none is about an object that only has the name of one.
func TestW4D13EventsOfClaimsAndSlices(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	data, private := world.Claim(namespace, "data", world.VirtualClass), world.Claim(namespace, "private", fixture.SimulatedClass)
	service := &corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: named("web-made"), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.9.8.7"}}}}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service.Name}
	for _, o := range []client.Object{data, private, service, slice, world.PodWith(namespace, "db", data.Name)} {
		fixture.Must(t, "creating "+o.GetName(), env.Rome.Client.Create(t.Context(), o))
	}
	world.AwaitClaim(t, env.Rome, data, "to be bound", world.Bound)
	world.AwaitPods(t, env.Rome, namespace, 1)
	shadow := &offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: named(slice.Name)}
	made := &discoveryv1.EndpointSlice{ObjectMeta: named(slice.Name)}
	for _, o := range []client.Object{shadow, made} {
		world.AwaitThere(t, env.Milan, o)
	}
	env.SettledIn(t, namespace)

	about := func(apiVersion, kind, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: "as milan says"}
	}
	start := env.Rome.Recorder.Now(t)
	theClaim := about("v1", "PersistentVolumeClaim", data.Name)
	theSlice := about("discovery.k8s.io/v1", "EndpointSlice", slice.Name)
	env.HappensTo(t, about("v1", "PersistentVolumeClaim", private.Name), "poison", corev1.EventTypeWarning, "Poison", "poison", 1)
	env.HappensTo(t, theClaim, "claim", corev1.EventTypeWarning, "ProvisioningFailed", "no space left", 1)
	env.HappensTo(t, theSlice, "slice", corev1.EventTypeWarning, "Unreachable", "what was made", 1)
	env.HappensTo(t, about(offloadingv1beta1.GroupVersion.String(), "ShadowEndpointSlice", slice.Name), "shadow", corev1.EventTypeWarning, "Refused", "what was asked for", 1)
	if e := env.AwaitRemoteEvent(t, data, "no space left", 1); e.InvolvedObject.Kind != "PersistentVolumeClaim" || e.Message != "[cluster milan] no space left" {
		t.Errorf("the claim's Event is %+v", e)
	}
	env.AwaitRemoteEvent(t, slice, "what was made", 1)
	env.AwaitRemoteEvent(t, slice, "what was asked for", 1)

	for i := range 60 {
		env.HappensTo(t, theClaim, fmt.Sprint("claim-storm-", i), corev1.EventTypeWarning, "ProvisioningFailed", fmt.Sprint("storm, try ", i), 1)
		env.HappensTo(t, theSlice, fmt.Sprint("slice-storm-", i), corev1.EventTypeWarning, "Unreachable", fmt.Sprint("storm, address ", i), 1)
	}
	env.SettledIn(t, namespace)
	writes := env.EventWrites(t, start, namespace)
	// 25 at once of each object, and those of this cluster.
	if len(writes) > 2*25+10 || len(writes) < 4 {
		t.Errorf("124 Events at milan made %d writes at rome:\n%s", len(writes), world.Summary(writes))
	}
	events := &corev1.EventList{}
	fixture.Must(t, "listing Events", env.Rome.Client.List(t.Context(), events, client.InNamespace(namespace)))
	for _, e := range events.Items {
		if strings.Contains(e.Message, "poison") {
			t.Errorf("the poison came through: %+v", e)
		}
	}
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), world.Pod(namespace, "db")))
	world.AwaitGone(t, env.Milan, world.Pod(namespace, "db"))
	for _, c := range []*corev1.PersistentVolumeClaim{data, private} {
		fixture.Must(t, "deleting a claim", env.Rome.Client.Delete(t.Context(), c))
		world.AwaitGone(t, env.Rome, c)
	}
}
