package offloading

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
	"liqo.io/liqo/test/integration/world"
)

// ask resizes a pod at rome as its user does.
func ask(t *testing.T, p *corev1.Pod, cpu string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":%q},"limits":{"cpu":%q}}}]}}`, cpu, cpu)
	_, err := env.Rome.Kube.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
	fixture.Must(t, "resizing a pod to "+cpu, err)
}

// actuate says at milan what a kubelet says of a pod that has so much cpu; conditions are those about its resize.
func actuate(t *testing.T, twin *corev1.Pod, cpu string, about ...corev1.PodCondition) {
	t.Helper()
	fixture.Must(t, "reading the remote pod", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(twin), twin))
	before := twin.DeepCopy()
	amount := world.Quantities("cpu", cpu)
	container := &twin.Status.ContainerStatuses[0]
	container.Resources, container.AllocatedResources = &corev1.ResourceRequirements{Requests: amount, Limits: amount}, amount
	kept := twin.Status.Conditions[:0:0]
	for _, c := range twin.Status.Conditions {
		if c.Type != corev1.PodResizeInProgress {
			kept = append(kept, c)
		}
	}
	twin.Status.Conditions = append(kept, about...)
	fixture.Must(t, "writing the status of the remote pod", env.Milan.Client.Status().Patch(t.Context(), twin, client.MergeFrom(before)))
}

func has(p *corev1.Pod, cpu string) bool {
	if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].Resources == nil {
		return false
	}
	container := p.Status.ContainerStatuses[0]
	return container.Resources.Requests.Cpu().String() == cpu && container.Resources.Limits.Cpu().String() == cpu && container.AllocatedResources.Cpu().String() == cpu
}

