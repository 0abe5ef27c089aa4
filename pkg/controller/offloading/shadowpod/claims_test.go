package shadowpod

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

const sliceUser = "liqo.io:slice:rome-0123456789ab"

func quota(cpu string) *offloadingv1beta1.Quota {
	return &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "slice"},
		Spec: offloadingv1beta1.QuotaSpec{User: sliceUser, Resources: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
}

func asking(name, cpu string) *offloadingv1beta1.ShadowPod {
	shadow := job()
	shadow.Name, shadow.UID = name, types.UID("uid-"+name)
	shadow.Labels[offloadingv1beta1.CreatorUserLabel] = capacity.UserLabel(sliceUser)
	shadow.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	return shadow
}

// enforcing is a provider with a grant of cpu and ShadowPods that were admitted.
func enforcing(t *testing.T, cpu string, shadows ...*offloadingv1beta1.ShadowPod) *world {
	t.Helper()
	objects := []client.Object{quota(cpu)}
	for _, shadow := range shadows {
		objects = append(objects, shadow)
	}
	w := newWorld(t, objects...)
	w.reconciler.Enforce = true
	return w
}

// run lets the controller look at each ShadowPod, and says what became of it.
func (w *world) run(names ...string) map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, name := range names {
		k := types.NamespacedName{Namespace: key.Namespace, Name: name}
		if _, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: k}); err != nil {
			w.Fatal(err)
		}
		var shadow offloadingv1beta1.ShadowPod
		var pod corev1.Pod
		if err := w.Get(context.Background(), k, &shadow); client.IgnoreNotFound(err) != nil {
			w.Fatal(err)
		}
		switch err := w.Get(context.Background(), k, &pod); {
		case err == nil:
			out[name] = "runs"
		case client.IgnoreNotFound(err) != nil:
			w.Fatal(err)
		default:
			if ready := meta.FindStatusCondition(shadow.Status.Conditions, "Ready"); ready != nil {
				out[name] = ready.Reason
			}
		}
	}
	return out
}

func (w *world) removeShadow(name string) {
	w.Helper()
	for _, o := range []client.Object{&offloadingv1beta1.ShadowPod{}, &corev1.Pod{}} {
		o.SetNamespace(key.Namespace)
		o.SetName(name)
		if pod, ok := o.(*corev1.Pod); ok {
			if w.Get(context.Background(), client.ObjectKeyFromObject(o), o) != nil {
				continue
			}
			pod.Finalizers = nil
			if err := w.Client.Update(context.Background(), pod); err != nil {
				w.Fatal(err)
			}
		}
		if err := w.Client.Delete(context.Background(), o); err != nil {
			w.Fatal(err)
		}
	}
}

// V9: two replicas of the webhook, each with a ledger of its own, admit together more than was granted. What runs is what was
// granted all the same.
func TestReplicasTogetherDoNotExceedTheGrant(t *testing.T) {
	grant := &quota("3").Spec
	var admitted []*offloadingv1beta1.ShadowPod
	var names []string
	replicas := []*capacity.Ledger{capacity.NewLedger(time.Minute), capacity.NewLedger(time.Minute)}
	for i := range 10 {
		shadow := asking(fmt.Sprintf("web-%d", i), "1")
		user := shadow.Labels[offloadingv1beta1.CreatorUserLabel]
		if refusal := replicas[i%2].Admit(client.ObjectKeyFromObject(shadow), user, grant, &shadow.Spec.Pod, start, false); refusal == nil {
			admitted, names = append(admitted, shadow), append(names, shadow.Name)
		}
	}
	if len(admitted) != 6 {
		t.Fatalf("the replicas admitted %d ShadowPods, each should 3", len(admitted))
	}
	w := enforcing(t, "3", admitted...)
	want := map[string]string{"web-0": "runs", "web-1": "runs", "web-2": "runs", "web-3": "QuotaExceeded", "web-4": "QuotaExceeded", "web-5": "QuotaExceeded"}
	if diff := cmp.Diff(want, w.run(names...)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, w.run(names...)); diff != "" {
		t.Errorf("looking again changes it: %s", diff)
	}
	// A restarted controller, or another replica that leads now, takes nothing away and gives nothing more. It looks at the
	// newest first.
	newWorldFrom(w)
	slices.Reverse(names)
	if diff := cmp.Diff(want, w.run(names...)); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	// Room is used, even before the controller looked at the one that went.
	w.removeShadow("web-1")
	want["web-5"] = "runs"
	delete(want, "web-1")
	names = slices.DeleteFunc(names, func(name string) bool { return name == "web-1" })
	if diff := cmp.Diff(want, w.run(names...)); diff != "" {
		t.Errorf("after one has gone: %s", diff)
	}
}

