package restarts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A grant is exact whoever answers: five hundred ShadowPods are asked for at once, two replicas of the controller manager admit them in turn,
// each knowing of what itself admitted alone, and the one that makes Pods is killed meanwhile. There are never more Pods than were granted, in
// the end as many, and when they are gone the whole grant is free again.
func TestAGrantIsExactWithTwoReplicas(t *testing.T) {
	const attempts, granted = 500, 40
	w := env.Peered(t)
	other := w.Milan.Beside(t)
	t.Cleanup(func() { fixture.Must(t, "stopping the second controller manager", other.Stop()) })
	w.Milan.Alternate(t, other)
	for _, mode := range []offloadingv1beta1.LimitsEnforcement{
		offloadingv1beta1.NoLimitsEnforcement, offloadingv1beta1.SoftLimitsEnforcement, offloadingv1beta1.HardLimitsEnforcement,
	} {
		t.Run(string(mode), func(t *testing.T) {
			c := env.NewTenant(t)
			c.Granted(t, world.GrantedSlice, world.Quantities("cpu", fmt.Sprint(granted), "memory", "64Gi", "pods", "1k"))
			namespace := c.Twin(t)
			enforce(t, c, mode)
			user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
			ask := func(name string, lacks bool) error {
				return user.Create(t.Context(), c.Shadow(namespace, name, world.Container(func(one *corev1.Container) {
					one.Resources.Requests = world.Quantities("cpu", "1", "memory", "8Mi", "ephemeral-storage", "1Mi")
					one.Resources.Limits = one.Resources.Requests.DeepCopy()
					if lacks && mode == offloadingv1beta1.SoftLimitsEnforcement {
						one.Resources.Requests, one.Resources.Limits = world.Quantities("cpu", "1"), nil
					} else if lacks {
						one.Resources.Limits = world.Quantities("cpu", "2", "memory", "8Mi", "ephemeral-storage", "1Mi")
					}
				})))
			}
			if err := ask("lacks", true); mode != offloadingv1beta1.NoLimitsEnforcement && err == nil {
				t.Errorf("with %s a pod was admitted that does not say what it needs", mode)
			} else if err == nil {
				emptied(t, namespace)
			}

			most := mostPods(t, namespace)
			var admitted atomic.Int64
			var all sync.WaitGroup
			for i := range attempts {
				all.Go(func() {
					err := ask(fmt.Sprintf("pod-%d", i), false)
					switch {
					case err == nil:
						admitted.Add(1)
					case !strings.Contains(err.Error(), offloadingv1beta1.ReasonQuotaExceeded):
						t.Logf("refused with %v", err) // a replica that is killed answers nothing
					}
				})
			}
			fixture.Await(t, fixture.Patience, "half of the grant to be admitted", func(context.Context) (bool, string) {
				return admitted.Load() >= granted/2, fmt.Sprint(admitted.Load())
			})
			leader, follower := w.Milan, other
			fixture.Must(t, "killing a controller manager", leader.Kill())
			all.Wait()
			world.AwaitPods(t, env.Milan, namespace, granted)
			leader.Start(t)
			fixture.Must(t, "killing the other controller manager", follower.Kill())
			follower.Start(t)
			t.Logf("%d of %d were admitted to a grant of %d; at most %d Pods at a time", admitted.Load(), attempts, granted, most())
			// All of them were there just now; an API server that is busy may tell of the last ones later.
			if n := most(); n == 0 || n > granted {
				t.Errorf("there were up to %d Pods of 1 cpu with a grant of %d", n, granted)
			}

			emptied(t, namespace)
			for i := range granted {
				// One replica may hear of what has gone later than the other.
				fixture.Await(t, fixture.Patience, "the whole grant to be free again", func(ctx context.Context) (bool, string) {
					err := ask(fmt.Sprintf("again-%d", i), false)
					return err == nil, fmt.Sprintf("%d of %d: %v", i, granted, err)
				})
			}
			world.AwaitPods(t, env.Milan, namespace, granted)
		})
	}
}

// enforce has the Quotas of a tenant be enforced in a way.
func enforce(t *testing.T, c *world.Tenant, mode offloadingv1beta1.LimitsEnforcement) {
	t.Helper()
	quotas := &offloadingv1beta1.QuotaList{}
	fixture.Must(t, "listing Quotas", env.Milan.Client.List(t.Context(), quotas, client.InNamespace(c.Namespace)))
	if len(quotas.Items) != 1 {
		t.Fatalf("%d Quotas, want one", len(quotas.Items))
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"limitsEnforcement":%q}}`, mode))
	fixture.Must(t, "changing a Quota", env.Milan.Client.Patch(t.Context(), &quotas.Items[0], patch))
}

// emptied deletes the ShadowPods of a namespace and waits until their Pods are gone.
func emptied(t *testing.T, namespace string) {
	t.Helper()
	fixture.Must(t, "deleting all ShadowPods", env.Milan.Client.DeleteAllOf(t.Context(), &offloadingv1beta1.ShadowPod{}, client.InNamespace(namespace)))
	world.AwaitPods(t, env.Milan, namespace, 0)
}

// mostPods watches the Pods of a namespace, and tells how many there were at most at a time.
func mostPods(t *testing.T, namespace string) func() int {
	t.Helper()
	watcher, err := env.Milan.Client.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(namespace))
	fixture.Must(t, "watching Pods", err)
	var mu sync.Mutex
	most, now := 0, map[types.UID]bool{}
	go func() {
		for event := range watcher.ResultChan() {
			pod, is := event.Object.(*corev1.Pod)
			if !is {
				continue
			}
			mu.Lock()
			if event.Type == "DELETED" {
				delete(now, pod.UID)
			} else {
				now[pod.UID] = true
			}
			most = max(most, len(now))
			mu.Unlock()
		}
	}()
	t.Cleanup(watcher.Stop)
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}
