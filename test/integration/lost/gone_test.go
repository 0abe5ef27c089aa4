package lost

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// C1 for claims and tokens: what is deleted at home while the provider does not answer goes there once it does. Data that the
// volume's policy retains stays, and goes when the user gives it up.
func TestC1ClaimsAndTokensDeletedWhileDisconnected(t *testing.T) {
	env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	data, kept := world.Claim(namespace, "data", world.VirtualClass), world.Claim(namespace, "kept", world.VirtualClass)
	users := []*corev1.Pod{world.PodWith(namespace, "db", "data"), world.PodWith(namespace, "keeper", "kept")}
	for _, object := range []client.Object{data, kept, users[0], users[1]} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	remotes := map[string]*corev1.PersistentVolumeClaim{}
	for _, c := range []*corev1.PersistentVolumeClaim{data, kept} {
		world.AwaitClaim(t, env.Rome, c, "to be bound", world.Bound)
		remotes[c.Name] = world.Claim(namespace, c.Name, "")
		world.AwaitClaim(t, env.Milan, remotes[c.Name], "to be bound", world.Bound)
	}
	world.AwaitPods(t, env.Rome, namespace, 2)
	tokens := []*corev1.Secret{env.TokensOf(t, namespace, "db"), env.TokensOf(t, namespace, "keeper")}
	volume, keptVolume := env.ReclaimAs(t, data, corev1.PersistentVolumeReclaimDelete), env.ReclaimAs(t, kept, corev1.PersistentVolumeReclaimRetain)

	mend := env.Cut(t)
	for _, p := range users {
		fixture.Must(t, "giving up pod "+p.Name, env.Rome.Client.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
	}
	for _, c := range []*corev1.PersistentVolumeClaim{data, kept} {
		fixture.Must(t, "deleting claim "+c.Name, env.Rome.Client.Delete(t.Context(), c))
		world.AwaitGone(t, env.Rome, c)
	}
	for _, v := range []*corev1.PersistentVolume{volume, keptVolume} {
		fixture.Await(t, fixture.Patience, "volume "+v.Name+" to be released", func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(v), v)
			return err == nil && v.Status.Phase == corev1.VolumeReleased, fmt.Sprint(v.Status, err)
		})
	}
	mend()

	world.AwaitGone(t, env.Milan, remotes["data"])
	world.AwaitGone(t, env.Rome, volume)
	for i, p := range users {
		world.AwaitGone(t, env.Milan, &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Name}})
		world.AwaitGone(t, env.Milan, tokens[i])
	}
	env.Settled(t)
	uid := remotes["kept"].UID
	fixture.Must(t, "reading the claim whose data is retained", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remotes["kept"]), remotes["kept"]))
	fixture.Must(t, "reading its volume", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(keptVolume), keptVolume))
	if remotes["kept"].UID != uid || remotes["kept"].DeletionTimestamp != nil || keptVolume.DeletionTimestamp != nil {
		t.Errorf("the retained data goes: claim %+v, volume %+v", remotes["kept"].ObjectMeta, keptVolume.ObjectMeta)
	}

	kept.Spec.VolumeName = keptVolume.Name
	env.ReclaimAs(t, kept, corev1.PersistentVolumeReclaimDelete)
	fixture.Must(t, "deleting the volume whose data is given up", env.Rome.Client.Delete(t.Context(), keptVolume))
	world.AwaitGone(t, env.Milan, remotes["kept"])
	world.AwaitGone(t, env.Rome, keptVolume)
}
