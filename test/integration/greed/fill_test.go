package greed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// T14: the controller manager has 1 GiB, and serves all tenants, all webhooks, and its own cluster's offloading. A consumer does not fill it with
// endpoints: a slice is no larger than those of Kubernetes, and what is in it is not kept.
func TestOneConsumerDoesNotFillTheControllerManager(t *testing.T) {
	w := env.Peered(t)
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "pods", "1"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	endpoints := func(name string, one func(i int) discoveryv1.Endpoint) *offloadingv1beta1.ShadowEndpointSlice {
		shadow := &offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan"}}}
		shadow.Spec.Template.AddressType = discoveryv1.AddressTypeIPv4
		for i := range 1000 {
			shadow.Spec.Template.Endpoints = append(shadow.Spec.Template.Endpoints, one(i))
		}
		return shadow
	}
	err := user.Create(t.Context(), endpoints("wide", func(i int) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{"9"}, Zone: ptr.To(fmt.Sprint(strings.Repeat("z", 1200), i))}
	}))
	if err == nil || !strings.Contains(err.Error(), "Too long") {
		t.Errorf("an EndpointSlice with zones of 1200 characters is answered %.300v", err)
	}

	// As much as the schema lets in, and an API server takes.
	text := func(length, i int) string { return fmt.Sprintf("%s%04d", strings.Repeat("z", length-4), i) }
	largest := func(i int) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{"9"}, Hostname: ptr.To(text(63, i)), NodeName: ptr.To(text(253, i)), Zone: ptr.To(text(63, i)),
			Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: text(63, i)}}},
			TargetRef: &corev1.ObjectReference{APIVersion: text(63, i), Kind: text(63, i), Name: text(253, i), Namespace: text(63, i), UID: types.UID(text(63, i))}}
	}
	size, err := json.Marshal(endpoints("e", largest))
	fixture.Must(t, "weighing an object", err)
	before, begin := memoryOf(t, w.Milan.PID(), "VmRSS"), time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	made, most, last := 0, before, error(nil)
	for worker := range 4 {
		all.Go(func() {
			for n := 0; n < 50 && (n < 5 || time.Since(begin) < 30*time.Second); n++ {
				// An administrator writes them: API servers take longer to count the elements of what a consumer writes.
				err := env.Milan.Client.Create(t.Context(), endpoints(fmt.Sprintf("e-%d-%d", worker, n), largest))
				mu.Lock()
				made, most, last = made+1, max(most, memoryOf(t, w.Milan.PID(), "VmRSS")), cmp.Or(err, last)
				mu.Unlock()
				if err != nil {
					return // the tenant may have no more
				}
			}
		})
	}
	all.Wait()
	most = max(most, memoryOf(t, w.Milan.PID(), "VmRSS"))
	t.Logf("%d MiB before, at most %d MiB with %d ShadowEndpointSlices of %d KiB, made in %s; refused: %.300v",
		before, most, made, len(size)>>10, time.Since(begin), last)
	if made < 20 {
		t.Errorf("only %d were made", made)
	}
	if most-before > 128 {
		t.Errorf("a consumer had the provider's controller manager grow from %d to %d MiB with %d ShadowEndpointSlices", before, most, made)
	}
	// One request for all of them may take longer than an API server lets it.
	fixture.Await(t, fixture.Patience, "what was made to be deleted", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.DeleteAllOf(ctx, &offloadingv1beta1.ShadowEndpointSlice{}, client.InNamespace(namespace))
		return err == nil, fmt.Sprint(err)
	})
}
