package namespacemap

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/reconcile"
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
		"not counted":     {11 * time.Second, false, []seen{{"11", time.Second}, {"10", 5 * time.Second}, {"11", time.Second}}},
		"counted":         {11 * time.Second, true, []seen{{"10", 0}, {"10", 0}}},
		"never countable": {10*time.Minute + time.Second, false, []seen{{"10", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
			w.pass()
			w.age(tc.age, tc.counted)
			var got []seen
			for range tc.want {
				result, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, seen{w.limit(), result.RequeueAfter})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// limit is how many pods the quota of twin shop-rome allows.
func (w *world) limit() string {
	w.Helper()
	quota := &corev1.ResourceQuota{}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "shop-rome", Name: counting.QuotaName}, quota); err != nil {
		w.Fatal(err)
	}
	return quota.Spec.Hard.Pods().String()
}

// age makes the quota of twin shop-rome one that is there for so long, and was counted or not.
func (w *world) age(age time.Duration, counted bool) {
	w.Helper()
	quota := &corev1.ResourceQuota{}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "shop-rome", Name: counting.QuotaName}, quota); err != nil {
		w.Fatal(err)
	}
	quota.CreationTimestamp = metav1.NewTime(w.r.Clock.Now().Add(-age))
	if counted {
		quota.Status.Used = corev1.ResourceList{"pods": resource.MustParse("0")}
	} else {
		// That is how the quota controller leaves what it does not know.
		quota.Status.Hard = quota.Spec.Hard.DeepCopy()
	}
	if err := w.Client.Delete(context.Background(), quota.DeepCopy()); err != nil {
		w.Fatal(err)
	}
	quota.ResourceVersion = ""
	if err := w.Client.Create(context.Background(), quota); err != nil {
		w.Fatal(err)
	}
}

// The problem of another twin does not keep a limit raised.
func TestALimitIsRestoredBesideAnotherTwinsProblem(t *testing.T) {
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome", "stall": "taken"}), tenantNamespace(), tenant("Active"), foreign)
	w.pass()
	w.age(11*time.Second, false)
	for _, want := range []struct {
		limit string
		after time.Duration
	}{{"11", time.Second}, {"10", 5 * time.Second}} {
		result, err := w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.limit(); got != want.limit || result.RequeueAfter != want.after {
			t.Errorf("the limit is %s and looked at again in %s, want %s in %s", got, result.RequeueAfter, want.limit, want.after)
		}
	}
}

// A quota of somebody else bounds nothing for us: the consumer is told, and has no rights in a new twin.
func TestTheQuotaOfSomebodyElseInATwin(t *testing.T) {
	theirs := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: counting.QuotaName},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("99")}}}
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"), theirs)
	w.pass()
	if got := w.answers()["shop"]; got != "shop-rome CreationLoopBackOff ObjectNotOurs" {
		t.Errorf("the answer is %q", got)
	}
	if got := w.limit(); got != "99" {
		t.Errorf("its limit became %s", got)
	}
	rights := client.ObjectKey{Namespace: "shop-rome", Name: offloadingv1beta1.RemoteClusterRole}
	if err := w.Get(t.Context(), rights, &rbacv1.RoleBinding{}); err == nil {
		t.Error("the consumer has rights where nothing of ours counts what it makes")
	}
}

func TestTheNextPass(t *testing.T) {
	passing, wrong := errors.New("connection refused"), reconcile.Terminate("NamespaceNotAllowed", errors.New("no"))
	for name, tc := range map[string]struct {
		again  time.Duration
		err    error
		after  time.Duration
		failed bool
	}{
		"nothing to do":   {0, nil, 0, false},
		"something later": {time.Second, nil, time.Second, false},
		"a refusal":       {0, reconcile.Refuse("NamespaceConflict", errors.New("no")), reconcile.RefusedRetry, false},
		"something before a refusal is tried again": {time.Second, reconcile.Refuse("NamespaceConflict", errors.New("no")), time.Second, false},
		"something before what is waited for":       {time.Second, reconcile.Wait("TwinTerminating", "wait", poll), time.Second, false},
		"something after what is waited for":        {5 * time.Second, reconcile.Wait("TwinTerminating", "wait", time.Second), time.Second, false},
		"what cannot work":                          {0, wrong, 0, true},
		"something beside what cannot work":         {time.Second, wrong, time.Second, false},
		"a failure that passes":                     {0, passing, 0, true},
		"something beside a failure that passes":    {time.Second, passing, 0, true},
		"something before an overloaded API server": {time.Second, apierrors.NewTooManyRequests("busy", 9), time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := (&scope{again: tc.again}).next(tc.err)
			if result.RequeueAfter != tc.after || (err != nil) != tc.failed {
				t.Errorf("again in %s, error %v, want %s, %t", result.RequeueAfter, err, tc.after, tc.failed)
			}
		})
	}
}
