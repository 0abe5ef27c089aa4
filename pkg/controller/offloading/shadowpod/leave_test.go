package shadowpod

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// leaveBehind deletes a ShadowPod whose Pod takes its time to go.
func (w *world) leaveBehind(name string) {
	w.Helper()
	shadow := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}}
	if err := w.Client.Delete(context.Background(), shadow); err != nil {
		w.Fatal(err)
	}
}

// change changes the Pod of a name; one that nothing keeps any more goes.
func (w *world) change(name string, how func(*corev1.Pod)) {
	w.Helper()
	var pod corev1.Pod
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &pod); err != nil {
		w.Fatal(err)
	}
	how(&pod)
	status := pod.Status
	if err := w.Client.Update(context.Background(), &pod); err != nil {
		w.Fatal(err)
	}
	pod.Status = status
	if err := w.Client.Status().Update(context.Background(), &pod); err != nil {
		w.Fatal(err)
	}
}

// V9: a Pod that does not go when its ShadowPod goes takes of the grant until it has gone.
func TestAPodThatDoesNotGoKeepsItsShare(t *testing.T) {
	for name, restart := range map[string]bool{"in one go": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, "3", asking("a", "3"), asking("b", "1"))
			w.run("a")
			w.change("a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
			w.leaveBehind("a")
			if restart {
				newWorldFrom(w)
			}
			want := map[string]string{"a": "runs", "b": "QuotaExceeded"}
			for _, order := range [][]string{{"b", "a"}, {"a", "b"}} {
				if diff := cmp.Diff(want, w.run(order...)); diff != "" {
					t.Errorf("looking at %v: %s", order, diff)
				}
			}
			w.change("a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
			if diff := cmp.Diff(map[string]string{"a": "runs", "b": "runs"}, w.run("a", "b")); diff != "" {
				t.Errorf("when it has finished: %s", diff)
			}
		})
	}
}

// V9: admission counts a ShadowPod no longer that is gone: the next one is admitted, and told what it waits for.
func TestWhoIsAdmittedTooEarlyIsToldWhatHoldsTheRoom(t *testing.T) {
	w := enforcing(t, "4", asking("a", "2"), asking("b", "1"), asking("c", "1"), asking("d", "1"))
	told := events.NewFakeRecorder(10)
	w.reconciler.Events = told
	w.run("a", "b", "c")
	w.leaveBehind("a")
	w.leaveBehind("b")
	w.run("a", "b", "d")
	var d offloadingv1beta1.ShadowPod
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "d"}, &d); err != nil {
		t.Fatal(err)
	}
	const want = "the provider's grant of cpu is used up: requested 1, used 4 of 4; delete pods, or ask for more in the ResourceSlice; " +
		"pods that were deleted and are still terminating hold cpu 3, pods 2"
	if ready := meta.FindStatusCondition(d.Status.Conditions, "Ready"); ready == nil || ready.Reason != offloadingv1beta1.ReasonQuotaExceeded || ready.Message != want {
		t.Errorf("it is told %v", ready)
	}
	for len(told.Events) > 0 {
		<-told.Events
	}
	w.ask("c", "2")
	w.run("c")
	select {
	case event := <-told.Events:
		if !strings.Contains(event, want) {
			t.Errorf("of another size it is told %q", event)
		}
	default:
		t.Error("nothing is told of another size")
	}
	w.change("b", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	if diff := cmp.Diff(map[string]string{"d": "runs"}, w.run("d")); diff != "" {
		t.Errorf("when one of them has finished: %s", diff)
	}
}

// V9: a Pod that lost its owner, and one that the cache does not show yet, are there all the same.
func TestWhatIsNotSeenIsThere(t *testing.T) {
	hide := func(w *world) {
		w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, isPod := o.(*corev1.Pod); isPod {
					return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, k.Name)
				}
				return c.Get(ctx, k, o, opts...)
			}})
	}
	for name, happen := range map[string]func(*world){
		"no owner":                 func(w *world) { w.change("a", func(pod *corev1.Pod) { pod.OwnerReferences = nil }) },
		"no owner, over a restart": func(w *world) { w.change("a", func(pod *corev1.Pod) { pod.OwnerReferences = nil }); newWorldFrom(w) },
		"not in the cache":         hide,
	} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, "3", asking("a", "3"), asking("b", "1"))
			w.run("a")
			w.leaveBehind("a")
			happen(w)
			w.run("a")
			if diff := cmp.Diff(map[string]string{"b": "QuotaExceeded"}, w.run("b")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// V9: a ShadowPod does not get rid of the share of an earlier one of its name by asking for less, while that one's Pod is there.
func TestASuccessorDoesNotFreeTheShare(t *testing.T) {
	w := enforcing(t, "3", asking("a", "3"), asking("b", "1"))
	w.run("a")
	w.leaveBehind("a")
	again := asking("a", "1")
	again.UID = "uid-again"
	if err := w.Client.Create(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	if err := w.reconciler.claim(context.Background(), again, nil); err == nil {
		t.Error("the successor got a share while the earlier pod is there")
	}
	if diff := cmp.Diff(map[string]string{"b": "QuotaExceeded"}, w.run("b")); diff != "" {
		t.Error(diff)
	}
	w.change("a", func(pod *corev1.Pod) { pod.Finalizers = nil })
	if diff := cmp.Diff(map[string]string{"a": "runs", "b": "runs"}, w.run("a", "a", "b")); diff != "" {
		t.Error(diff)
	}
}

// woken are the ShadowPods that are told to try again.
func (w *world) woken() []string {
	var names []string
	for len(w.reconciler.claims.woken) > 0 {
		names = append(names, (<-w.reconciler.claims.woken).Object.GetName())
	}
	return names
}

// Whoever waits for room is told when there is some, one after the other, and not when there is none.
func TestWhoWaitsForRoomIsWoken(t *testing.T) {
	w := enforcing(t, "3", asking("a", "3"), asking("b", "1"), asking("c", "1"), asking("d", "3"))
	w.run("a", "b", "c", "d")
	if diff := cmp.Diff(map[string]string{"d": "QuotaExceeded"}, w.run("d")); diff != "" {
		t.Error(diff)
	}
	w.leaveBehind("d")
	w.run("d")
	w.leaveBehind("a")
	w.run("a")
	if got := w.woken(); got != nil {
		t.Errorf("%v are woken while the pod is there", got)
	}
	w.change("a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	w.run("a")
	for range 2 {
		got := w.woken()
		if len(got) != 1 || got[0] != "b" && got[0] != "c" {
			t.Fatalf("%v are woken, want one of b and c", got)
		}
		if diff := cmp.Diff(map[string]string{got[0]: "runs"}, w.run(got[0])); diff != "" {
			t.Error(diff)
		}
	}
	if w.run("b", "c"); w.woken() != nil || len(w.reconciler.claims.waiting) != 0 {
		t.Errorf("%v wait still", w.reconciler.claims.waiting)
	}
}
