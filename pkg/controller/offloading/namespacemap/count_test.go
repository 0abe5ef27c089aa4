package namespacemap

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A quota that Kubernetes does not count refuses everything: it is changed and restored until it is counted, and not for ever.
func TestQuotaThatIsNotCounted(t *testing.T) {
	ctx := context.Background()
	type seen struct {
		Limit string
		After time.Duration
	}
	for name, tc := range map[string]struct {
		age     time.Duration
		counted bool
		want    []seen
	}{
		"young":           {2 * time.Second, false, []seen{{"10", 3 * time.Second}}},
		"not counted":     {11 * time.Second, false, []seen{{"11", time.Second}, {"10", patience}, {"11", time.Second}}},
		"counted":         {11 * time.Second, true, []seen{{"10", 0}, {"10", 0}}},
		"never countable": {uncounted + time.Second, false, []seen{{"10", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
			w.pass()
			at := client.ObjectKey{Namespace: "shop-rome", Name: quotaName}
			quota := &corev1.ResourceQuota{}
			if err := w.Get(ctx, at, quota); err != nil {
				t.Fatal(err)
			}
			quota.CreationTimestamp = metav1.NewTime(w.r.Clock.Now().Add(-tc.age))
			if tc.counted {
				quota.Status.Used = corev1.ResourceList{"pods": resource.MustParse("0")}
			} else {
				// That is how the quota controller leaves what it does not know.
				quota.Status.Hard = quota.Spec.Hard.DeepCopy()
			}
			if err := w.Client.Delete(ctx, quota.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			quota.ResourceVersion = ""
			if err := w.Client.Create(ctx, quota); err != nil {
				t.Fatal(err)
			}
			var got []seen
			for range tc.want {
				result, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Get(ctx, at, quota); err != nil {
					t.Fatal(err)
				}
				got = append(got, seen{quota.Spec.Hard.Pods().String(), result.RequeueAfter})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
