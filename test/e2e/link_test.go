package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

const (
	// noticed is how long a virtual node may seem to be ready although its provider does not answer (A1).
	noticed = 40 * time.Second
	// leaseLost is longer than the lease of a node (40 s) and the grace of the cluster's node controller (50 s).
	leaseLost = 55 * time.Second
)

// TestLink is acceptance point 4: a link that is cut for longer than the node's lease (A2, A3, C1, C2, C4).
func TestLink(t *testing.T) {
	the.alone(t)
	the.settled(t)
	const namespace = "apart"
	twin := the.offloaded(t, namespace)
	set := statefulSet(namespace, "db", script(forever))
	shrinks := deployment(namespace, "shrinks", 2, script(forever))
	old := &corev1.ConfigMap{ObjectMeta: named(namespace, "old"), Data: map[string]string{"word": "one"}}
	changed := &corev1.ConfigMap{ObjectMeta: named(namespace, "changed"), Data: map[string]string{"word": "one"}}
	the.rome.creates(t, old, changed, set, shrinks, deployment(namespace, "app", 3, script(forever)))
	app, db := the.rome.ready(t, namespace, "app", 3), the.rome.ready(t, namespace, "db", 1)[0]
	the.rome.ready(t, namespace, "shrinks", 2)
	before := pairs(t, the.milan.everyPod(t, twin, 6))
	oldCopy := &corev1.ConfigMap{ObjectMeta: named(twin, "old")}
	the.milan.sees(t, oldCopy, "the copy of a ConfigMap")

	the.cut(t)
	since := time.Now()
	eventually(t, noticed, "the virtual node not to be ready", the.nodeIs(false))
	the.tunnelIs(t, networkingv1beta1.ConnectionError)
	eventually(t, noticed, "no pod to be shown as ready, because nobody can know", func(ctx context.Context) (bool, string) {
		pods, err := the.rome.pods(ctx, namespace)
		return err == nil && len(pods) == 6 && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return isReady(&pod) }), describe(pods)
	})
	again := recreatedAtProvider(t, twin, app[0].Name)
	before[string(app[0].UID)] = again
	throughout(t, max(3*time.Second, leaseLost-time.Since(since)), "the life of the remote pods", the.milan.sameAs(t, twin, before))
	throughout(t, interval, "a virtual node that is not ready", the.nodeSeen(false))

	// Both sides go on with their lives: what was decided at home has to arrive afterwards.
	the.rome.deletes(t, old)
	the.rome.changes(t, changed, func() { changed.Data["word"] = "two" })
	the.rome.creates(t, &corev1.ConfigMap{ObjectMeta: named(namespace, "new"), Data: map[string]string{"word": "three"}})
	replaceImage(t, set)
	the.rome.deletes(t, &db, client.GracePeriodSeconds(0))
	the.rome.changes(t, shrinks, func() { one := int32(1); shrinks.Spec.Replicas = &one })

	the.mend(t)
	eventually(t, patience, "the virtual node to be ready again", the.nodeIs(true))
	the.tunnelIs(t, networkingv1beta1.Connected)
	the.milan.misses(t, oldCopy, "the copy of a ConfigMap that was deleted meanwhile")
	for name, word := range map[string]string{"changed": "two", "new": "three"} {
		object := &corev1.ConfigMap{ObjectMeta: named(twin, name)}
		the.milan.holds(t, object, func() string { return object.Data["word"] }, word)
	}
	becomesOtherImage(t, namespace, twin, &db)
	the.rome.ready(t, namespace, "shrinks", 1)
	the.milan.ready(t, twin, "shrinks", 1)
	local := the.rome.ready(t, namespace, "app", 3)
	remote := pairs(t, the.milan.ready(t, twin, "app", 3))
	for i := range local {
		if local[i].UID != app[i].UID {
			t.Errorf("pod %s was replaced at home", app[i].Name)
		}
		if was, is := before[string(app[i].UID)], remote[string(local[i].UID)]; is != was {
			t.Errorf("pod %s runs as %s, and ran as %s", app[i].Name, is, was)
		}
	}
	eventually(t, soon, "the pod that was made again to show a restart", func(ctx context.Context) (bool, string) {
		pod := &corev1.Pod{}
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(&app[0]), pod); err != nil {
			return false, err.Error()
		}
		restarts := pod.Status.ContainerStatuses[0].RestartCount
		return restarts == 1, fmt.Sprintf("%d restarts", restarts)
	})
}

// tunnelIs waits until both ends say so of the tunnel between the clusters, if there is one.
func (s *suite) tunnelIs(t *testing.T, want networkingv1beta1.ConnectionStatusValue) {
	t.Helper()
	if !s.world.connects() {
		return
	}
	for _, c := range []*side{s.rome, s.milan} {
		eventually(t, around, fmt.Sprintf("%s to say that the tunnel is %s", c.name, want), c.connected(other(c).name, want))
	}
}

// recreatedAtProvider deletes a pod at the provider, and waits until the provider has made it again without the consumer.
func recreatedAtProvider(t *testing.T, twin, name string) (uid string) {
	t.Helper()
	gone := &corev1.Pod{ObjectMeta: named(twin, name)}
	the.milan.reads(t, gone)
	the.milan.deletes(t, gone)
	again := &corev1.Pod{}
	eventually(t, patience, "the deleted pod to run again at the provider", func(ctx context.Context) (bool, string) {
		if err := the.milan.Get(ctx, client.ObjectKeyFromObject(gone), again); err != nil {
			return false, err.Error()
		}
		return again.UID != gone.UID && again.DeletionTimestamp == nil && isReady(again), describe([]corev1.Pod{*again})
	})
	if origin(again) != origin(gone) {
		t.Errorf("pod %s stands for %s now, and for %s before", name, origin(again), origin(gone))
	}
	return string(again.UID)
}

