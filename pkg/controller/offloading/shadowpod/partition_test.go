package shadowpod

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/controller/offloading/signoflife"
)

func TestSilent(t *testing.T) {
	const after = time.Minute
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	made := func(seconds int) func(*offloadingv1beta1.ShadowPod) {
		return func(s *offloadingv1beta1.ShadowPod) { s.CreationTimestamp = metav1.NewTime(at(seconds)) }
	}
	for name, test := range map[string]struct {
		shadow *offloadingv1beta1.ShadowPod
		change func(*offloadingv1beta1.ShadowPod)
		pod    *corev1.Pod
		last   time.Time
		want   Action
		after  time.Duration
	}{
		"heard just now":                       {shadow: shadowOf("", ""), pod: podOf(), last: at(0), want: Nothing, after: time.Minute},
		"heard a while ago":                    {shadow: shadowOf("", ""), pod: podOf(), last: at(-50), want: Nothing, after: 10 * time.Second},
		"heard too long ago":                   {shadow: shadowOf("", ""), pod: podOf(), last: at(-60), want: Stop},
		"never heard":                          {shadow: shadowOf("", ""), pod: podOf(), want: Nothing, after: recheck},
		"made after that":                      {shadow: shadowOf("", ""), change: made(-10), pod: podOf(), last: at(-3600), want: Nothing, after: 50 * time.Second},
		"made after that, long ago":            {shadow: shadowOf("", ""), change: made(-61), pod: podOf(), last: at(-3600), want: Stop},
		"its clock is ahead":                   {shadow: shadowOf("", ""), pod: podOf(), last: at(5), want: Nothing, after: 65 * time.Second},
		"the pod was lost meanwhile":           {shadow: shadowOf("", corev1.PodRunning), last: at(-60), want: Stop},
		"the pod is evicted meanwhile":         {shadow: shadowOf("", corev1.PodRunning), pod: podOf(deleted(-5, 30)), last: at(-60), want: Stop},
		"the pod is evicted":                   {shadow: shadowOf("", corev1.PodRunning), pod: podOf(deleted(-5, 30)), last: at(-30), want: Await},
		"the pod finished":                     {shadow: shadowOf("", corev1.PodRunning), pod: podOf(ended(corev1.PodSucceeded, -5)), last: at(-60), want: Record},
		"its end is recorded":                  {shadow: shadowOf("", corev1.PodSucceeded), pod: podOf(released), last: at(-60), want: Nothing},
		"it has ended and is gone":             {shadow: shadowOf("", corev1.PodSucceeded), last: at(-60), want: Nothing},
		"an earlier pod has the name":          {shadow: shadowOf("new", ""), pod: podOf(released), last: at(-60), want: Evict},
		"somebody else's pod has the name":     {shadow: shadowOf("", ""), pod: podOf(func(p *corev1.Pod) { p.OwnerReferences = nil }), last: at(-60), want: Conflict},
		"a server that fails is to be stopped": {shadow: shadowOf("", corev1.PodRunning), pod: podOf(always, ended(corev1.PodFailed, -5)), last: at(-60), want: Stop},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.shadow)
			}
			got := Decide(test.shadow, test.pod, start).Silent(test.shadow, test.pod, test.last, after, start)
			if got.Action != test.want || got.After != test.after {
				t.Errorf("got action %d after %s, want %d after %s", got.Action, got.After, test.want, test.after)
			}
		})
	}
}

// signs shows a Lease's managed fields, which a client in memory does not keep.
type signs struct {
	client.Reader
	written *time.Time
}

func (s signs) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := s.Reader.Get(ctx, key, object, options...)
	if lease, ok := object.(*coordinationv1.Lease); ok && err == nil && s.written != nil {
		ago := metav1.NewTime(start.Add(-time.Hour))
		written := metav1.NewTime(*s.written)
		lease.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "liqo-virtual-kubelet", Time: &written}, {Manager: "liqo-controller-manager", Time: &ago}, {Manager: "x"}}
	}
	return err
}

var leaseKey = client.ObjectKey{Namespace: "liqo-tenant-rome", Name: "liqo-sign-of-life-user-1"}

