package settings

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// Q1, W2: the pods of a provider that announced no range run, without an address; its VirtualNode says so with the way out, which works.
func TestAProviderThatAnnouncedNoRange(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	vn, key := &offloadingv1beta1.VirtualNode{}, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}
	pinned := func(value string) {
		t.Helper()
		fixture.Must(t, "reading the VirtualNode", env.Rome.Client.Get(context.WithoutCancel(t.Context()), key, vn))
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, offloadingv1beta1.RemotePodCIDRsAnnotation, value)
		fixture.Must(t, "pinning ranges", env.Rome.Client.Patch(context.WithoutCancel(t.Context()), vn, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	pinned(`"none"`)
	t.Cleanup(func() { pinned("null") })
	fixture.Await(t, fixture.Patience, "the VirtualNode to say what to do", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, key, vn)
		c := conditions.Find(vn.Status.All(), offloadingv1beta1.AddressesShownCondition)
		return err == nil && c != nil && c.Status == "False" && c.Reason == offloadingv1beta1.ReasonNoPodAddressRange, fmt.Sprint(vn.Status, err)
	})
	pod := world.Pod(namespace, fixture.Unique("pod"))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
	has := func(kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == status })
	}
	fixture.Await(t, 2*fixture.Patience, "the pod to be ready without its address", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && has(corev1.PodReady, corev1.ConditionTrue) && has(offloadingv1beta1.AddressShownCondition, corev1.ConditionFalse), fmt.Sprint(pod.Status, err)
	})
	if pod.Status.PodIP != "" || has(offloadingv1beta1.InvalidRemoteStatusCondition, corev1.ConditionTrue) {
		t.Errorf("it has address %q and shows %v", pod.Status.PodIP, pod.Status.Conditions)
	}
	pinned("null")
	fixture.Await(t, fixture.Patience, "the pod to have its address once a range is pinned", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && pod.Status.PodIP != "" && !has(offloadingv1beta1.AddressShownCondition, corev1.ConditionFalse), fmt.Sprint(pod.Status, err)
	})
	fixture.Await(t, fixture.Patience, "the VirtualNode to have nothing to say", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, key, vn)
		return err == nil && conditions.Find(vn.Status.All(), offloadingv1beta1.AddressesShownCondition) == nil, fmt.Sprint(vn.Status, err)
	})
	events := &corev1.EventList{}
	fixture.Must(t, "listing Events", env.Rome.Client.List(t.Context(), events, client.InNamespace(namespace)))
	for _, e := range events.Items {
		if e.Reason == offloadingv1beta1.ReasonInvalidRemoteStatus {
			t.Errorf("an Event says that the provider lied: %s", e.Message)
		}
	}
}
