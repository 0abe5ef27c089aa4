package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// patchAs changes an object as a certain field manager does.
func patchAs(t *testing.T, c *fixture.Cluster, object client.Object, manager, patch string) {
	t.Helper()
	fixture.Must(t, "changing "+object.GetName(), c.Client.Patch(t.Context(), object.DeepCopyObject().(client.Object),
		client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

// Labels and annotations of a running pod follow: one that is removed at home goes from the provider's pod, one that the provider's
// own controllers set there stays, and the pod runs on.
func TestKeysOfARunningPodFollow(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	local := world.Pod(namespace, "web")
	local.Labels = map[string]string{"app": "shop", "tier": "front"}
	local.Annotations = map[string]string{"note": "stays", "remark": "goes"}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), local))
	before := world.AwaitPods(t, env.Milan, namespace, 1)
	world.AwaitPods(t, env.Rome, namespace, 1)
	remote := world.Pod(namespace, "web")
	theirs := `{"metadata":{"labels":{"example.com/zone":"milan"},"annotations":{"example.com/checked":"yes"}}}`
	patchAs(t, env.Milan, remote, "provider-controller", theirs)

	awaitKeys := func(what string, want map[string]string, gone ...string) {
		t.Helper()
		fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
			live := &corev1.Pod{}
			err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(remote), live)
			all, right := map[string]string{}, err == nil && live.UID == before["web"]
			for _, keys := range []map[string]string{live.Labels, live.Annotations} {
				for key, value := range keys {
					all[key] = value
				}
			}
			for key, value := range want {
				right = right && all[key] == value
			}
			for _, key := range gone {
				_, there := all[key]
				right = right && !there
			}
			return right, fmt.Sprint(live.UID, live.Labels, live.Annotations, err)
		})
	}
	ofTheirs := map[string]string{"example.com/zone": "milan", "example.com/checked": "yes"}
	with := func(more map[string]string) map[string]string {
		for key, value := range ofTheirs {
			more[key] = value
		}
		return more
	}
	patchAs(t, env.Rome, local, "user", `{"metadata":{"labels":{"tier":null,"wave":"2"},"annotations":{"remark":null}}}`)
	awaitKeys("what was removed at home to go", with(map[string]string{"app": "shop", "wave": "2", "note": "stays"}), "tier", "remark")
	patchAs(t, env.Rome, local, "user", `{"metadata":{"labels":{"wave":null},"annotations":{"note":null}}}`)
	awaitKeys("what was added and removed at home to go", with(map[string]string{"app": "shop"}), "tier", "remark", "wave", "note")

	// Nobody fights over what the provider's controller set.
	start := env.Milan.Recorder.Now(t)
	patchAs(t, env.Milan, remote, "provider-controller", strings.ReplaceAll(theirs, `"yes"`, `"again"`))
	ofTheirs["example.com/checked"] = "again"
	patchAs(t, env.Rome, local, "user", `{"metadata":{"labels":{"last":"one"}}}`)
	awaitKeys("a later change to arrive", with(map[string]string{"app": "shop", "last": "one"}), "tier", "remark", "wave", "note")
	writes := 0
	fixture.Await(t, fixture.Patience, "a write of the provider's pod", func(context.Context) (bool, string) {
		writes = 0
		for _, w := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
			if w.Namespace == namespace && w.Name == "web" && w.Resource == "pods" {
				writes++
			}
		}
		return writes > 0, "none"
	})
	if writes != 1 {
		t.Errorf("%d writes of the provider's pod for one change at home", writes)
	}
}
