package offloading

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// holds is a finalizer of somebody at milan.
const holds = "test.liqo.io/holds"

// evict asks rome to let a pod go, as a drain does.
func evict(ctx context.Context, p *corev1.Pod) error {
	return env.Rome.Kube.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}})
}

// C13: the virtual node is drained. A PodDisruptionBudget counts offloaded pods as it does others, so it holds them back; whom it lets
// go ends at milan first, in the time that it was given, and counts as disrupted until it has.
func TestC13EvictionWithADisruptionBudget(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	labels := map[string]string{"app": "shop"}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	first, second := world.Pod(namespace, "first"), world.Pod(namespace, "second")
	for _, p := range []*corev1.Pod{first, second} {
		p.Labels, p.Spec.TerminationGracePeriodSeconds = labels, ptr.To[int64](77)
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), p))
	}
	fixture.Must(t, "creating a PodDisruptionBudget", env.Rome.Client.Create(t.Context(), budget))
	world.AwaitPods(t, env.Rome, namespace, 2)
	allows := func(healthy, disruptions int32) {
		t.Helper()
		fixture.Await(t, fixture.Patience, "the budget to count the pods", func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
			return err == nil && budget.Status.ObservedGeneration == budget.Generation && budget.Status.CurrentHealthy == healthy &&
				budget.Status.DisruptionsAllowed == disruptions, fmt.Sprintf("%+v %v", budget.Status, err)
		})
	}
	allows(2, 0)
	if err := evict(t.Context(), first); !apierrors.IsTooManyRequests(err) {
		t.Fatalf("evicting a pod that the budget protects was answered with %v", err)
	}
	remote := env.RemoteOf(t, first)
	fixture.Must(t, "keeping the pod at milan", env.Milan.Client.Patch(t.Context(), remote,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+holds+`"]}}`))))
	fixture.Must(t, "lowering the budget", env.Rome.Client.Patch(t.Context(), budget.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":1}}`))))
	allows(2, 1)
	start := env.Milan.Recorder.Now(t)
	fixture.Must(t, "evicting the first pod", evict(t.Context(), first))
	fixture.Await(t, fixture.Patience, "the pod at milan to be deleted", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(remote), remote)
		return err == nil && remote.DeletionTimestamp != nil, fmt.Sprint(remote.DeletionTimestamp, err)
	})
	// Its node says that it has ended, but it is still there.
	fixture.Must(t, "reading the evicted pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(first), first))
	if first.DeletionTimestamp == nil || ptr.Deref(first.DeletionGracePeriodSeconds, 0) != 77 {
		t.Errorf("the evicted pod has %v seconds to end, deleted %v", first.DeletionGracePeriodSeconds, first.DeletionTimestamp)
	}
	allows(1, 0)
	if err := evict(t.Context(), second); !apierrors.IsTooManyRequests(err) {
		t.Errorf("evicting the second pod while the first one ends was answered with %v", err)
	}
	for _, write := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
		if write.Namespace == namespace && write.Resource == "pods/eviction" {
			t.Errorf("the pod at milan was given less time than it has: %s", write)
		}
	}
	fixture.Must(t, "letting the pod at milan go", env.Milan.Client.Patch(t.Context(), remote, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	world.AwaitGone(t, env.Rome, first)
	world.AwaitPods(t, env.Rome, namespace, 1)
	world.AwaitPods(t, env.Milan, namespace, 1)
}

// C15: a Job's pod finishes at milan, and milan's garbage collector removes it soon. The Job is done once, with the exit code, and does
// not run again; when its time to live is over, nothing of it is left on either side.
func TestC15JobWhosePodIsCollected(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "count"}, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0),
		Template:     corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "b"}}}}}}
	fixture.Must(t, "creating a Job", env.Rome.Client.Create(t.Context(), job))
	world.AwaitPods(t, env.Milan, namespace, 1)
	local, remote := &corev1.Pod{}, &corev1.Pod{}
	for name := range world.AwaitPods(t, env.Rome, namespace, 1) {
		fixture.Must(t, "reading the Job's pod", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, local))
		remote = env.RemoteOf(t, local)
	}
	start := env.Milan.Recorder.Now(t)
	ended := metav1.Now().UTC().Format(time.RFC3339)
	env.Lie(t, remote.DeepCopy(), map[string]any{"phase": "Succeeded", "containerStatuses": []map[string]any{{"name": "a", "image": "b", "imageID": "",
		"ready": false, "restartCount": 0, "state": map[string]any{"terminated": map[string]any{"exitCode": 0, "reason": "Completed", "message": "42", "startedAt": ended, "finishedAt": ended}}}}})
	fixture.Must(t, "collecting the pod at milan", env.Milan.Client.Delete(t.Context(), remote.DeepCopy(), client.GracePeriodSeconds(0)))
	world.AwaitGone(t, env.Milan, remote)
	fixture.Await(t, fixture.Patience, "the Job to be complete", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(job), job)
		return err == nil && job.Status.CompletionTime != nil && job.Status.Succeeded == 1 && job.Status.Failed == 0, fmt.Sprintf("%+v %v", job.Status, err)
	})
	fixture.Must(t, "reading the Job's pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(local), local))
	if end := local.Status.ContainerStatuses[0].State.Terminated; local.Status.Phase != corev1.PodSucceeded || end == nil || end.ExitCode != 0 || end.Message != "42" {
		t.Errorf("the Job's pod is %+v", local.Status)
	}
	fixture.Must(t, "giving the Job a time to live", env.Rome.Client.Patch(t.Context(), job.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ttlSecondsAfterFinished":1}}`))))
	world.AwaitGone(t, env.Rome, job)
	world.AwaitGone(t, env.Rome, local)
	world.AwaitGone(t, env.Milan, &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: local.Name}})
	for _, write := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
		if write.Namespace == namespace && write.Verb == "create" && write.Resource == "pods" {
			t.Errorf("it ran again: %s", write)
		}
	}
}
