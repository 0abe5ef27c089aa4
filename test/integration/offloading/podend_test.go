package offloading

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// Whoever watches a pod reads how it ended before it is gone.
func TestTheEndOfADeletedPodReachesHome(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	p := world.Pod(namespace, "ends")
	fixture.Must(t, "creating the pod", env.Rome.Client.Create(t.Context(), p))
	world.AwaitPods(t, env.Rome, namespace, 1)
	watcher, err := env.Rome.Kube.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=ends"})
	fixture.Must(t, "watching the pod", err)
	defer watcher.Stop()
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), p))
	var last *corev1.Pod
	fixture.Await(t, fixture.Patience, "the pod to be gone", func(ctx context.Context) (bool, string) {
		for {
			select {
			case event := <-watcher.ResultChan():
				if seen, ok := event.Object.(*corev1.Pod); ok {
					last = seen
				}
				if event.Type == watch.Deleted {
					return true, ""
				}
			case <-ctx.Done():
				return false, "it is still there"
			}
		}
	})
	if last.Status.Phase != corev1.PodFailed && last.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the pod went in phase %s", last.Status.Phase)
	}
	for _, c := range last.Status.ContainerStatuses {
		if c.State.Terminated == nil || c.Ready {
			t.Errorf("the pod went with container %s in state %+v, ready: %v", c.Name, c.State, c.Ready)
		}
	}
}

// Kubernetes lets nobody take a toleration away: whoever replaces the list need not know of the one that admission gave the pod. One that
// the provider does not allow is told, counts as observed, and holds up nothing else.
func TestTolerationsOfAPlacedPodMayBeReplaced(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	p := world.Pod(namespace, "tolerant")
	fixture.Must(t, "creating the pod", env.Rome.Client.Create(t.Context(), p))
	world.AwaitPods(t, env.Rome, namespace, 1)
	key, own := client.ObjectKeyFromObject(p), corev1.Toleration{Key: "foo", Operator: corev1.TolerationOpEqual, Value: "bar", Effect: corev1.TaintEffectNoSchedule}
	fixture.Await(t, fixture.Patience, "the tolerations to be replaced", func(ctx context.Context) (bool, string) {
		if err := env.Rome.Client.Get(ctx, key, p); err != nil {
			return false, err.Error()
		}
		p.Spec.Tolerations = []corev1.Toleration{own}
		err := env.Rome.Client.Update(ctx, p)
		return err == nil, fmt.Sprint(err)
	})
	if !slices.Contains(p.Spec.Tolerations, own) || !slices.Contains(p.Spec.Tolerations, placement.VirtualNodeToleration()) || p.Generation != 2 {
		t.Errorf("generation %d, tolerations %v", p.Generation, p.Spec.Tolerations)
	}
	fixture.Await(t, fixture.Patience, "the generation to be observed", func(ctx context.Context) (bool, string) {
		if err := env.Rome.Client.Get(ctx, key, p); err != nil {
			return false, err.Error()
		}
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.ObservedGeneration == 2 })
		refused := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == offloadingv1beta1.ChangeRefusedCondition })
		return ready && !refused && p.Status.ObservedGeneration == 2, fmt.Sprint(p.Status.ObservedGeneration, p.Status.Conditions)
	})
	fixture.Await(t, fixture.Patience, "what stays at home to be told", func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		err := env.Rome.Client.List(ctx, list, client.InNamespace(namespace))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Name == p.Name && e.Reason == offloadingv1beta1.ReasonPartiallyReflected && strings.Contains(e.Message, "foo")
		}), fmt.Sprint(err, len(list.Items))
	})
	const image = "registry.k8s.io/pause:3.9"
	fixture.Must(t, "changing the image", env.Rome.Client.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec":{"containers":[{"name":%q,"image":%q}]}}`, p.Spec.Containers[0].Name, image))))
	remote := &corev1.Pod{}
	fixture.Await(t, fixture.Patience, "the image to follow", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.Name}, remote)
		return err == nil && remote.Spec.Containers[0].Image == image, fmt.Sprint(err, remote.Spec.Containers)
	})
	if slices.ContainsFunc(remote.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == own.Key }) {
		t.Errorf("the provider's pod has tolerations %v", remote.Spec.Tolerations)
	}
}

// A pod for another operating system is rejected as a kubelet does.
func TestAPodOfAnotherOperatingSystemIsRejected(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := env.Offloaded(t)
	p := world.Pod(namespace, "windows")
	p.Spec.NodeName, p.Spec.OS = virtual, &corev1.PodOS{Name: corev1.Windows}
	fixture.Must(t, "creating the pod", env.Rome.Client.Create(t.Context(), p))
	fixture.Await(t, fixture.Patience, "the pod to be rejected", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(p), p)
		return err == nil && p.Status.Phase == corev1.PodFailed && p.Status.Reason == "PodOSNotSupported", fmt.Sprint(err, p.Status.Phase, p.Status.Reason, p.Status.Message)
	})
}
