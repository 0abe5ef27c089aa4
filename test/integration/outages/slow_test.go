package outages

import (
	"context"
	"fmt"
	"testing"
	"time"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A6: milan's API server answers, but late. While it takes a few seconds pods are made and removed there as they are elsewhere, once each;
// while it takes longer than a probe may, the virtual node is not ready, and nothing is made twice or lost.
func TestA6SlowAnswers(t *testing.T) {
	env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "early")))
	before := world.AwaitPods(t, env.Milan, namespace, 1)
	t.Cleanup(env.Milan.Link.Mend)

	env.Milan.Link.Slow(2 * time.Second)
	start := env.Milan.Recorder.Now(t)
	create := func(word string) {
		t.Helper()
		world.Each(t, "creating pods and ConfigMaps", 20, func(ctx context.Context, i int) error {
			if i < 10 {
				return env.Rome.Client.Create(ctx, world.Pod(namespace, fmt.Sprintf("%s-%d", word, i)))
			}
			return env.Rome.Client.Create(ctx, world.WordMap(namespace, fmt.Sprintf("%s-%d", word, i), word))
		})
	}
	create("slow")
	world.AwaitPods(t, env.Rome, namespace, 11)
	world.AwaitPods(t, env.Milan, namespace, 11)
	env.AwaitWords(t, namespace, 10)
	if creations := len(creationsOf(t, start, namespace, "shadowpods.offloading.liqo.io")); creations != 10 {
		t.Errorf("%d ShadowPods were made for 10 pods", creations)
	}

	env.Milan.Link.Slow(30 * time.Second)
	env.AwaitNode(t, false)
	create("late") // ConfigMaps cross when they can; pods wait for a ready node
	env.Milan.Link.Mend()
	env.AwaitNode(t, true)
	world.AwaitPods(t, env.Rome, namespace, 21)
	after := world.AwaitPods(t, env.Milan, namespace, 21)
	env.AwaitWords(t, namespace, 20)
	if before["early"] != after["early"] {
		t.Error("a pod that ran before was replaced")
	}
	env.OnePodEach(t, namespace)
	if creations := len(creationsOf(t, start, namespace, "shadowpods.offloading.liqo.io")); creations != 20 {
		t.Errorf("%d ShadowPods were made for 20 pods", creations)
	}
}

// creationsOf are the objects of a resource that Liqo made in a namespace of milan since a moment: what earlier tests left is made again
// elsewhere while the link gets better.
func creationsOf(t *testing.T, start fixture.Moment, namespace, resource string) []fixture.Write {
	t.Helper()
	var found []fixture.Write
	for _, write := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
		if write.Verb == "create" && write.Namespace == namespace && write.Resource == resource {
			found = append(found, write)
		}
	}
	return found
}
