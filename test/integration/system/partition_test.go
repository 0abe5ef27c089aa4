package system

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	// apart is how long the link stays cut once both sides have changed: several probes and tries of each component.
	apart = 20 * time.Second
	// healing is how long it may take until everything is in step again.
	healing = 4 * time.Minute
	// atOnce is how many requests of a test are under way at a time.
	atOnce = 16
)

// cut takes milan's API server away from rome until mend, or the end of the test, and waits until rome shows it and no pod is put on
// the virtual node any more.
func (w *world) cut(t *testing.T) (mend func()) {
	t.Helper()
	env.Milan.Link.Cut()
	t.Cleanup(env.Milan.Link.Mend)
	w.awaitNode(t, false)
	return func() {
		env.Milan.Link.Mend()
		w.awaitNode(t, true)
	}
}

func (w *world) awaitNode(t *testing.T, want bool) {
	t.Helper()
	fixture.Await(t, 3*fixture.Patience, fmt.Sprintf("the virtual node's readiness to be %t, and its taints to say so", want), func(ctx context.Context) (bool, string) {
		node := &corev1.Node{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: w.node}, node)
		return err == nil && ready(node) == want && tainted(node) != want, fmt.Sprint(node.Status.Conditions, node.Spec.Taints, err)
	})
}

// tainted tells whether the scheduler knows that the node is not ready: Kubernetes' node controller tells it by a taint, some time after
// the condition has changed. A pod made in between is still bound to the node.
func tainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady && t.Effect == corev1.TaintEffectNoSchedule
	})
}

func wordMap(namespace, name, word string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"word": word}}
}

func imagePod(namespace, name, image string) *corev1.Pod {
	p := pod(namespace, name)
	p.Spec.Containers[0].Image = image
	return p
}

// each does the same for numbers from 0 on, several at a time.
func each(t *testing.T, doing string, count int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	fixture.Must(t, doing, group.Wait())
}

// words is what the ConfigMaps of a namespace that the test made hold.
func words(ctx context.Context, c *fixture.Cluster, namespace string) (map[string]string, error) {
	list := &corev1.ConfigMapList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for i := range list.Items {
		if word, ours := list.Items[i].Data["word"]; ours {
			all[list.Items[i].Name] = word
		}
	}
	return all, nil
}

// differences counts what two maps do not have in common, and names one.
func differences(a, b map[string]string) (count int, example string) {
	for key := range a {
		if other, there := b[key]; !there || other != a[key] {
			count, example = count+1, fmt.Sprintf("%s is %q and %q", key, a[key], other)
		}
	}
	for key := range b {
		if _, there := a[key]; !there {
			count, example = count+1, key+" is there too much"
		}
	}
	return count, example
}

