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
	data, user := w.dataAtMilan(t)
	namespace := data.Namespace
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
	another(t, "again", user)
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
	another(t, "late", user)
	whole("once active again")
	w.handOn(t, namespace)
}

// dataAtMilan offloads a namespace with a claim and a pod that runs with it; it returns both as they are at rome.
func (w *world) dataAtMilan(t *testing.T) (data *corev1.PersistentVolumeClaim, user *corev1.Pod) {
	t.Helper()
	data, user = volume(w.offload(t, "shop"))
	for _, object := range []client.Object{data, user} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	awaitPod(t, env.Rome, user, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	return data, user
}

// another runs a pod of the name that uses the same data as one before.
func another(t *testing.T, name string, before *corev1.Pod) {
	t.Helper()
	user := pod(before.Namespace)
	user.Name, user.Spec.Volumes, user.Spec.Containers = name, before.Spec.Volumes, before.Spec.Containers
	fixture.Must(t, "creating pod "+name+", which uses the data", env.Rome.Client.Create(t.Context(), user))
	awaitPod(t, env.Rome, user, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
}
