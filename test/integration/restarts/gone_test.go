package restarts

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A volume whose data is retained is deleted, and the claim at the provider too, while the virtual kubelet does not run. What to do is
// told meanwhile; once it runs again it learns that the data is gone, and lets the volume go.
func TestVolumeWhoseDataGoesWhileTheVirtualKubeletIsAway(t *testing.T) {
	w := env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	local, remote, user := world.Claim(namespace, "data", world.VirtualClass), world.Claim(namespace, "data", ""), world.PodWith(namespace, "db", "data")
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	world.AwaitClaim(t, env.Rome, local, "to be bound", world.Bound)
	world.AwaitClaim(t, env.Milan, remote, "to be bound", world.Bound)
	volume := env.ReclaimAs(t, local, corev1.PersistentVolumeReclaimRetain)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), user))
	world.AwaitGone(t, env.Rome, user)
	fixture.Must(t, "deleting the claim", env.Rome.Client.Delete(t.Context(), local))
	world.AwaitGone(t, env.Rome, local)
	env.Settled(t)

	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	fixture.Must(t, "deleting the volume", env.Rome.Client.Delete(t.Context(), volume))
	fixture.Must(t, "deleting the claim at milan", env.Milan.Client.Delete(t.Context(), remote))
	world.AwaitGone(t, env.Milan, remote)
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
	w.Kubelet.Start(t)
	world.AwaitGone(t, env.Rome, volume)
	fixture.Await(t, 2*fixture.Patience, "the VirtualNode to name no volume", func(ctx context.Context) (bool, string) {
		vn := &offloadingv1beta1.VirtualNode{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}, vn)
		return err == nil && vn.Annotations[offloadingv1beta1.WaitingVolumesAnnotation] == "", fmt.Sprint(vn.Annotations, err)
	})
}
