package shadowpod

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// ask changes what a ShadowPod asks for, as its virtual kubelet does.
func (w *world) ask(name, cpu string) {
	w.Helper()
	var live offloadingv1beta1.ShadowPod
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &live); err != nil {
		w.Fatal(err)
	}
	live.Spec.Pod.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	live.Generation = 2
	if err := w.Update(context.Background(), &live); err != nil {
		w.Fatal(err)
	}
}

// has is what the Pod of a ShadowPod asks for.
func (w *world) has(name string) string {
	w.Helper()
	var pod corev1.Pod
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &pod); err != nil {
		w.Fatal(err)
	}
	return pod.Spec.Containers[0].Resources.Requests.Cpu().String()
}

func TestAPodIsResizedWithinTheGrant(t *testing.T) {
	w := enforcing(t, "3", asking("a", "1"), asking("b", "1"), asking("c", "1"))
	w.run("a", "b")
	for _, step := range []struct {
		cpu, want string
	}{{"2", "2"}, {"3", "2"}} {
		w.ask("a", step.cpu)
		w.run("a")
		if got := w.has("a"); got != step.want {
			t.Errorf("asking for %s, the Pod has %s, want %s", step.cpu, got, step.want)
		}
	}
	before := w.Writes
	w.run("a", "b")
	if w.Writes != before {
		t.Errorf("%d writes at rest", w.Writes-before)
	}
}

// What the provider's own rules refuse, or what it is too old for, is told, costs nothing of the grant, and is tried again.
func TestARefusedResizeIsToldAndTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse error
		told   string
	}{
		"by a rule": {apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("maximum cpu usage per Pod is 2")), "maximum cpu usage per Pod is 2"},
		"by an API server that has no resize": {apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", corev1.Resource("pods"), "a", "404 page not found", 0, true),
			"the provider's Kubernetes cannot resize pods in place"},
	} {
		t.Run(name, func(t *testing.T) { refusedResize(t, tc.refuse, tc.told) })
	}
}

func refusedResize(t *testing.T, refuse error, words string) {
	t.Helper()
	w := enforcing(t, "3", asking("a", "1"), asking("b", "2"))
	told := events.NewFakeRecorder(10)
	w.reconciler.Events = told
	w.run("a")
	w.ask("a", "3")
	w.refuse = refuse
	again := func() time.Duration {
		result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	if after := again(); after != reconcile.RefusedRetry {
		t.Errorf("it is tried again in %s", after)
	}
	select {
	case event := <-told.Events:
		if !strings.Contains(event, "FailedResize") || !strings.Contains(event, words) {
			t.Errorf("the Event is %q", event)
		}
	default:
		t.Error("there is no Event")
	}
	w.refuse = nil
	if diff := cmp.Diff(map[string]string{"b": "runs"}, w.run("b")); diff != "" {
		t.Error(diff)
	}
	w.removeShadow("b")
	w.run("b")
	if after := again(); after != 0 || w.has("a") != "3" {
		t.Errorf("when it may, the Pod has %s, and it is tried again in %s", w.has("a"), after)
	}
}

// V9: a smaller size frees what it frees when the Pod has it, not when it is asked for.
func TestASmallerSizeFreesNothingBeforeItIsThere(t *testing.T) {
	for name, restart := range map[string]bool{"in one go": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, "3", asking("a", "3"), asking("b", "2"))
			w.run("a")
			status := func(cpu string) {
				var pod corev1.Pod
				if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: "a"}, &pod); err != nil {
					t.Fatal(err)
				}
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
				if err := w.Client.Status().Update(context.Background(), &pod); err != nil {
					t.Fatal(err)
				}
			}
			status("3")
			w.ask("a", "1")
			w.run("a")
			if got := w.has("a"); got != "1" {
				t.Fatalf("the Pod has %s", got)
			}
			if restart {
				newWorldFrom(w)
			}
			if diff := cmp.Diff(map[string]string{"a": "runs", "b": "QuotaExceeded"}, w.run("a", "b")); diff != "" {
				t.Error(diff)
			}
			status("1")
			if diff := cmp.Diff(map[string]string{"a": "runs", "b": "runs"}, w.run("a", "b")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// V9: the cache shows the Pod of before it grew when its ShadowPod wants the old size again.
func TestACacheThatLagsFreesNothing(t *testing.T) {
	w := enforcing(t, "4", asking("a", "1"), asking("b", "3"))
	w.run("a")
	before := &corev1.Pod{}
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: "a"}, before); err != nil {
		t.Fatal(err)
	}
	w.ask("a", "4")
	w.run("a")
	w.ask("a", "1")
	w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if pod, isPod := o.(*corev1.Pod); isPod {
				before.DeepCopyInto(pod)
				return nil
			}
			return c.Get(ctx, k, o, opts...)
		}})
	w.run("a")
	w.reconciler.Client = w.Client
	if got := w.has("a"); got != "4" {
		t.Fatalf("the Pod has %s", got)
	}
	if diff := cmp.Diff(map[string]string{"b": "QuotaExceeded"}, w.run("b")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "runs", "b": "runs"}, w.run("a", "a", "b")); diff != "" || w.has("a") != "1" {
		t.Errorf("when it has shrunk to %s: %s", w.has("a"), diff)
	}
}

