package shadowpod

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestWhichEventsOfPodsAreLookedAt(t *testing.T) {
	amount := corev1.ResourceList{"cpu": resource.MustParse("1")}
	status := func(pod *corev1.Pod) *corev1.ContainerStatus {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
		return &pod.Status.ContainerStatuses[0]
	}
	for name, tc := range map[string]struct {
		happen func(*corev1.Pod)
		want   bool
	}{
		"it was bound": {func(pod *corev1.Pod) {
			pod.Spec.NodeName = "n"
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
		}, false},
		"it is ready":                         {func(pod *corev1.Pod) { status(pod).Ready = true }, false},
		"managed fields":                      {func(pod *corev1.Pod) { pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} }, false},
		"it runs":                             {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }, true},
		"it failed":                           {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, true},
		"it is being deleted":                 {func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"it is another one":                   {func(pod *corev1.Pod) { pod.UID = "other" }, true},
		"a label":                             {func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "2"} }, true},
		"an annotation":                       {func(pod *corev1.Pod) { pod.Annotations = nil }, true},
		"an owner":                            {func(pod *corev1.Pod) { pod.OwnerReferences = nil }, true},
		"a finalizer":                         {func(pod *corev1.Pod) { pod.Finalizers = []string{"f"} }, true},
		"an image":                            {func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "j" }, true},
		"a toleration":                        {func(pod *corev1.Pod) { pod.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} }, true},
		"a container was resized":             {func(pod *corev1.Pod) { status(pod).Resources = &corev1.ResourceRequirements{Requests: amount} }, true},
		"a container was allocated something": {func(pod *corev1.Pod) { status(pod).AllocatedResources = amount }, true},
		"it was allocated something":          {func(pod *corev1.Pod) { pod.Status.AllocatedResources = amount }, true},
		"it is being resized": {func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
		}, true},
		"nothing, the cache says it again": {func(pod *corev1.Pod) { pod.ResourceVersion = "1" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			old := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "1", Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "1"},
					OwnerReferences: []metav1.OwnerReference{{Name: "a"}}},
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}},
			}
			now := old.DeepCopy()
			now.ResourceVersion = "2"
			tc.happen(now)
			if got := telling().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now}); got != tc.want {
				t.Errorf("it is looked at: %v, want %v", got, tc.want)
			}
		})
	}
}

// A11, V9: that the Pod of a claim is gone is believed without asking only if it is the one that was made, and if its node let it go.
func TestWhoseEndIsSeenIsNotAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		last  func(*corev1.Pod)
		asked int
	}{
		"its node let it go":       {func(*corev1.Pod) {}, 0},
		"another one":              {func(pod *corev1.Pod) { pod.UID = "other" }, 1},
		"only its label is gone":   {func(pod *corev1.Pod) { pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil }, 1},
		"its grace period lasts":   {func(pod *corev1.Pod) { pod.DeletionGracePeriodSeconds = ptr.To[int64](30) }, 1},
		"something still keeps it": {func(pod *corev1.Pod) { pod.Finalizers = []string{"f"} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, "3", asking("a", "3"), asking("b", "1"))
			w.run("a")
			var pod corev1.Pod
			if err := w.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "a"}, &pod); err != nil {
				t.Fatal(err)
			}
			w.removeShadow("a")
			asked := 0
			w.reconciler.Live = counted{w.Client, &asked}
			pod.Finalizers, pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, ptr.To(metav1.Now()), ptr.To[int64](0)
			tc.last(&pod)
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer queue.ShutDown()
			w.reconciler.podEvents().Delete(t.Context(), event.DeleteEvent{Object: &pod}, queue)
			if queue.Len() != 1 {
				t.Errorf("%d ShadowPods are woken", queue.Len())
			}
			w.run("a")
			if asked != tc.asked {
				t.Errorf("the API server is asked %d times, want %d", asked, tc.asked)
			}
			if got := w.run("b")["b"]; got != "runs" {
				t.Errorf("the next one: %s", got)
			}
		})
	}
}

// counted counts what is read of the API server.
type counted struct {
	client.Client
	asked *int
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	*c.asked++
	return c.Client.Get(ctx, key, o, opts...)
}

// What is compared cheaply is what would be written: nothing is called in step that altered would change.
func TestInStepIsWhatNothingAlters(t *testing.T) {
	shadow := job()
	made := build(shadow)
	if !inStep(made, shadow) {
		t.Error("a new Pod is not in step")
	}
	silent := made.DeepCopy()
	delete(silent.Annotations, offloadingv1beta1.AskedAnnotation)
	if inStep(silent, shadow) {
		t.Error("a Pod that does not say what it was asked for is not looked at")
	}
	for name, happen := range map[string]func(*corev1.Pod, *offloadingv1beta1.ShadowPod){
		"nothing":                  func(*corev1.Pod, *offloadingv1beta1.ShadowPod) {},
		"somebody's label":         func(pod *corev1.Pod, _ *offloadingv1beta1.ShadowPod) { pod.Labels["x"] = "1" },
		"somebody's image":         func(pod *corev1.Pod, _ *offloadingv1beta1.ShadowPod) { pod.Spec.Containers[0].Image = "mirror" },
		"our label changed":        func(pod *corev1.Pod, _ *offloadingv1beta1.ShadowPod) { pod.Labels["app"] = "1" },
		"our label taken":          func(pod *corev1.Pod, _ *offloadingv1beta1.ShadowPod) { delete(pod.Labels, "app") },
		"our annotation changed":   func(pod *corev1.Pod, _ *offloadingv1beta1.ShadowPod) { pod.Annotations["liqo.io/origin-uid"] = "1" },
		"another label is asked":   func(_ *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) { shadow.Labels["y"] = "1" },
		"a label is asked no more": func(_ *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) { delete(shadow.Labels, "app") },
		"another image is asked":   func(_ *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) { shadow.Spec.Pod.Containers[0].Image = "new" },
		"a toleration is asked": func(_ *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) {
			shadow.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "k"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, shadow := made.DeepCopy(), shadow.DeepCopy()
			shadow.Generation = 2
			happen(pod, shadow)
			same := equality.Semantic.DeepEqual(pod, altered(pod, shadow, allParts, nil))
			if got := inStep(pod, shadow); got != same {
				t.Errorf("it is in step: %v; nothing would be altered: %v", got, same)
			}
		})
	}
}

// BenchmarkInStep is most of what a pass over a Pod costs that needs nothing.
func BenchmarkInStep(b *testing.B) {
	shadow := job()
	pod := build(shadow)
	for name, compare := range map[string]func() bool{
		"cheaply": func() bool { return inStep(pod, shadow) },
		"wholly":  func() bool { return equality.Semantic.DeepEqual(pod, altered(pod, shadow, allParts, nil)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if !compare() {
					b.Fatal("it is not in step")
				}
			}
		})
	}
}
