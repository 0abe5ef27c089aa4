package pod

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
)

// flood has the provider show pods that it says to be this virtual node's.
func (w *world) flood(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.kube.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: twinNamespace, UID: "flood", Labels: map[string]string{
			offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.NodeNameLabel: "milan",
		}}}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// W9: a provider that shows more pods than are accepted has none of them followed, pods say why they do not start, and nothing is
// concluded: those that run stay. Once there are fewer again, all goes on.
func TestW9TooManyRemotePods(t *testing.T) {
	for name, early := range map[string]bool{"before they are listed": true, "while they are watched": false} {
		t.Run(name, func(t *testing.T) {
			w, clock := newWorld(t), clocktesting.NewFakeClock(time.Unix(1000, 0))
			w.change = func(o *Options) { o.MaxRemotePods, o.Clock = 2, clock }
			w.provider()
			if early {
				w.flood("x", "y", "z")
			}
			w.start()
			w.offload()
			if !early {
				w.add(newPod("q", "uid-2"))
				w.eventually("the pod is ready", func() bool { return isReady(w.pod("q")) })
				w.flood("x", "y", "z")
				w.eventually("the twin is given up", func() bool {
					w.r.mu.Lock()
					defer w.r.mu.Unlock()
					return w.r.link != nil && w.r.link.shut["shop"]
				})
			}
			w.add(newPod("p", "uid-1"))
			w.eventually("the pod says why it waits", func() bool {
				p := w.pod("p")
				return p != nil && p.Status.Reason == offloadingv1beta1.ReasonRemoteOverLimit && strings.Contains(p.Status.Message, "have those removed")
			})
			if w.shadow("p") != nil {
				t.Error("a ShadowPod was made without knowing what is there")
			}
			if !early && (!isReady(w.pod("q")) || w.shadow("q") == nil) {
				t.Error("what is not known of the running pod had consequences")
			}
			for _, name := range []string{"x", "y", "z"} {
				if err := w.kube.Tracker().Delete(podResource, twinNamespace, name); err != nil {
					t.Fatal(err)
				}
			}
			w.eventually("the twin is followed again", func() bool {
				clock.Step(reconcile.RefusedRetry)
				return isReady(w.pod("p"))
			})
		})
	}
}

// W9: large pods are bounded by what they take, too.
func TestW9LargeRemotePods(t *testing.T) {
	w := newWorld(t)
	w.change = func(o *Options) { o.Budget = replica.NewBudget(2 << 10) }
	w.provider()
	// A pod of this node accounts for some, but not for these.
	for i := range 2 * expected >> 10 {
		w.flood(fmt.Sprintf("x-%d", i))
	}
	w.start()
	w.offload()
	w.add(newPod("p", "uid-1"))
	w.eventually("the pod says why it waits", func() bool {
		p := w.pod("p")
		return p != nil && p.Status.Reason == offloadingv1beta1.ReasonRemoteOverLimit
	})
	w.eventually("the room is given back", func() bool { return w.r.budget.Held() == 0 })
}
