package shadowpod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestEphemeralContainersAreAdded(t *testing.T) {
	shadow := job()
	shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
	shadow.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "first", Image: "busybox"}}}
	if pod := build(shadow); len(pod.Spec.EphemeralContainers) != 0 {
		t.Error("a new pod has ephemeral containers, which Kubernetes refuses")
	}
	w := newWorld(t, shadow)
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	live := w.shadow()
	live.Spec.Pod.EphemeralContainers = append(live.Spec.Pod.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "second", Image: "busybox"}, TargetContainerName: "c"})
	if err := w.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	got := w.pod().Spec.EphemeralContainers
	if len(got) != 2 || got[0].Name != "first" || got[1].Name != "second" || got[1].TargetContainerName != "c" {
		t.Errorf("ephemeral containers are %v", got)
	}
	if names := w.pod().Annotations[offloadingv1beta1.ContainersAnnotation]; names != "c,first,second" {
		t.Errorf("the consumer may enter %s", names)
	}
	before := w.Writes
	if _, err := w.pass(); err != nil || w.Writes != before {
		t.Errorf("%d more writes, error %v", w.Writes-before, err)
	}
}

// T25: what an administrator of the provider debugs a consumer's pod with, who may be allowed more than the pod, is not the consumer's to enter, not
// even by asking for a container of the same name.
func TestContainersThatTheProviderDebugsWithAreNotTheConsumers(t *testing.T) {
	shadow := job()
	shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
	w := newWorld(t, shadow)
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	debugger := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox"}}
	pod := w.pod()
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger}
	live := w.shadow()
	live.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{debugger}
	if err := errors.Join(w.Update(t.Context(), pod), w.Update(t.Context(), live)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if names := w.pod().Annotations[offloadingv1beta1.ContainersAnnotation]; names != "c" {
		t.Errorf("the consumer may enter %s", names)
	}
}

// V9: what the provider's rules refuse costs three requests at a time, however much of it there is, and keeps no newer one away.
func TestRefusedEphemeralContainersAreFewRequests(t *testing.T) {
	shadow := job()
	shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
	for i := range 20 {
		shadow.Spec.Pod.EphemeralContainers = append(shadow.Spec.Pod.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: fmt.Sprintf("bad-%d", i), Image: "bad"}})
	}
	w := newWorld(t, shadow)
	var tried []string
	checks := 0
	check := w.reconciler.Check
	w.reconciler.Check = func(spec *corev1.PodSpec) field.ErrorList {
		checks++
		return check(spec)
	}
	w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if sub != "ephemeralcontainers" {
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			}
			list := o.(*corev1.Pod).Spec.EphemeralContainers
			last := list[len(list)-1]
			tried = append(tried, last.Name)
			if last.Image == "bad" {
				return apierrors.NewForbidden(corev1.Resource("pods"), o.GetName(), errors.New("this image is not allowed"))
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}})
	for range 2 {
		if _, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"bad-19", "bad-18", "bad-17"}, tried); diff != "" || checks != 2 {
		t.Errorf("%d checks, want one before the pod is made and one after; tried: %s", checks, diff)
	}
	live := w.shadow()
	live.Spec.Pod.EphemeralContainers = append(live.Spec.Pod.EphemeralContainers,
		corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "good", Image: "busybox"}})
	if err := w.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(w.pod().Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == "good" }) {
		t.Errorf("the newest one was not added; tried %v", tried)
	}
}

// A refused ephemeral container is told once: over a restart the ShadowPod's condition remembers it. It goes when the Pod has it.
func TestARefusedEphemeralContainerIsToldOnce(t *testing.T) {
	shadow := job()
	shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
	w := newWorld(t, shadow)
	told := events.NewFakeRecorder(10)
	w.reconciler.Events = told
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	refuse := true
	w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if sub == "ephemeralcontainers" && refuse {
				return apierrors.NewForbidden(corev1.Resource("pods"), o.GetName(), errors.New("this image is not allowed"))
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}})
	add := func(name string) {
		t.Helper()
		live := w.shadow()
		live.Generation++
		live.Spec.Pod.EphemeralContainers = append(live.Spec.Pod.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "bad"}})
		if err := w.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	// passes is what the next passes tell, write, and leave to be read.
	passes := func() (tells []string, writes int, shown string) {
		t.Helper()
		before := w.Writes
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(w.shadow().Status.Conditions, offloadingv1beta1.ChangeRefusedCondition); c != nil {
			shown = c.Reason + ": " + c.Message
		}
		for len(told.Events) > 0 {
			tells = append(tells, <-told.Events)
		}
		return tells, w.Writes - before, shown
	}
	const words = `: pods "web" is forbidden: this image is not allowed`
	for i, name := range []string{"one", "two"} {
		add(name)
		tells, writes, shown := passes()
		if len(tells) != 1 || !strings.Contains(tells[0], "FailedDebug") || !strings.Contains(tells[0], name+words) || writes != 1 {
			t.Errorf("%d: told %q in %d writes", i, tells, writes)
		}
		if !strings.HasPrefix(shown, "FailedDebug: ") || !strings.Contains(shown, name+words) {
			t.Errorf("%d: the condition says %q", i, shown)
		}
		client := w.reconciler.Client
		newWorldFrom(w).reconciler.Client = client
		if tells, writes, again := passes(); len(tells) > 0 || writes > 0 || again != shown {
			t.Errorf("%d: a restart tells %q in %d writes and shows %q", i, tells, writes, again)
		}
	}
	refuse = false
	if tells, _, shown := passes(); len(tells) > 0 || shown != "" || len(w.pod().Spec.EphemeralContainers) != 2 {
		t.Errorf("when it is allowed %q is told, the condition says %q and the Pod has %v", tells, shown, w.pod().Spec.EphemeralContainers)
	}
}
