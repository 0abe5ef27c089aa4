package outages

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A1 with A8: milan makes a pod, the answer is lost, and the link with it. The local pod is deleted meanwhile, as a StatefulSet does that
// is scaled or rolled out. As on any node that cannot be reached, it is not gone before somebody knows that it does not run: else its
// successor of the same name runs elsewhere beside it. One that milan was never asked for goes at once.
func TestAPodWhoseCreationWasNotAnsweredIsNotTakenForOneThatNeverWas(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "creating the first pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "first")))
	world.AwaitPods(t, env.Rome, namespace, 1)
	env.Milan.Link.Slow(2 * time.Minute) // requests arrive, answers do not
	t.Cleanup(env.Milan.Link.Mend)
	local, remote := world.Pod(namespace, "asked"), &corev1.Pod{}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), local))
	fixture.Await(t, 2*fixture.Patience, "the remote pod to run", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(local), remote)
		return err == nil && remote.Status.Phase == corev1.PodRunning, fmt.Sprint(remote.Status.Phase, err)
	})
	env.Milan.Link.Cut()
	env.AwaitNode(t, false)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), local))
	// What comes after it has to wait, says so, and goes at once: by then the other one was looked at, too.
	never := world.Pod(namespace, "never")
	never.Spec.NodeName = w.Kubelet.Node
	fixture.Must(t, "creating a pod that milan is not asked for", env.Rome.Client.Create(t.Context(), never))
	fixture.Await(t, 2*fixture.Patience, "it to say that it waits", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(never), never)
		return err == nil && never.Status.Reason == offloadingv1beta1.ReasonRemoteUnavailable, fmt.Sprint(never.Status, err)
	})
	fixture.Must(t, "deleting it", env.Rome.Client.Delete(t.Context(), never))
	fixture.Await(t, 2*fixture.Patience, "it to be gone", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(never), never)
		return apierrors.IsNotFound(err), fmt.Sprint(never.Status, err)
	})
	if err := env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(local), local); err != nil {
		t.Errorf("the pod is gone at rome, so that its successor may run elsewhere, while its remote pod runs on in milan, which nobody can reach: %v", err)
	}
	env.Milan.Link.Mend()
	env.AwaitNode(t, true)
	for _, c := range []*fixture.Cluster{env.Rome, env.Milan} {
		fixture.Await(t, 2*fixture.Patience, "the pod to be gone at "+c.ID, func(ctx context.Context) (bool, string) {
			err := c.Client.Get(ctx, client.ObjectKeyFromObject(local), &corev1.Pod{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
}