// partitioned is a provider with a pod that says what to do without signs of its consumer.
func partitioned(t *testing.T, value string) (w *world, sign func(seconds int)) {
	t.Helper()
	shadow := job()
	shadow.CreationTimestamp = metav1.NewTime(start)
	shadow.Annotations[offloadingv1beta1.OnPartitionAnnotation] = value
	admitted := binding.New(key.Namespace, offloadingv1beta1.RemoteClusterRole, offloadingv1beta1.RemoteClusterRole, binding.Group("liqo.io:consumer:rome"))
	w = newWorld(t, shadow, admitted)
	var written time.Time
	w.reconciler.Live = signs{Reader: w.Client, written: &written}
	w.reconciler.signs = signoflife.New(w.Client, w.reconciler.Live)
	return w, func(seconds int) {
		t.Helper()
		w.clock.SetTime(start.Add(time.Duration(seconds) * time.Second))
		written = w.clock.Now()
		lease := &coordinationv1.Lease{}
		if err := w.Get(t.Context(), leaseKey, lease); err != nil {
			t.Fatal(err)
		}
		// The consumer's clock is years behind: it does not count.
		lease.Spec.RenewTime = &metav1.MicroTime{Time: start.AddDate(-9, 0, 0)}
		if err := w.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) at(seconds int) {
	w.Helper()
	w.clock.SetTime(start.Add(time.Duration(seconds) * time.Second))
	if _, err := w.pass(); err != nil {
		w.Fatal(err)
	}
}

func TestAPodIsStoppedWithoutSignsOfItsConsumer(t *testing.T) {
	w, sign := partitioned(t, "stop=1m")
	w.at(0)
	role := &rbacv1.Role{}
	if err := w.Get(t.Context(), leaseKey, role); err != nil {
		t.Fatal(err)
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{leaseKey.Name}, Verbs: []string{"patch"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Error(diff)
	}
	rights := &rbacv1.RoleBinding{}
	if err := w.Get(t.Context(), leaseKey, rights); err != nil || rights.RoleRef.Kind != "Role" || rights.RoleRef.Name != leaseKey.Name ||
		len(rights.Subjects) != 1 || rights.Subjects[0].Name != "liqo.io:consumer:rome" {
		t.Errorf("the right is given to %+v by %+v, %v", rights.Subjects, rights.RoleRef, err)
	}

	w.at(600) // a consumer that never gave a sign may be one that gives none
	sign(601)
	w.at(602)
	before := w.Writes
	w.at(660)
	sign(661)
	w.at(720)
	if w.pod() == nil || w.Writes != before+1 {
		t.Fatalf("pod %v, %d writes while signs come", w.pod() != nil, w.Writes-before-1)
	}
	again := newWorldFrom(w) // a restart of the controller manager knows the last sign
	again.at(720)
	if again.pod() == nil || again.ready() != "" {
		t.Fatalf("stopped early: %s", again.ready())
	}
	again.at(721)
	if shadow := again.shadow(); shadow.Status.Phase != corev1.PodFailed || again.ready() != "True StoppedOnPartition" {
		t.Errorf("recorded %s, %s", shadow.Status.Phase, again.ready())
	}
	if again.pod() != nil {
		t.Errorf("the pod runs")
	}
	sign(730) // the consumer is back: what was stopped is over
	for _, now := range []*world{w, newWorldFrom(w)} {
		now.at(731)
		if now.pod() != nil || now.ready() != "True StoppedOnPartition" {
			t.Errorf("the pod is back: %v, %s", now.pod() != nil, now.ready())
		}
	}
}

func TestAPodIsKeptWithoutSignsOfItsConsumer(t *testing.T) {
	for _, value := range []string{"keep", "", "stop=1s", "kill"} {
		t.Run(value, func(t *testing.T) {
			w, _ := partitioned(t, value)
			w.at(0)
			w.at(1 << 20)
			if w.pod() == nil || w.ready() != "" {
				t.Errorf("the pod is gone: %s", w.ready())
			}
			if err := w.Get(t.Context(), leaseKey, &coordinationv1.Lease{}); err == nil {
				t.Error("signs are asked for")
			}
		})
	}
}

// It finished while its consumer was away: that is its end, whatever comes later.
func TestAPodThatFinishedIsNotStopped(t *testing.T) {
	w, sign := partitioned(t, "fence=1m")
	w.at(0)
	sign(1)
	w.set(ended(corev1.PodSucceeded, 50))
	w.at(3600)
	if shadow := w.shadow(); shadow.Status.Phase != corev1.PodSucceeded || w.ready() != "True PodTerminated" {
		t.Errorf("recorded %s, %s", shadow.Status.Phase, w.ready())
	}
}

// A peering that was made anew has another group: it is given the right as soon as somebody looks.
func TestANewPeeringMayGiveSigns(t *testing.T) {
	w, sign := partitioned(t, "stop=1m")
	w.at(0)
	sign(1)
	admitted := &rbacv1.RoleBinding{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: offloadingv1beta1.RemoteClusterRole}, admitted); err != nil {
		t.Fatal(err)
	}
	admitted.Subjects = []rbacv1.Subject{binding.Group("liqo.io:peering:01:consumer:rome")}
	if err := w.Update(t.Context(), admitted); err != nil {
		t.Fatal(err)
	}
	newWorldFrom(w).at(2)
	rights := &rbacv1.RoleBinding{}
	if err := w.Get(t.Context(), leaseKey, rights); err != nil || len(rights.Subjects) != 1 || rights.Subjects[0].Name != "liqo.io:peering:01:consumer:rome" {
		t.Errorf("the right is given to %+v, %v", rights.Subjects, err)
	}
}
