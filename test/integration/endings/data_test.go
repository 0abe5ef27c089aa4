package endings

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/test/integration/fixture"
)

// Milan hangs, rome leaves it by force, milan comes back with all that it had of rome, and they peer again: the twin is taken up with its
// data, and a new pod uses it. Then milan drains rome, as its administrator does after a theft, and takes that back: nothing of the data goes.
func TestDataOutlivesAPeeringThatEndedByForce(t *testing.T) {
	w := begin(t)
	namespace := w.offload(t, "shop")
	data, user := volume(namespace)
	for _, object := range []client.Object{data, user} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	awaitPod(t, env.Rome, user, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	twin, there := &corev1.Namespace{}, &corev1.PersistentVolumeClaim{}
	fixture.Must(t, "reading the twin", env.Milan.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, twin))
	fixture.Must(t, "reading the claim at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(data), there))
	whole := func(when string) {
		t.Helper()
		nowTwin, now := &corev1.Namespace{}, &corev1.PersistentVolumeClaim{}
		err := env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(twin), nowTwin)
		if err != nil || nowTwin.UID != twin.UID || nowTwin.DeletionTimestamp != nil {
			t.Errorf("%s the twin is gone: deleted %v, %v", when, nowTwin.DeletionTimestamp, err)
		}
		err = env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(there), now)
		if err != nil || now.UID != there.UID || now.DeletionTimestamp != nil {
			t.Errorf("%s the data is gone: deleted %v, %v", when, now.DeletionTimestamp, err)
		}
	}

	env.Milan.Link.Cut()
	t.Cleanup(env.Milan.Link.Mend)
	w.awaitLost(t)
	_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: env.Rome.Target(t), PeerID: "milan", Timeout: forceTimeout})
	fixture.Must(t, "leaving milan at rome", err)
	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	env.Milan.Link.Mend()
	w.kubelet = env.Peer(t)
	w.awaitShows(t, "all to be well", "")
	again := pod(namespace)
	again.Name, again.Spec.Volumes, again.Spec.Containers = "again", user.Spec.Volumes, user.Spec.Containers
	fixture.Must(t, "creating a pod that uses the data", env.Rome.Client.Create(t.Context(), again))
	awaitPod(t, env.Rome, again, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	whole("after peering again")

	grant := func(condition authv1beta1.TenantCondition) {
		t.Helper()
		tenant := &authv1beta1.Tenant{}
		fixture.Must(t, "reading the Tenant", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ProviderNamespace, Name: "rome"}, tenant))
		tenant.Spec.TenantCondition = condition
		fixture.Must(t, "changing the Tenant", env.Milan.Client.Update(t.Context(), tenant))
	}
	grant(authv1beta1.TenantDrained)
	fixture.Await(t, 2*fixture.Patience, "the pods at milan to end", func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := env.Milan.Client.List(ctx, pods, client.InNamespace(namespace))
		return err == nil && len(pods.Items) == 0, fmt.Sprintf("%d pods, %v", len(pods.Items), err)
	})
	w.awaitLost(t)
	whole("once drained")
	grant(authv1beta1.TenantActive)
	fixture.Await(t, 4*fixture.Patience, "rome to have its rights again", func(ctx context.Context) (bool, string) {
		fc := &corev1beta1.ForeignCluster{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: "milan"}, fc)
		return err == nil && fc.WhyLost() == "", fmt.Sprint(fc.Status.Conditions, err)
	})
	late := pod(namespace)
	late.Name, late.Spec.Volumes, late.Spec.Containers = "late", user.Spec.Volumes, user.Spec.Containers
	fixture.Must(t, "creating another pod that uses the data", env.Rome.Client.Create(t.Context(), late))
	awaitPod(t, env.Rome, late, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	whole("once active again")
	w.handOn(t, namespace)
}
