package nodefailure

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var now = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func nodeThatIs(status corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
}

// podOf is a pod of ours on node n whose grace period ended a minute ago.
func podOf(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "web", UID: "uid-1",
		Labels:     map[string]string{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod},
		Finalizers: []string{"test/kept"}, DeletionTimestamp: ptr.To(metav1.NewTime(now.Add(-time.Minute))), DeletionGracePeriodSeconds: ptr.To[int64](30),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: offloadingv1beta1.GroupVersion.String(), Kind: "ShadowPod", Name: "web", UID: "s", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: "n"}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func TestPodsOfFailedNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		cached, live corev1.ConditionStatus
		change       func(*corev1.Pod)
		removed      bool
		after        time.Duration
	}{
		"its node died":                             {corev1.ConditionUnknown, corev1.ConditionUnknown, func(*corev1.Pod) {}, true, 0},
		"its node says that it is not ready":        {corev1.ConditionFalse, corev1.ConditionFalse, func(*corev1.Pod) {}, true, 0},
		"its node is ready":                         {corev1.ConditionTrue, corev1.ConditionTrue, func(*corev1.Pod) {}, false, 0},
		"its node came back, which the cache lacks": {corev1.ConditionUnknown, corev1.ConditionTrue, func(*corev1.Pod) {}, false, 0},
		"its grace period is not over": {corev1.ConditionUnknown, corev1.ConditionUnknown, func(p *corev1.Pod) {
			p.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(20 * time.Second)))
		}, false, 20 * time.Second},
		"it is not being deleted": {corev1.ConditionUnknown, corev1.ConditionUnknown, func(p *corev1.Pod) { p.DeletionTimestamp = nil }, false, 0},
		"it is on another node":   {corev1.ConditionUnknown, corev1.ConditionUnknown, func(p *corev1.Pod) { p.Spec.NodeName = "m" }, false, 0},
		"it is the provider's":    {corev1.ConditionUnknown, corev1.ConditionUnknown, func(p *corev1.Pod) { p.OwnerReferences = nil }, false, 0},
		"it was removed already":  {corev1.ConditionUnknown, corev1.ConditionUnknown, func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = ptr.To[int64](0) }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			var removed []string
			cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(nodeThatIs(tc.cached), podOf(tc.change)).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					options := (&client.DeleteOptions{}).ApplyOptions(opts)
					if *options.GracePeriodSeconds == 0 && *options.Preconditions.UID == types.UID("uid-1") {
						removed = append(removed, o.GetName())
					}
					return nil
				},
			}).Build()
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(nodeThatIs(tc.live)).Build()
			r := &reconciler{Client: cached, Options: Options{Live: live, Clock: testclock.NewFakePassiveClock(now)}}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "n"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.removed, tc.after}, []any{len(removed) == 1, result.RequeueAfter}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