// V9: what a provider's admission or autoscaler takes from a resized Pod, it may give back: it is not granted a second time, until
// the ShadowPod asks for less.
func TestWhatTheProviderLoweredStaysClaimed(t *testing.T) {
	for name, happen := range map[string]func(*world){
		"in one go":      func(*world) {},
		"over a restart": func(w *world) { newWorldFrom(w) },
		"a larger size is refused after it": func(w *world) {
			w.refuse = apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("maximum cpu usage per Pod is 3"))
			w.ask("a", "3500m")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, "4", asking("a", "1"), asking("b", "2"))
			w.run("a")
			w.ask("a", "3")
			w.run("a", "a")
			w.bear("a", "1", nil)
			w.run("a")
			happen(w)
			if diff := cmp.Diff(map[string]string{"a": "runs", "b": "QuotaExceeded"}, w.run("a", "b")); diff != "" {
				t.Error(diff)
			}
			w.refuse = nil
			w.ask("a", "2")
			if diff := cmp.Diff(map[string]string{"a": "runs", "b": "runs"}, w.run("a", "a", "b")); diff != "" || w.has("a") != "2" {
				t.Errorf("when less is asked for, and the Pod has %s: %s", w.has("a"), diff)
			}
		})
	}
}

// What only the Pod has belongs to the provider, and a ShadowPod that never changed changes nothing.
func TestWhatTheProviderGaveStays(t *testing.T) {
	w := newWorld(t, asking("a", "1"))
	w.run("a")
	k := types.NamespacedName{Namespace: key.Namespace, Name: "a"}
	var pod corev1.Pod
	if err := w.Get(context.Background(), k, &pod); err != nil {
		t.Fatal(err)
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}
	if err := w.Client.Update(context.Background(), &pod); err != nil {
		t.Fatal(err)
	}
	w.run("a")
	if got := w.has("a"); got != "100m" {
		t.Errorf("an unchanged ShadowPod made the Pod's request %s", got)
	}
	w.ask("a", "2")
	w.run("a")
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(&pod), &pod); err != nil {
		t.Fatal(err)
	}
	if requests := pod.Spec.Containers[0].Resources.Requests; requests.Cpu().String() != "2" || requests.Memory().String() != "1Gi" {
		t.Errorf("requests are %v", requests)
	}
}

// Another claim was faster than a size that the webhook admitted: the ShadowPod says that it is pending until there is room, or until
// it is withdrawn. That is told once, over a restart as well, and ShadowPods that nothing is refused of are not written.
func TestARefusedSizeIsPending(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse error
		reason string
		end    func(*world)
		has    string
	}{
		"until there is room": {nil, corev1.PodReasonDeferred, func(w *world) {
			w.removeShadow("b")
			w.run("b")
		}, "3"},
		"until it is withdrawn": {nil, corev1.PodReasonDeferred, func(w *world) { w.ask("a", "1") }, "1"},
		"a quota of the provider's": {apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("exceeded quota: team")),
			corev1.PodReasonDeferred, func(w *world) { w.refuse = nil }, "3"},
		"a rule of the provider's": {apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("maximum cpu usage per Pod is 2")),
			corev1.PodReasonInfeasible, func(w *world) { w.refuse = nil }, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, "3", asking("a", "1"), asking("b", "2"))
			told := events.NewFakeRecorder(10)
			w.reconciler.Events = told
			w.run("a")
			if w.refuse = tc.refuse; w.refuse == nil {
				w.run("b")
			}
			pending := func() *metav1.Condition {
				t.Helper()
				var shadow offloadingv1beta1.ShadowPod
				if err := w.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "a"}, &shadow); err != nil {
					t.Fatal(err)
				}
				return meta.FindStatusCondition(shadow.Status.Conditions, string(corev1.PodResizePending))
			}
			w.ask("a", "3")
			w.run("a")
			if c := pending(); c == nil || c.Status != metav1.ConditionTrue || c.Reason != tc.reason || c.Message == "" {
				t.Errorf("the condition is %v", c)
			}
			before := w.Writes
			w.run("a")
			newWorldFrom(w)
			w.run("a", "a")
			if w.Writes != before || len(told.Events) != 1 {
				t.Errorf("%d writes at rest and after a restart, told %d times", w.Writes-before, len(told.Events))
			}
			tc.end(w)
			w.run("a", "a")
			if c := pending(); c != nil || w.has("a") != tc.has {
				t.Errorf("in the end the condition is %v, and the Pod has %s", c, w.has("a"))
			}
			if len(told.Events) != 1 {
				t.Errorf("in the end it was told %d times", len(told.Events))
			}
		})
	}
}