func resizing(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// A pod is resized in place over both clusters, and what becomes of it comes back: what a kubelet does, and what the grant
// forbids.
func TestPodsAreResizedInPlace(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	local := world.Pod(namespace, "sized")
	amount := world.Quantities("cpu", "100m")
	local.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), local))
	twins := world.AwaitPods(t, env.Milan, namespace, 1)
	before := world.AwaitPods(t, env.Rome, namespace, 1)
	twin := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: local.Name}}
	actuate(t, twin, "100m")
	env.AwaitPod(t, local, "the pod to show what it has", func(p *corev1.Pod) bool { return has(p, "100m") })

	start, asked := env.Milan.Recorder.Now(t), twin.Annotations[offloadingv1beta1.ResourcesAskedAnnotation]
	ask(t, local, "200m")
	fixture.Await(t, fixture.Patience, "the remote pod to ask for as much", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(twin), twin)
		resources := twin.Spec.Containers[0].Resources
		return err == nil && resources.Requests.Cpu().String() == "200m" && resources.Limits.Cpu().String() == "200m", fmt.Sprintf("%v, error %v", resources, err)
	})
	fixture.Await(t, fixture.Patience, "the remote pod to say what was asked for", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(twin), twin)
		now := twin.Annotations[offloadingv1beta1.ResourcesAskedAnnotation]
		return err == nil && now != "" && now != asked, fmt.Sprintf("%q after %q, error %v", now, asked, err)
	})
	resizes := 0 // That it was resized is written down before the virtual kubelet goes on.
	for _, w := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
		if w.Resource == "pods/resize" && w.Namespace == namespace {
			resizes++
		}
	}
	if resizes != 1 {
		t.Errorf("the remote pod was resized %d times", resizes)
	}
	// A provider's autoscaler resizes it as well; only another wish of the consumer's is brought over that.
	_, err := env.Milan.Kube.CoreV1().Pods(namespace).Patch(t.Context(), twin.Name, types.StrategicMergePatchType,
		[]byte(`{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"250m"},"limits":{"cpu":"250m"}}}]}}`), metav1.PatchOptions{}, "resize")
	fixture.Must(t, "resizing the remote pod", err)
	fixture.Must(t, "labelling the pod", env.Rome.Client.Patch(t.Context(), local, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"true"}}}`))))
	fixture.Await(t, fixture.Patience, "the label to follow", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(twin), twin)
		return err == nil && twin.Labels["seen"] == "true", fmt.Sprintf("%v, error %v", twin.Labels, err)
	})
	actuate(t, twin, "100m", corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
	env.AwaitPod(t, local, "the resize to be in progress", func(p *corev1.Pod) bool {
		return has(p, "100m") && resizing(p, corev1.PodResizeInProgress) != nil
	})
	actuate(t, twin, "200m")
	env.AwaitPod(t, local, "the resize to be done", func(p *corev1.Pod) bool {
		return has(p, "200m") && resizing(p, corev1.PodResizeInProgress) == nil
	})

	// Less than the virtual node has, but more than what other pods leave of the grant.
	others := env.Offloaded(t)
	for i := range 3 {
		filler := world.Pod(others, fmt.Sprint("filler-", i))
		filler.Spec.Containers[0].Resources.Requests = world.Quantities("cpu", "50")
		fixture.Must(t, "creating another pod", env.Rome.Client.Create(t.Context(), filler))
		t.Cleanup(func() {
			fixture.Must(t, "deleting the other pod", env.Rome.Client.Delete(context.WithoutCancel(t.Context()), filler))
		})
		fixture.Await(t, fixture.Patience, "the other pod to be admitted", func(ctx context.Context) (bool, string) {
			err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(filler), &corev1.Pod{})
			return err == nil, fmt.Sprint(err)
		})
	}
	ask(t, local, "100")
	env.AwaitPod(t, local, "the resize to be refused by the grant", func(p *corev1.Pod) bool {
		c := resizing(p, corev1.PodResizePending)
		return c != nil && c.Reason == corev1.PodReasonDeferred && strings.Contains(c.Message, "the provider's grant of cpu is used up")
	})
	awaitToldOnce(t, local, offloadingv1beta1.ReasonFailedReflection, "the provider's grant of cpu is used up")
	fixture.Must(t, "reading the remote pod", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(twin), twin))
	if cpu := twin.Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "250m" {
		t.Errorf("the remote pod asks for %s", cpu)
	}
	ask(t, local, "300m")
	env.AwaitPod(t, local, "nothing to be pending any more", func(p *corev1.Pod) bool { return resizing(p, corev1.PodResizePending) == nil })
	fixture.Await(t, fixture.Patience, "the remote pod to ask for as much", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(twin), twin)
		return err == nil && twin.Spec.Containers[0].Resources.Requests.Cpu().String() == "300m", fmt.Sprint(twin.Spec.Containers[0].Resources, err)
	})
	if after := world.AwaitPods(t, env.Milan, namespace, 1); after[twin.Name] != twins[twin.Name] || world.AwaitPods(t, env.Rome, namespace, 1)[local.Name] != before[local.Name] {
		t.Error("the pod was made again")
	}
}

// awaitToldOnce waits for an Event about a pod that says why, which is written some time after its status, and fails if there are more.
func awaitToldOnce(t *testing.T, about *corev1.Pod, reason, words string) {
	t.Helper()
	told, events := 0, &corev1.EventList{}
	fixture.Await(t, fixture.Patience, "Event "+reason+" about pod "+about.Name, func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.List(ctx, events, client.InNamespace(about.Namespace))
		told = 0
		for _, e := range events.Items {
			if e.InvolvedObject.UID == about.UID && strings.Contains(e.Message, words) && e.Reason == reason {
				told++
			}
		}
		return told > 0, fmt.Sprint(events.Items, err)
	})
	if told > 1 {
		t.Errorf("there are %d Events about it among %v", told, events.Items)
	}
}

// What a pod has as a whole is resized in place over both clusters, if the provider's node can do it; if not, that is told.
func TestPodsAreResizedAsAWhole(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	local := world.Pod(namespace, "whole")
	local.Spec.Resources = &corev1.ResourceRequirements{Requests: world.Quantities("cpu", "100m")}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), local))
	world.AwaitPods(t, env.Milan, namespace, 1)
	world.AwaitPods(t, env.Rome, namespace, 1)
	twin := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: local.Name}}
	actuate(t, twin, "50m")
	env.AwaitPod(t, local, "the pod to show what its container has", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Resources != nil
	})
	ask := func(cpu string) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"resources":{"requests":{"cpu":%q}}}}`, cpu)
		_, err := env.Rome.Kube.CoreV1().Pods(namespace).Patch(t.Context(), local.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
		fixture.Must(t, "resizing a pod to "+cpu, err)
	}
	ask("200m")
	fixture.Await(t, fixture.Patience, "the refusal to be told", func(ctx context.Context) (bool, string) {
		told := &corev1.EventList{}
		err := env.Rome.Client.List(ctx, told, client.InNamespace(namespace))
		for _, e := range told.Items {
			if e.Reason == offloadingv1beta1.ReasonResizeFailed && strings.Contains(e.Message, "InPlacePodLevelResourcesVerticalScaling") {
				return true, ""
			}
		}
		return false, fmt.Sprint(told.Items, err)
	})
	// Its container asks for nothing by itself: what it has is not shown, and no size is shown as one that can never be had.
	env.AwaitPod(t, local, "the refused size to be pending", func(p *corev1.Pod) bool {
		c := resizing(p, corev1.PodResizePending)
		return c != nil && c.Reason == corev1.PodReasonDeferred && strings.Contains(c.Message, "InPlacePodLevelResourcesVerticalScaling")
	})
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: twin.Spec.NodeName}}
	fixture.Must(t, "letting the provider's node resize pods as a whole", env.Milan.Client.Status().Patch(t.Context(), host,
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"declaredFeatures":["InPlacePodLevelResourcesVerticalScaling"]}}`))))
	ask("300m")
	fixture.Await(t, fixture.Patience, "the remote pod to ask for as much", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(twin), twin)
		return err == nil && twin.Spec.Resources != nil && twin.Spec.Resources.Requests.Cpu().String() == "300m", fmt.Sprintf("%v, error %v", twin.Spec.Resources, err)
	})
	env.AwaitPod(t, local, "nothing to be pending any more", func(p *corev1.Pod) bool { return resizing(p, corev1.PodResizePending) == nil })
}
