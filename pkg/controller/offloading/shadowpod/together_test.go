package shadowpod

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// askTogether changes what a ShadowPod asks for as a whole.
func (w *world) askTogether(name, cpu string) {
	w.Helper()
	var live offloadingv1beta1.ShadowPod
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &live); err != nil {
		w.Fatal(err)
	}
	live.Spec.Pod.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
	live.Generation = 2
	if err := w.Update(context.Background(), &live); err != nil {
		w.Fatal(err)
	}
}

// hasTogether is what the Pod of a ShadowPod asks for as a whole.
func (w *world) hasTogether(name string) string {
	w.Helper()
	var pod corev1.Pod
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: key.Namespace, Name: name}, &pod); err != nil {
		w.Fatal(err)
	}
	if pod.Spec.Resources == nil {
		return ""
	}
	return pod.Spec.Resources.Requests.Cpu().String()
}

// What a pod has as a whole is resized as its containers are: within the grant, and the room is claimed.
func TestAPodIsResizedAsAWhole(t *testing.T) {
	w := enforcing(t, "4", asking("a", "1"), asking("b", "2"))
	w.run("a")
	for _, step := range []struct {
		cpu, want string
	}{{"3", "3"}, {"5", "3"}, {"3", "3"}} {
		w.askTogether("a", step.cpu)
		w.run("a", "a")
		if got := w.hasTogether("a"); got != step.want {
			t.Errorf("asking for %s, the Pod has %s, want %s", step.cpu, got, step.want)
		}
	}
	if diff := cmp.Diff(map[string]string{"b": "QuotaExceeded"}, w.run("b")); diff != "" {
		t.Error(diff)
	}
	before := w.Writes
	w.run("a")
	if w.Writes != before {
		t.Errorf("%d writes at rest", w.Writes-before)
	}
	w.askTogether("a", "2")
	if diff := cmp.Diff(map[string]string{"a": "runs", "b": "runs"}, w.run("a", "a", "b")); diff != "" || w.hasTogether("a") != "2" {
		t.Errorf("when it has shrunk to %s: %s", w.hasTogether("a"), diff)
	}
}

// A provider that does not resize pods as a whole refuses it, or drops it: that is told, and costs nothing of the grant.
func TestARefusedResizeAsAWholeIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		resize func(*corev1.Pod) error
		told   string
	}{
		"refused": {func(*corev1.Pod) error {
			return apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("resize of pods with pod-level resources is forbidden"))
		}, "resize of pods with pod-level resources is forbidden"},
		"dropped": {func(pod *corev1.Pod) error { pod.Spec.Resources = nil; return nil }, "cannot resize in place what a pod has as a whole (spec.resources)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, "4", asking("a", "1"), asking("b", "3"))
			told := events.NewFakeRecorder(10)
			w.reconciler.Events = told
			w.run("a")
			w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if pod, isPod := o.(*corev1.Pod); isPod && sub == "resize" {
						if err := tc.resize(pod); err != nil {
							return err
						}
					}
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				}})
			w.askTogether("a", "4")
			w.run("a")
			if len(told.Events) != 1 {
				t.Fatalf("there are %d Events", len(told.Events))
			}
			if event := <-told.Events; !strings.Contains(event, "FailedResize") || !strings.Contains(event, tc.told) {
				t.Errorf("the Event is %q", event)
			}
			if diff := cmp.Diff(map[string]string{"a": "runs", "b": "runs"}, w.run("a", "b")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