// A3: while the link is cut, 100 objects are made, 100 changed, 100 removed and 20 made anew at home, and some copies are changed and
// removed at the provider. When it is mended the copies are what the originals are, each pod has one remote pod, of its own, and what
// nobody touched was not replaced.
func TestA3PartitionWithChurnOnBothSides(t *testing.T) {
	w := peered(t)
	namespace := offloaded(t)
	rome, milan := env.Rome.Client, env.Milan.Client
	each(t, "creating what is changed and removed later", 100, func(ctx context.Context, i int) error {
		if err := rome.Create(ctx, wordMap(namespace, fmt.Sprintf("changed-%d", i), "one")); err != nil {
			return err
		}
		if i < 90 {
			return rome.Create(ctx, wordMap(namespace, fmt.Sprintf("removed-%d", i), "one"))
		}
		return rome.Create(ctx, imagePod(namespace, fmt.Sprintf("removed-%d", i), "one"))
	})
	each(t, "creating what is made anew later, and what stays", 10, func(ctx context.Context, i int) error {
		for _, o := range []client.Object{
			wordMap(namespace, fmt.Sprintf("anew-%d", i), "one"), imagePod(namespace, fmt.Sprintf("anew-%d", i), "one"), imagePod(namespace, fmt.Sprintf("stays-%d", i), "one"),
		} {
			if err := rome.Create(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	awaitPods(t, env.Rome, namespace, 30)
	before := awaitPods(t, env.Milan, namespace, 30)
	awaitWords(t, namespace, 200)

	mend := w.cut(t)
	churnAtHome(t, namespace)
	each(t, "changing and removing copies at the provider", 20, func(ctx context.Context, i int) error {
		if i < 10 {
			return milan.Delete(ctx, wordMap(namespace, fmt.Sprintf("changed-%d", i), ""))
		}
		return milan.Patch(ctx, wordMap(namespace, fmt.Sprintf("changed-%d", i), ""),
			client.RawPatch(types.MergePatchType, []byte(`{"data":{"word":"theirs","more":"theirs"}}`)))
	})
	end := time.Now().Add(apart)
	fixture.Await(t, 2*apart, "both sides to be apart for a while", func(context.Context) (bool, string) { return time.Now().After(end), "it passes" })
	mend()

	awaitWords(t, namespace, 200)
	awaitPods(t, env.Rome, namespace, 30)
	after := awaitPods(t, env.Milan, namespace, 30)
	for i := range 10 {
		if name := fmt.Sprintf("stays-%d", i); before[name] != after[name] {
			t.Errorf("the remote pod of %s was replaced", name)
		}
	}
	onePodEach(t, namespace)
}

// churnAtHome makes, changes and removes 100 objects each, and makes 20 anew.
func churnAtHome(t *testing.T, namespace string) {
	t.Helper()
	rome := env.Rome.Client
	each(t, "making, changing and removing objects", 100, func(ctx context.Context, i int) error {
		made, removed := client.Object(wordMap(namespace, fmt.Sprintf("made-%d", i), "one")), client.Object(wordMap(namespace, fmt.Sprintf("removed-%d", i), ""))
		if i >= 90 {
			made, removed = imagePod(namespace, fmt.Sprintf("made-%d", i), "one"), imagePod(namespace, fmt.Sprintf("removed-%d", i), "")
		}
		if err := rome.Create(ctx, made); err != nil {
			return err
		}
		if err := rome.Delete(ctx, removed); err != nil {
			return err
		}
		return rome.Patch(ctx, wordMap(namespace, fmt.Sprintf("changed-%d", i), ""), client.RawPatch(types.MergePatchType, []byte(`{"data":{"word":"two"}}`)))
	})
	each(t, "making objects anew", 10, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("anew-%d", i)
		if err := rome.Delete(ctx, wordMap(namespace, name, "")); err != nil {
			return err
		}
		// As for a StatefulSet whose pod an administrator gives up.
		if err := rome.Delete(ctx, imagePod(namespace, name, ""), client.GracePeriodSeconds(0)); err != nil {
			return err
		}
		if err := rome.Create(ctx, wordMap(namespace, name, "two")); err != nil {
			return err
		}
		return rome.Create(ctx, imagePod(namespace, name, "two"))
	})
}

// awaitWords waits until both sides hold the same ConfigMaps, so many.
func awaitWords(t *testing.T, namespace string, count int) {
	t.Helper()
	fixture.Await(t, healing, "the ConfigMaps of both sides to be the same", func(ctx context.Context) (bool, string) {
		local, err := words(ctx, env.Rome, namespace)
		if err != nil {
			return false, err.Error()
		}
		remote, err := words(ctx, env.Milan, namespace)
		if err != nil {
			return false, err.Error()
		}
		differ, example := differences(local, remote)
		return differ == 0 && len(local) == count, fmt.Sprintf("%d at home, %d differ: %s", len(local), differ, example)
	})
}

// onePodEach checks that each local pod has exactly one remote pod, which runs what the local one says.
func onePodEach(t *testing.T, namespace string) {
	t.Helper()
	local, remote := &corev1.PodList{}, &corev1.PodList{}
	fixture.Must(t, "listing pods at home", env.Rome.Client.List(t.Context(), local, client.InNamespace(namespace)))
	fixture.Must(t, "listing pods at the provider", env.Milan.Client.List(t.Context(), remote, client.InNamespace(namespace)))
	images := map[string]string{}
	for i := range remote.Items {
		origin := remote.Items[i].Annotations[corev1beta1.OriginUIDAnnotation]
		if images[origin] != "" {
			t.Errorf("two remote pods stand for the pod with UID %s", origin)
		}
		images[origin] = remote.Items[i].Spec.Containers[0].Image
	}
	for i := range local.Items {
		p := &local.Items[i]
		if image := images[string(p.UID)]; image != p.Spec.Containers[0].Image {
			t.Errorf("pod %s runs image %q at the provider, want %q", p.Name, image, p.Spec.Containers[0].Image)
		}
	}
	if len(local.Items) != len(images) {
		t.Errorf("%d local pods and %d that remote ones stand for", len(local.Items), len(images))
	}
}

// H2: a pod whose claim is bound to a cluster that does not answer stays pending and says why; the data is not touched, and the pod
// runs when the cluster is back.
func TestH2ClaimOfALostCluster(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := offloaded(t)
	local, remote := claim(namespace, "data", virtualClass), claim(namespace, "data", "")
	first := podWith(namespace, "first", "data")
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), first))
	awaitClaim(t, env.Rome, local, "to be bound", bound)
	awaitClaim(t, env.Milan, remote, "to be bound", bound)
	awaitPods(t, env.Rome, namespace, 1)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), first))
	awaitGone(t, env.Rome, first)
	settled(t)
	mark := map[*fixture.Cluster]fixture.Moment{env.Rome: env.Rome.Recorder.Now(t), env.Milan: env.Milan.Recorder.Now(t)}

	mend := w.cut(t)
	second := podWith(namespace, "second", "data")
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
	awaitPods(t, env.Rome, namespace, 1)
	uid, volume := remote.UID, local.Spec.VolumeName
	fixture.Must(t, "reading the claim at home", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(local), local))
	fixture.Must(t, "reading the claim at the provider", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remote), remote))
	if remote.UID != uid || local.Spec.VolumeName != volume || !bound(local) || !bound(remote) {
		t.Errorf("the claim at home is %+v, that at the provider %+v", local.Spec, remote.Spec)
	}
}
