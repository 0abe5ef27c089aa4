package outages

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// apart is how long the link stays cut once both sides have changed: several probes and tries of each component.
const apart = 20 * time.Second

// A3: while the link is cut, 100 objects are made, 100 changed, 100 removed and 20 made anew at home, and some copies are changed and
// removed at the provider. When it is mended the copies are what the originals are, each pod has one remote pod, of its own, and what
// nobody touched was not replaced.
func TestA3PartitionWithChurnOnBothSides(t *testing.T) {
	env.Peered(t)
	namespace := env.Offloaded(t)
	rome, milan := env.Rome.Client, env.Milan.Client
	world.Each(t, "creating what is changed and removed later", 100, func(ctx context.Context, i int) error {
		if err := rome.Create(ctx, world.WordMap(namespace, fmt.Sprintf("changed-%d", i), "one")); err != nil {
			return err
		}
		if i < 90 {
			return rome.Create(ctx, world.WordMap(namespace, fmt.Sprintf("removed-%d", i), "one"))
		}
		return rome.Create(ctx, world.ImagePod(namespace, fmt.Sprintf("removed-%d", i), "one"))
	})
	world.Each(t, "creating what is made anew later, and what stays", 10, func(ctx context.Context, i int) error {
		for _, o := range []client.Object{
			world.WordMap(namespace, fmt.Sprintf("anew-%d", i), "one"), world.ImagePod(namespace, fmt.Sprintf("anew-%d", i), "one"), world.ImagePod(namespace, fmt.Sprintf("stays-%d", i), "one"),
		} {
			if err := rome.Create(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	world.AwaitPods(t, env.Rome, namespace, 30)
	before := world.AwaitPods(t, env.Milan, namespace, 30)
	env.AwaitWords(t, namespace, 200)

	mend := env.Cut(t)
	churnAtHome(t, namespace)
	world.Each(t, "changing and removing copies at the provider", 20, func(ctx context.Context, i int) error {
		if i < 10 {
			return milan.Delete(ctx, world.WordMap(namespace, fmt.Sprintf("changed-%d", i), ""))
		}
		return milan.Patch(ctx, world.WordMap(namespace, fmt.Sprintf("changed-%d", i), ""),
			client.RawPatch(types.MergePatchType, []byte(`{"data":{"word":"theirs","more":"theirs"}}`)))
	})
	end := time.Now().Add(apart)
	fixture.Await(t, 2*apart, "both sides to be apart for a while", func(context.Context) (bool, string) { return time.Now().After(end), "it passes" })
	mend()

	env.AwaitWords(t, namespace, 200)
	world.AwaitPods(t, env.Rome, namespace, 30)
	after := world.AwaitPods(t, env.Milan, namespace, 30)
	for i := range 10 {
		if name := fmt.Sprintf("stays-%d", i); before[name] != after[name] {
			t.Errorf("the remote pod of %s was replaced", name)
		}
	}
	env.OnePodEach(t, namespace)
}

// churnAtHome makes, changes and removes 100 objects each, and makes 20 anew.
func churnAtHome(t *testing.T, namespace string) {
	t.Helper()
	rome := env.Rome.Client
	world.Each(t, "making, changing and removing objects", 100, func(ctx context.Context, i int) error {
		made, removed := client.Object(world.WordMap(namespace, fmt.Sprintf("made-%d", i), "one")), client.Object(world.WordMap(namespace, fmt.Sprintf("removed-%d", i), ""))
		if i >= 90 {
			made, removed = world.ImagePod(namespace, fmt.Sprintf("made-%d", i), "one"), world.ImagePod(namespace, fmt.Sprintf("removed-%d", i), "")
		}
		if err := rome.Create(ctx, made); err != nil {
			return err
		}
		if err := rome.Delete(ctx, removed); err != nil {
			return err
		}
		return rome.Patch(ctx, world.WordMap(namespace, fmt.Sprintf("changed-%d", i), ""), client.RawPatch(types.MergePatchType, []byte(`{"data":{"word":"two"}}`)))
	})
	world.Each(t, "making objects anew", 10, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("anew-%d", i)
		if err := rome.Delete(ctx, world.WordMap(namespace, name, "")); err != nil {
			return err
		}
		// As for a StatefulSet whose pod an administrator gives up.
		if err := rome.Delete(ctx, world.ImagePod(namespace, name, ""), client.GracePeriodSeconds(0)); err != nil {
			return err
		}
		if err := rome.Create(ctx, world.WordMap(namespace, name, "two")); err != nil {
			return err
		}
		return rome.Create(ctx, world.ImagePod(namespace, name, "two"))
	})
}

// H2: a pod whose claim is bound to a cluster that does not answer stays pending and says why; the data is not touched, and the pod
// runs when the cluster is back.
func TestH2ClaimOfALostCluster(t *testing.T) {
	env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	local, remote := world.Claim(namespace, "data", world.VirtualClass), world.Claim(namespace, "data", "")
	first := world.PodWith(namespace, "first", "data")
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), first))
	world.AwaitClaim(t, env.Rome, local, "to be bound", world.Bound)
	world.AwaitClaim(t, env.Milan, remote, "to be bound", world.Bound)
	world.AwaitPods(t, env.Rome, namespace, 1)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), first))
	world.AwaitGone(t, env.Rome, first)
	env.Settled(t)
	mark := map[*fixture.Cluster]fixture.Moment{env.Rome: env.Rome.Recorder.Now(t), env.Milan: env.Milan.Recorder.Now(t)}

	mend := env.Cut(t)
	second := world.PodWith(namespace, "second", "data")
	fixture.Must(t, "creating a pod while the cluster is lost", env.Rome.Client.Create(t.Context(), second))
	fixture.Await(t, fixture.Patience, "the pod to say why it is pending", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(second), second)
		for _, c := range second.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && c.Message != "" {
				return true, ""
			}
		}
		return false, fmt.Sprintf("node %q, status %+v, error %v", second.Spec.NodeName, second.Status, err)
	})
	end := time.Now().Add(apart)
	fixture.Await(t, 2*apart, "the cluster to be lost for a while", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(second), second)
		if err == nil && (second.Status.Phase != corev1.PodPending || second.Spec.NodeName != "") {
			t.Fatalf("the pod is %s on node %q", second.Status.Phase, second.Spec.NodeName)
		}
		return time.Now().After(end), "it passes"
	})
	for c, start := range mark {
		for _, write := range c.Recorder.Since(t, start, fixture.OfLiqo) {
			if write.Resource == "persistentvolumeclaims" || write.Resource == "persistentvolumes" {
				t.Errorf("at %s: %s", c.ID, write)
			}
		}
	}
	mend()
	world.AwaitPods(t, env.Rome, namespace, 1)
	uid, volume := remote.UID, local.Spec.VolumeName
	fixture.Must(t, "reading the claim at home", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(local), local))
	fixture.Must(t, "reading the claim at the provider", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remote), remote))
	if remote.UID != uid || local.Spec.VolumeName != volume || !world.Bound(local) || !world.Bound(remote) {
		t.Errorf("the claim at home is %+v, that at the provider %+v", local.Spec, remote.Spec)
	}
}
