package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// awaitUnready waits until a pod at rome that ran is not ready, and still the same pod.
func awaitUnready(t *testing.T, p *corev1.Pod) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "pod "+p.Name+" not to be ready", func(ctx context.Context) (bool, string) {
		live := &corev1.Pod{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(p), live); err != nil {
			return false, err.Error()
		}
		for _, c := range live.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && live.UID == p.UID && live.DeletionTimestamp == nil {
				return live.Status.Phase == corev1.PodRunning, fmt.Sprint(live.Status.Phase)
			}
		}
		return false, fmt.Sprintf("%+v", live.Status)
	})
}

// C3: the provider's administrator deletes the twin of a namespace with running pods. They are not ready, but nobody deletes them;
// what keeps the twin is named at home. Once it is gone it is made again, the same pods run again, and settings cross; the claim
// whose data went with it says so, and gets no empty one in its place.
func TestC3TwinIsDeletedAtTheProvider(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	web, data, db := world.Pod(namespace, "web"), world.Claim(namespace, "data", world.VirtualClass), world.PodWith(namespace, "db", "data")
	for _, object := range []client.Object{world.WordMap(namespace, "settings", "one"), web, data, db} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	world.AwaitClaim(t, env.Rome, data, "to be bound", world.Bound)
	world.AwaitPods(t, env.Milan, namespace, 2)
	before := world.AwaitPods(t, env.Rome, namespace, 2)
	env.AwaitWords(t, namespace, 1)
	started := restarts(t, web)
	blocker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs", Finalizers: []string{holds}}}
	fixture.Must(t, "making something at milan that does not go", env.Milan.Client.Create(t.Context(), blocker))
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	fixture.Must(t, "reading the twin", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(twin), twin))
	gone := twin.UID
	fixture.Must(t, "deleting the twin at milan", env.Milan.Client.Delete(t.Context(), twin))

	awaitUnready(t, web)
	awaitUnready(t, db)
	fixture.Await(t, fixture.Patience, "rome to say what keeps the twin", func(ctx context.Context) (bool, string) {
		m := &offloadingv1beta1.NamespaceMap{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: "milan"}, m)
		now := m.Status.CurrentMapping[namespace]
		return err == nil && now.Phase == offloadingv1beta1.MappingTerminating && strings.Contains(now.Message, holds), fmt.Sprint(now, err)
	})
	awaitOffloading(t, namespace, metav1.ConditionFalse, offloadingv1beta1.ReasonTwinTerminating)
	fixture.Must(t, "letting it go", env.Milan.Client.Patch(t.Context(), blocker, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	fixture.Await(t, 2*fixture.Patience, "the twin to be made again", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(twin), twin)
		return err == nil && twin.UID != gone && twin.DeletionTimestamp == nil, fmt.Sprint(twin.Status, err)
	})
	awaitOffloading(t, namespace, metav1.ConditionTrue, offloadingv1beta1.ReasonOffloadingReady)
	env.AwaitEvent(t, data, offloadingv1beta1.ReasonVolumeLost)
	env.AwaitWords(t, namespace, 1)
	fixture.Await(t, 2*fixture.Patience, "the pod without a claim to run again", func(ctx context.Context) (bool, string) {
		live := &corev1.Pod{}
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(web), live)
		return err == nil && live.UID == before[web.Name] && len(live.Status.ContainerStatuses) == 1 && live.Status.ContainerStatuses[0].Ready,
			fmt.Sprintf("%+v %v", live.Status, err)
	})
	if again := restarts(t, web); again <= started {
		t.Errorf("the pod that was made again shows %d restarts, before there were %d", again, started)
	}
	// What holds the data is asked for again only now, if ever: the pod that uses it was looked at when the other one was.
	live := &corev1.Pod{}
	fixture.Must(t, "reading the pod with the claim", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(db), live))
	if live.UID != before[db.Name] || live.DeletionTimestamp != nil {
		t.Error("the pod with the claim was replaced")
	}
	if err := env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(data), world.Claim(namespace, "data", "")); !apierrors.IsNotFound(err) {
		t.Errorf("a claim without the data is at milan, error %v", err)
	}
}

// awaitOffloading waits for a NamespaceOffloading to say how it is.
func awaitOffloading(t *testing.T, namespace string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "the NamespaceOffloading to say "+reason, func(ctx context.Context) (bool, string) {
		nso := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(nso), nso)
		ready := meta.FindStatusCondition(nso.Status.Conditions, corev1beta1.ConditionReady)
		return err == nil && ready != nil && ready.Status == status && ready.Reason == reason, fmt.Sprint(ready, err)
	})
}