// everyPod waits until a namespace has a number of pods, and returns them.
func (c *side) everyPod(t *testing.T, namespace string, count int) (pods []corev1.Pod) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%d pods in %s at %s", count, namespace, c.name), func(ctx context.Context) (bool, string) {
		var err error
		if pods, err = c.pods(ctx, namespace); err != nil {
			return false, err.Error()
		}
		return len(pods) == count, describe(pods)
	})
	return pods
}

// cut separates the clusters until mend or the end of the test.
func (s *suite) cut(t *testing.T) {
	t.Helper()
	if err := s.breaks(t).CutLink(t.Context(), consumer, provider); err != nil {
		t.Fatalf("cutting the link: %v", err)
	}
	t.Cleanup(func() { s.mend(t) })
}

func (s *suite) mend(t *testing.T) {
	t.Helper()
	if err := s.breaks(t).RestoreLink(context.WithoutCancel(t.Context()), consumer, provider); err != nil {
		t.Fatalf("restoring the link: %v", err)
	}
}

// TestAPIServersDown shows that pods outlive API servers, of either cluster (A1, A4).
func TestAPIServersDown(t *testing.T) {
	the.alone(t)
	the.settled(t)
	const namespace = "deaf"
	twin := the.offloaded(t, namespace)
	the.rome.creates(t, deployment(namespace, "app", 2, script(forever)))
	local := the.rome.ready(t, namespace, "app", 2)
	before := pairs(t, the.milan.ready(t, twin, "app", 2))

	t.Run("the provider's", func(t *testing.T) {
		the.recordFailure(t)
		the.withoutAPIServer(t, the.milan, func() {
			throughout(t, 12*time.Second, "the pods of the consumer", func(ctx context.Context) (bool, string, error) {
				pods, err := the.rome.pods(ctx, namespace)
				return len(pods) == 2 && pods[0].UID != "", describe(pods), err
			})
		})
	})
	t.Run("the consumer's", func(t *testing.T) {
		the.recordFailure(t)
		the.withoutAPIServer(t, the.rome, func() {
			throughout(t, 12*time.Second, "the life of the remote pods", the.milan.sameAs(t, twin, before))
		})
	})
	eventually(t, patience, "the virtual node to be ready", the.nodeIs(true))
	throughout(t, 3*time.Second, "the life of the remote pods", the.milan.sameAs(t, twin, before))
	for i, pod := range the.rome.ready(t, namespace, "app", 2) {
		if pod.UID != local[i].UID || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pod %s was replaced or restarted", local[i].Name)
		}
	}
}

// withoutAPIServer does something while a cluster's API server is dead.
func (s *suite) withoutAPIServer(t *testing.T, c *side, meanwhile func()) {
	t.Helper()
	component := c.name + "/kube-apiserver"
	if err := s.breaks(t).Kill(component); err != nil {
		t.Fatalf("killing %s: %v", component, err)
	}
	defer func() {
		since := time.Now()
		if err := s.breaks(t).Restart(context.WithoutCancel(t.Context()), component); err != nil {
			t.Fatalf("restarting %s: %v", component, err)
		}
		eventually(t, patience, component+" to answer", func(ctx context.Context) (bool, string) {
			answer, err := c.kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err == nil, fmt.Sprintf("%s %v", answer, err)
		})
		c.recovers(t, since)
	}()
	meanwhile()
}

// TestNodeAndPodsTakenAway shows what becomes of a virtual node that is deleted (C12) and of a pod that is evicted (C14).
func TestNodeAndPodsTakenAway(t *testing.T) {
	the.alone(t)
	the.settled(t)
	const namespace = "taken"
	twin := the.offloaded(t, namespace)
	the.rome.creates(t, deployment(namespace, "app", 2, script(forever)))
	local := the.rome.ready(t, namespace, "app", 2)
	before := pairs(t, the.milan.ready(t, twin, "app", 2))

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: virtualNode}}
	the.rome.reads(t, node)
	the.rome.deletes(t, node)
	eventually(t, patience, "the virtual node to be there again", func(ctx context.Context) (bool, string) {
		again := &corev1.Node{}
		if err := the.rome.Get(ctx, client.ObjectKey{Name: virtualNode}, again); err != nil {
			return false, err.Error()
		}
		return again.UID != node.UID, "the old one"
	})
	eventually(t, patience, "the virtual node to be ready again", the.nodeIs(true))
	// Kubernetes collects the pods of vanished nodes after 40 s.
	throughout(t, 3*time.Second, "the life of the remote pods", the.milan.sameAs(t, twin, before))

	eviction := &policyv1.Eviction{ObjectMeta: named(twin, local[0].Name)}
	if err := the.milan.kube.CoreV1().Pods(twin).EvictV1(t.Context(), eviction); err != nil {
		t.Fatalf("evicting pod %s at the provider: %v", local[0].Name, err)
	}
	eventually(t, patience, "the evicted pod to run again at the provider", func(ctx context.Context) (bool, string) {
		again := &corev1.Pod{}
		if err := the.milan.Get(ctx, client.ObjectKey{Namespace: twin, Name: local[0].Name}, again); err != nil {
			return false, err.Error()
		}
		return string(again.UID) != before[string(local[0].UID)] && isReady(again), describe([]corev1.Pod{*again})
	})
	for i, pod := range the.rome.ready(t, namespace, "app", 2) {
		if pod.UID != local[i].UID {
			t.Errorf("pod %s was replaced at home", local[i].Name)
		}
	}
}