// withdraw deletes the Quota, as happens when its ResourceSlice is deleted.
func withdraw(w *world) {
	w.Helper()
	if err := w.Client.Delete(context.Background(), quota("3")); err != nil {
		w.Fatal(err)
	}
}

// V9: a pod that runs when its Quota goes keeps what it has, may have less of it, and does not grow.
func TestNothingGrowsWithoutAQuota(t *testing.T) {
	w := enforcing(t, "3", asking("a", "2"))
	w.run("a")
	withdraw(w)
	for _, step := range [][2]string{{"3", "2"}, {"1", "1"}} {
		w.ask("a", step[0])
		w.run("a")
		if got := w.has("a"); got != step[1] {
			t.Errorf("asking for %s, the Pod has %s, want %s", step[0], got, step[1])
		}
	}
}

func TestClaims(t *testing.T) {
	finished := asking("done", "3")
	finished.Status.Phase = corev1.PodSucceeded
	lost := asking("lost", "3")
	lost.Status.Phase = corev1.PodRunning
	cordoned := quota("3")
	cordoned.Spec.Cordoned = ptr.To(true)
	for name, tc := range map[string]struct {
		cpu     string
		shadows []*offloadingv1beta1.ShadowPod
		change  func(*world)
		order   []string
		want    map[string]string
	}{
		"a finished one holds nothing": {"3", []*offloadingv1beta1.ShadowPod{finished, asking("a", "3")}, nil, []string{"a"}, map[string]string{"a": "runs"}},
		"one whose pod was lost keeps its place over a restart": {"3", []*offloadingv1beta1.ShadowPod{lost, asking("a", "1")}, nil,
			[]string{"a", "lost"}, map[string]string{"a": "QuotaExceeded", "lost": "runs"}},
		"one that is too large does not hold up the others": {"3", []*offloadingv1beta1.ShadowPod{asking("a", "4"), asking("b", "3")}, nil,
			[]string{"a", "b"}, map[string]string{"a": "QuotaExceeded", "b": "runs"}},
		"what was admitted before a cordon runs": {"3", []*offloadingv1beta1.ShadowPod{asking("a", "1")}, func(w *world) {
			live := quota("3")
			if err := w.Get(context.Background(), client.ObjectKeyFromObject(live), live); err != nil {
				w.Fatal(err)
			}
			live.Spec.Cordoned = cordoned.Spec.Cordoned
			if err := w.Client.Update(context.Background(), live); err != nil {
				w.Fatal(err)
			}
		}, []string{"a"}, map[string]string{"a": "runs"}},
		"V9: without a Quota nobody gets anything, and who has something keeps it": {"3", []*offloadingv1beta1.ShadowPod{lost, asking("a", "1")}, withdraw,
			[]string{"a", "lost"}, map[string]string{"a": "QuotaExceeded", "lost": "runs"}},
		"without a Quota and without enforcement": {"3", []*offloadingv1beta1.ShadowPod{asking("a", "4")}, func(w *world) { withdraw(w); w.reconciler.Enforce = false },
			[]string{"a"}, map[string]string{"a": "runs"}},
		"enforcement can be turned off": {"3", []*offloadingv1beta1.ShadowPod{asking("a", "4")}, func(w *world) { w.reconciler.Enforce = false },
			[]string{"a"}, map[string]string{"a": "runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := enforcing(t, tc.cpu, tc.shadows...)
			if tc.change != nil {
				tc.change(w)
			}
			if diff := cmp.Diff(tc.want, w.run(tc.order...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
