package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// restarts are how often the containers of a pod at rome have been started again.
func restarts(t *testing.T, p *corev1.Pod) int32 {
	t.Helper()
	live := &corev1.Pod{}
	fixture.Must(t, "reading pod "+p.Name, env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(p), live))
	if len(live.Status.ContainerStatuses) != 1 {
		t.Fatalf("pod %s has container statuses %v", p.Name, live.Status.ContainerStatuses)
	}
	return live.Status.ContainerStatuses[0].RestartCount
}

// C4 and C5 for pods: the provider's administrator changes a ShadowPod that runs, and deletes another one. The change is put back, and
// told with the name of who made it; what was deleted is made again, as the same pod at home.
func TestC5ShadowPodIsChangedAtTheProvider(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	changed, deleted := world.Pod(namespace, "changed"), world.Pod(namespace, "deleted")
	changed.Labels = map[string]string{"app": "shop"}
	for _, p := range []*corev1.Pod{changed, deleted} {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), p))
	}
	before := world.AwaitPods(t, env.Milan, namespace, 2)
	local := world.AwaitPods(t, env.Rome, namespace, 2)
	started := restarts(t, deleted)

	shadow := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deleted.Name}}
	fixture.Must(t, "deleting a ShadowPod at milan", env.Milan.Client.Delete(t.Context(), shadow))
	shadow = &offloadingv1beta1.ShadowPod{}
	key := client.ObjectKeyFromObject(changed)
	start := env.Milan.Recorder.Now(t)
	fixture.Must(t, "changing a ShadowPod at milan", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := env.Milan.Client.Get(t.Context(), key, shadow); err != nil {
			return err
		}
		shadow.Labels["app"], shadow.Spec.Pod.Containers[0].Image = "theirs", "theirs"
		return env.Milan.Client.Update(t.Context(), shadow, client.FieldOwner("meddler"))
	}))
	fixture.Await(t, fixture.Patience, "the ShadowPod and its pod to be put back", func(ctx context.Context) (bool, string) {
		if err := env.Milan.Client.Get(ctx, key, shadow); err != nil {
			return false, err.Error()
		}
		remote := &corev1.Pod{}
		if err := env.Milan.Client.Get(ctx, key, remote); err != nil {
			return false, err.Error()
		}
		images := []string{shadow.Labels["app"], shadow.Spec.Pod.Containers[0].Image, remote.Labels["app"], remote.Spec.Containers[0].Image}
		return strings.Join(images, " ") == "shop b shop b", fmt.Sprint(images)
	})
	fixture.Await(t, fixture.Patience, "an Event that says who changed it", func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		err := env.Rome.Client.List(ctx, list, client.InNamespace(namespace))
		told := 0
		for _, e := range list.Items {
			if e.InvolvedObject.UID == changed.UID && e.Reason == offloadingv1beta1.ReasonRemoteChangeReverted && strings.Contains(e.Message, `field manager "meddler"`) {
				told += max(1, int(e.Count))
			}
		}
		return told == 1, fmt.Sprintf("%d times among %v, error %v", told, list.Items, err)
	})
	writes := 0
	for _, w := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
		if w.Namespace == namespace && w.Name == changed.Name && w.Resource == "shadowpods.offloading.liqo.io" {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("it took %d writes to put the ShadowPod back", writes)
	}

	fixture.Await(t, 2*fixture.Patience, "the deleted one to run again", func(ctx context.Context) (bool, string) {
		remote, live := &corev1.Pod{}, &corev1.Pod{}
		if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(deleted), remote); err != nil {
			return false, err.Error()
		}
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(deleted), live)
		return err == nil && remote.UID != before[deleted.Name] && len(live.Status.ContainerStatuses) == 1 && live.Status.ContainerStatuses[0].Ready &&
			live.Status.ContainerStatuses[0].RestartCount > started, fmt.Sprintf("%+v %v", live.Status, err)
	})
	if after := world.AwaitPods(t, env.Milan, namespace, 2); after[changed.Name] != before[changed.Name] {
		t.Error("the pod of the changed ShadowPod was replaced")
	}
	if after := world.AwaitPods(t, env.Rome, namespace, 2); after[changed.Name] != local[changed.Name] || after[deleted.Name] != local[deleted.Name] {
		t.Error("pods at rome were replaced")
	}
	env.OnePodEach(t, namespace)
}
