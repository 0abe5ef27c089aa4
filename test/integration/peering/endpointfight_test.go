package peering

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// C5 for endpoints: a controller of the provider keeps changing the EndpointSlice that is made for a consumer. It is put back twice a
// minute at most, and told with the controller's name; what the consumer asks for still follows.
func TestC5EndpointSliceIsFoughtOver(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	slice := c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "memory", "1Gi", "pods", "10"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	changed := slice.DeepCopy()
	changed.Spec.PodCIDRs = []string{"10.99.0.0/16"}
	fixture.Must(t, "announcing a range", c.User.Patch(t.Context(), changed, client.MergeFrom(slice)))
	const name = "web"
	shadow := &offloadingv1beta1.ShadowEndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan", discoveryv1.LabelServiceName: name}},
		Spec: offloadingv1beta1.ShadowEndpointSliceSpec{Template: offloadingv1beta1.EndpointSliceTemplate{
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}}, Endpoints: world.Endpoints("10.99.0.1")}},
	}
	ask(t, user, shadow)
	awaitAddresses(t, namespace, name, "10.99.0.1")

	began, start := time.Now(), env.Milan.Recorder.Now(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var rounds atomic.Int32
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		live := &discoveryv1.EndpointSlice{}
		if env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(shadow), live) != nil || len(live.Endpoints) == 0 {
			return
		}
		live.Endpoints = nil
		if env.Milan.Client.Update(ctx, live, client.FieldOwner("fighter")) == nil {
			rounds.Add(1)
		}
	}, 50*time.Millisecond)
	awaitTold(t, shadow, offloadingv1beta1.ReasonRemoteChangeReverted, `Field endpoints of EndpointSlice `+namespace+`/web was changed by field manager "fighter"`)
	awaitTold(t, shadow, offloadingv1beta1.ReasonContended, "field endpoints is changed")
	// The fighter may be told of its success after the Event is there.
	fixture.Await(t, fixture.Patience, "the fighter to know of two of its writes", func(context.Context) (bool, string) {
		return rounds.Load() >= 2, fmt.Sprint(rounds.Load())
	})
	writes := slices.DeleteFunc(env.Milan.Recorder.Since(t, start, fixture.OfLiqo), func(w fixture.Write) bool {
		return w.Namespace != namespace || w.Name != name || !strings.HasPrefix(w.Resource, "endpointslices.")
	})
	if most := 2 * (1 + int(time.Since(began)/time.Minute)); len(writes) > most || len(writes) == 0 {
		t.Errorf("%d writes in %d rounds, want at most %d: %v", len(writes), rounds.Load(), most, writes)
	}
	stop()
	shadow.Spec.Template.Endpoints = world.Endpoints("10.99.0.2")
	fixture.Must(t, "changing the ShadowEndpointSlice", user.Update(t.Context(), shadow))
	awaitAddresses(t, namespace, name, "10.99.0.2")
}

// awaitAddresses waits until milan publishes just these addresses for a Service.
func awaitAddresses(t *testing.T, namespace, service string, want ...string) {
	t.Helper()
	fixture.Await(t, fixture.Patience, fmt.Sprintf("addresses %v to be published", want), func(ctx context.Context) (bool, string) {
		_, addresses, err := world.SlicesOf(ctx, env.Milan, namespace, service)
		return err == nil && slices.Equal(addresses, want), fmt.Sprint(addresses, err)
	})
}

// awaitTold waits until milan says this about a ShadowEndpointSlice.
func awaitTold(t *testing.T, about *offloadingv1beta1.ShadowEndpointSlice, reason, words string) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "an Event "+reason+" about ShadowEndpointSlice "+about.Name, func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		err := env.Milan.Client.List(ctx, list, client.InNamespace(about.Namespace))
		for i := range list.Items {
			if e := &list.Items[i]; e.InvolvedObject.UID == about.UID && e.Reason == reason && strings.Contains(e.Message, words) {
				return true, ""
			}
		}
		return false, fmt.Sprint(list.Items, err)
	})
}
