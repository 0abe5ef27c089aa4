package system

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// reclaimAs changes the reclaim policy of the volume that a claim of rome is bound to, and returns the volume.
func reclaimAs(t *testing.T, of *corev1.PersistentVolumeClaim, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	t.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: of.Spec.VolumeName}}
	fixture.Must(t, "changing the reclaim policy of "+volume.Name, env.Rome.Client.Patch(t.Context(), volume,
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy))))
	return volume
}

// C1 for claims and tokens: what is deleted at home while the provider does not answer goes there once it does. Data that the
// volume's policy retains stays, and goes when the user gives it up.
func TestC1ClaimsAndTokensDeletedWhileDisconnected(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := offloaded(t)
	data, kept := claim(namespace, "data", virtualClass), claim(namespace, "kept", virtualClass)
	users := []*corev1.Pod{podWith(namespace, "db", "data"), podWith(namespace, "keeper", "kept")}
	for _, object := range []client.Object{data, kept, users[0], users[1]} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	remotes := map[string]*corev1.PersistentVolumeClaim{}
	for _, c := range []*corev1.PersistentVolumeClaim{data, kept} {
		awaitClaim(t, env.Rome, c, "to be bound", bound)
		remotes[c.Name] = claim(namespace, c.Name, "")
		awaitClaim(t, env.Milan, remotes[c.Name], "to be bound", bound)
	}
	awaitPods(t, env.Rome, namespace, 2)
	tokens := []*corev1.Secret{tokensOf(t, namespace, "db"), tokensOf(t, namespace, "keeper")}
	volume, keptVolume := reclaimAs(t, data, corev1.PersistentVolumeReclaimDelete), reclaimAs(t, kept, corev1.PersistentVolumeReclaimRetain)

	mend := w.cut(t)
	for _, p := range users {
		fixture.Must(t, "giving up pod "+p.Name, env.Rome.Client.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
	}
	for _, c := range []*corev1.PersistentVolumeClaim{data, kept} {
		fixture.Must(t, "deleting claim "+c.Name, env.Rome.Client.Delete(t.Context(), c))
		awaitGone(t, env.Rome, c)
	}
	for _, v := range []*corev1.PersistentVolume{volume, keptVolume} {
		fixture.Await(t, fixture.Patience, "volume "+v.Name+" to be released", func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(v), v)
			return err == nil && v.Status.Phase == corev1.VolumeReleased, fmt.Sprint(v.Status, err)
		})
	}
	mend()

	awaitGone(t, env.Milan, remotes["data"])
	awaitGone(t, env.Rome, volume)
	for i, p := range users {
		awaitGone(t, env.Milan, &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Name}})
		awaitGone(t, env.Milan, tokens[i])
	}
	settled(t)
	uid := remotes["kept"].UID
	fixture.Must(t, "reading the claim whose data is retained", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remotes["kept"]), remotes["kept"]))
	fixture.Must(t, "reading its volume", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(keptVolume), keptVolume))
	if remotes["kept"].UID != uid || remotes["kept"].DeletionTimestamp != nil || keptVolume.DeletionTimestamp != nil {
		t.Errorf("the retained data goes: claim %+v, volume %+v", remotes["kept"].ObjectMeta, keptVolume.ObjectMeta)
	}

	kept.Spec.VolumeName = keptVolume.Name
	reclaimAs(t, kept, corev1.PersistentVolumeReclaimDelete)
	fixture.Must(t, "deleting the volume whose data is given up", env.Rome.Client.Delete(t.Context(), keptVolume))
	awaitGone(t, env.Milan, remotes["kept"])
	awaitGone(t, env.Rome, keptVolume)
}

// A volume whose data is retained is deleted, and the claim at the provider too, while the virtual kubelet does not run. What to do is
// told meanwhile; once it runs again it learns that the data is gone, and lets the volume go.
func TestVolumeWhoseDataGoesWhileTheVirtualKubeletIsAway(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := offloaded(t)
	local, remote, user := claim(namespace, "data", virtualClass), claim(namespace, "data", ""), podWith(namespace, "db", "data")
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	awaitClaim(t, env.Rome, local, "to be bound", bound)
	awaitClaim(t, env.Milan, remote, "to be bound", bound)
	volume := reclaimAs(t, local, corev1.PersistentVolumeReclaimRetain)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), user))
	awaitGone(t, env.Rome, user)
	fixture.Must(t, "deleting the claim", env.Rome.Client.Delete(t.Context(), local))
	awaitGone(t, env.Rome, local)
	settled(t)

	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	fixture.Must(t, "deleting the volume", env.Rome.Client.Delete(t.Context(), volume))
	fixture.Must(t, "deleting the claim at milan", env.Milan.Client.Delete(t.Context(), remote))
	awaitGone(t, env.Milan, remote)
	fixture.Await(t, 2*fixture.Patience, "an Event that names the way out", func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		err := env.Rome.Client.List(ctx, list, client.InNamespace(metav1.NamespaceDefault))
		var seen []string
		for _, e := range list.Items {
			if e.InvolvedObject.Name == volume.Name && e.Reason == offloadingv1beta1.ReasonVolumesHoldData && strings.Contains(e.Message, "kubectl patch pv") {
				return true, ""
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return false, fmt.Sprint(seen, err)
	})
	fixture.Must(t, "reading the volume, about which nothing is known yet", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(volume), volume))
	w.kubelet.Start(t)
	awaitGone(t, env.Rome, volume)
	fixture.Await(t, 2*fixture.Patience, "the VirtualNode to name no volume", func(ctx context.Context) (bool, string) {
		vn := &offloadingv1beta1.VirtualNode{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: consumerNamespace, Name: w.node}, vn)
		return err == nil && vn.Annotations[offloadingv1beta1.WaitingVolumesAnnotation] == "", fmt.Sprint(vn.Annotations, err)
	})
}
