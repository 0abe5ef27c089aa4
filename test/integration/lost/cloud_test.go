package lost

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A cloud's controller deletes a Node without an instance whenever it is not ready, and does so again and again while the provider hangs:
// longer than Kubernetes' collector of pods waits for a Node that is missing, which is 40 s. The Node is made again each time, and in the end
// the same pods are there on both sides. In the midst of it Kubernetes' controller manager is replaced, as a cloud does it with an upgrade:
// the new one has never seen the Node ready, and may find it missing.
func TestAVirtualNodeThatACloudDeletesAgainAndAgain(t *testing.T) {
	const times, atLeast, controllers = 15, time.Minute, "rome/kube-controller-manager"
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	for i := range 3 {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, fmt.Sprintf("p%d", i))))
	}
	both := func() (home, there map[string]string) {
		uids := func(c *fixture.Cluster) map[string]string {
			all := map[string]string{}
			for name, uid := range world.AwaitPods(t, c, namespace, 3) {
				all[name] = string(uid)
			}
			return all
		}
		return uids(env.Rome), uids(env.Milan)
	}
	home, there := both()

	mend := env.Cut(t)
	deleted, since, replaced := 0, time.Now(), false
	fixture.Await(t, 4*fixture.Patience, "the Node to be made again after each deletion", func(ctx context.Context) (bool, string) {
		node := &corev1.Node{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: w.Node}, node)
		if err == nil && !fixture.NodeReady(node) && node.DeletionTimestamp.IsZero() {
			if err = env.Rome.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID}); err == nil {
				deleted++
			}
			if err == nil && deleted >= times/3 && !replaced {
				err = env.Environment.Lab.Restart(ctx, controllers)
				replaced, since = err == nil, time.Now() // The new one's patience with a Node that is missing begins.
			}
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return false, err.Error()
		}
		return replaced && deleted >= times && time.Since(since) >= atLeast,
			fmt.Sprintf("deleted %d times, %s since %s was replaced: %t", deleted, time.Since(since), controllers, replaced)
	})
	mend()

	nowHome, nowThere := both()
	if !maps.Equal(home, nowHome) {
		t.Errorf("at rome there were %v, and are %v", home, nowHome)
	}
	if !maps.Equal(there, nowThere) {
		t.Errorf("at milan there were %v, and are %v", there, nowThere)
	}
	env.Settled(t)
}
