package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// fatal is the exit code with which a Job of these tests is over.
const fatal = 42

// strict is a Job that ignores disruptions, and fails at once with the fatal exit code.
func strict(namespace string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "strict"}, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0),
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
			{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{fatal}}},
		}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "a", Image: "b"}}}}}}
}

// fails has the kubelet at milan say that a pod failed, and how.
func fails(t *testing.T, remote *corev1.Pod, exitCode int, more map[string]any) {
	t.Helper()
	ended := metav1.Now().UTC().Format(time.RFC3339)
	status := map[string]any{"phase": "Failed", "containerStatuses": []map[string]any{{"name": "a", "image": "b", "imageID": "", "ready": false, "restartCount": 0,
		"state": map[string]any{"terminated": map[string]any{"exitCode": exitCode, "reason": "Error", "startedAt": ended, "finishedAt": ended}}}}}
	for field, value := range more {
		status[field] = value
	}
	env.Lie(t, remote.DeepCopy(), status)
}

// hold keeps a pod at milan, whoever deletes it, until it is let go.
func hold(t *testing.T, remote *corev1.Pod) (let func()) {
	t.Helper()
	finalizers := func(list string) {
		t.Helper()
		fixture.Must(t, "holding the pod at milan, or letting it go", client.IgnoreNotFound(env.Milan.Client.Patch(t.Context(), remote.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`)))))
	}
	finalizers(`["` + holds + `"]`)
	return func() { finalizers("null") }
}

// onlyPod waits until a Job's pod runs on both sides.
func onlyPod(t *testing.T, namespace string) (local, remote *corev1.Pod) {
	t.Helper()
	world.AwaitPods(t, env.Milan, namespace, 1)
	local = &corev1.Pod{}
	for name := range world.AwaitPods(t, env.Rome, namespace, 1) {
		fixture.Must(t, "reading the Job's pod", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, local))
	}
	return local, env.RemoteOf(t, local)
}

// A Job's policy about failed pods counts exit codes and disruptions of pods at milan as it does those of local ones: also of a pod that
// is deleted or evicted, which shows how it ended before it goes.
func TestAJobsPolicyJudgesOffloadedPods(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	for name, tc := range map[string]struct {
		end func(t *testing.T, local *corev1.Pod)
		// goes says that the pod is deleted.
		goes bool
		// ignored says that the Job goes on.
		ignored bool
	}{
		"its container fails": {end: func(*testing.T, *corev1.Pod) {}},
		"it is deleted and fails": {goes: true, end: func(t *testing.T, local *corev1.Pod) {
			fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), local))
		}},
		"it is evicted and fails": {goes: true, ignored: true, end: func(t *testing.T, local *corev1.Pod) {
			fixture.Must(t, "evicting the pod", evict(t.Context(), local))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := strict(env.Offloaded(t))
			fixture.Must(t, "creating a Job", env.Rome.Client.Create(t.Context(), job))
			local, remote := onlyPod(t, job.Namespace)
			let := hold(t, remote)
			// Somebody at home who wants to read the end of the pod, too.
			fixture.Must(t, "keeping the pod", env.Rome.Client.Patch(t.Context(), local.DeepCopy(), client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"`+holds+`"}]`))))
			tc.end(t, local)
			if tc.goes {
				fixture.Await(t, fixture.Patience, "the pod at milan to be deleted", func(ctx context.Context) (bool, string) {
					err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(remote), remote)
					return err == nil && remote.DeletionTimestamp != nil, fmt.Sprint(remote.DeletionTimestamp, err)
				})
			}
			fails(t, remote, fatal, nil)
			env.AwaitPod(t, local, "the pod to have failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
			if end := local.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != fatal {
				t.Errorf("the pod failed with %+v", local.Status.ContainerStatuses[0].State)
			}
			let()
			fixture.Await(t, fixture.Patience, "the pod to be let go", func(ctx context.Context) (bool, string) {
				live := &corev1.Pod{}
				if err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(local), live); err != nil {
					return apierrors.IsNotFound(err), err.Error()
				}
				// The Job's controller takes its own at the same time.
				controllerutil.RemoveFinalizer(live, holds)
				err := env.Rome.Client.Update(ctx, live)
				return err == nil || apierrors.IsNotFound(err), fmt.Sprint(err)
			})
			if tc.ignored {
				world.AwaitGone(t, env.Rome, local)
				another, _ := onlyPod(t, job.Namespace)
				fixture.Must(t, "reading the Job", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job))
				if another.UID == local.UID || job.Status.Failed != 0 || job.Status.Active != 1 {
					t.Errorf("the Job is %+v", job.Status)
				}
				return
			}
			fixture.Await(t, fixture.Patience, "the Job to fail because of the exit code", func(ctx context.Context) (bool, string) {
				err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(job), job)
				for _, c := range job.Status.Conditions {
					if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
						return c.Reason == batchv1.JobReasonPodFailurePolicy && strings.Contains(c.Message, "exit code 42"), c.Reason + ": " + c.Message
					}
				}
				return false, fmt.Sprintf("%+v %v", job.Status, err)
			})
		})
	}
}

// A pod that milan's kubelet evicts is made again there. Until then nothing of it is shown to run, and how it ended stays to be read.
func TestAnEvictedRemotePodIsNotShownToRun(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	job := strict(env.Offloaded(t))
	fixture.Must(t, "creating a Job", env.Rome.Client.Create(t.Context(), job))
	local, remote := onlyPod(t, job.Namespace)
	let := hold(t, remote)
	fails(t, remote, 137, map[string]any{"reason": "Evicted", "message": "The node was low on resource: memory.", "conditions": []map[string]any{
		{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}, {"type": "Ready", "status": "False"}}})
	evicted := func(c corev1.ContainerStatus) bool {
		return c.LastTerminationState.Terminated != nil && c.LastTerminationState.Terminated.ExitCode == 137
	}
	env.AwaitPod(t, local, "the pod to show that it was evicted", func(p *corev1.Pod) bool {
		c := p.Status.ContainerStatuses[0]
		return c.State.Running == nil && !c.Ready && evicted(c)
	})
	let()
	env.AwaitPod(t, local, "the pod to run again", func(p *corev1.Pod) bool {
		c := p.Status.ContainerStatuses[0]
		return c.State.Running != nil && c.RestartCount == 1 && evicted(c)
	})
	if again := env.RemoteOf(t, local); again.UID == remote.UID {
		t.Error("it runs as the pod that was evicted")
	}
	fixture.Must(t, "reading the Job", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job))
	if job.Status.Failed != 0 {
		t.Errorf("the Job is %+v", job.Status)
	}
}
