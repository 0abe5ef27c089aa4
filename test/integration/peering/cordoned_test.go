package peering

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// What a cordoned tenant still gets, and what not: the table of docs/guide/quotas.md.
func TestWhatACordonedTenantStillGets(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	slice := c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "3", "pods", "100"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	takes := func(cpu string) corev1.PodSpec {
		return world.Container(func(one *corev1.Container) { one.Resources.Requests = world.Quantities("cpu", cpu) })
	}
	shadow := c.Shadow(namespace, "runs", takes("500m"))
	fixture.Must(t, "creating a pod", user.Create(t.Context(), shadow))
	uids := world.AwaitPods(t, env.Milan, namespace, 1)
	tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.ID}}
	fixture.Must(t, "cordoning the tenant", env.Milan.Client.Patch(t.Context(), tenant,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tenantCondition":"Cordoned"}}`))))
	n := 0
	fixture.Await(t, fixture.Patience, "the cordon to be effective", func(ctx context.Context) (bool, string) {
		n++
		err := user.Create(ctx, c.Shadow(namespace, fmt.Sprintf("new-%d", n), takes("100m")), client.DryRunAll)
		return cordonedBy(err), fmt.Sprint(err)
	})

	changed := func(change func(*offloadingv1beta1.ShadowPod)) error {
		live := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shadow.Name}}
		fixture.Must(t, "reading the pod", user.Get(t.Context(), client.ObjectKeyFromObject(live), live))
		after := live.DeepCopy()
		change(after)
		return user.Patch(t.Context(), after, client.MergeFrom(live))
	}
	marks := map[string]string{offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan"}
	named := metav1.ObjectMeta{Namespace: namespace, Name: "late", Labels: marks}
	for _, row := range []struct {
		what    string
		err     error
		allowed bool
	}{
		{"a new pod", user.Create(t.Context(), c.Shadow(namespace, "new", takes("100m"))), false},
		{"a pod that grows", changed(func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests = world.Quantities("cpu", "1")
		}), false},
		{"labels of a pod", changed(func(s *offloadingv1beta1.ShadowPod) { s.Labels["app"] = "late" }), true},
		{"a ConfigMap", user.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named}), true},
		{"a Secret", user.Create(t.Context(), &corev1.Secret{ObjectMeta: named}), true},
		{"a Service", user.Create(t.Context(), &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}), true},
	} {
		if allowed := row.err == nil; allowed != row.allowed || !allowed && !cordonedBy(row.err) {
			t.Errorf("%s: %v, allowed should be %v", row.what, row.err, row.allowed)
		}
	}

	lost := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shadow.Name}}
	fixture.Must(t, "losing the pod", env.Milan.Client.Delete(t.Context(), lost, client.GracePeriodSeconds(0)))
	fixture.Await(t, fixture.Patience, "the lost pod to run again", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(lost), lost)
		return err == nil && lost.UID != uids[lost.Name] && lost.Status.Phase == corev1.PodRunning, fmt.Sprint(lost.UID, lost.Status.Phase, err)
	})
	getsNoNamespace(t, c)
	getsNoMoreOfASlice(t, c, slice)
	fixture.Must(t, "ending the pod", user.Delete(t.Context(), shadow))
	world.AwaitGone(t, env.Milan, lost)
}

func cordonedBy(err error) bool {
	return err != nil && strings.Contains(err.Error(), offloadingv1beta1.ReasonCordoned)
}

// getsNoNamespace has a tenant ask for one more, which it is told not to get.
func getsNoNamespace(t *testing.T, c *world.Tenant) {
	t.Helper()
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "milan"}}
	twin := fixture.Unique("late")
	fixture.Must(t, "asking for a namespace", c.User.Patch(t.Context(), m, client.RawPatch(types.MergePatchType,
		[]byte(fmt.Sprintf(`{"spec":{"desiredMapping":{"late":%q}}}`, twin)))))
	fixture.Await(t, fixture.Patience, "the namespace to be refused", func(ctx context.Context) (bool, string) {
		err := c.User.Get(ctx, client.ObjectKeyFromObject(m), m)
		answer := m.Status.CurrentMapping["late"]
		return err == nil && answer.Reason == offloadingv1beta1.ReasonCordoned, fmt.Sprintf("%+v, error %v", answer, err)
	})
	if err := env.Milan.Client.Get(t.Context(), client.ObjectKey{Name: twin}, &corev1.Namespace{}); err == nil {
		t.Error("a new namespace was made")
	}
}

// getsNoMoreOfASlice has a tenant ask for more of a slice, for less, and for another one.
func getsNoMoreOfASlice(t *testing.T, c *world.Tenant, slice *authv1beta1.ResourceSlice) {
	t.Helper()
	for _, step := range []struct{ asks, gets string }{{"5", "3"}, {"2", "2"}, {"3", "2"}} {
		patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"resources":{"cpu":%q}}}`, step.asks)))
		fixture.Must(t, "asking for other resources", c.User.Patch(t.Context(), slice, patch))
		generation := slice.Generation
		fixture.Await(t, fixture.Patience, "an answer to who asks for "+step.asks, func(ctx context.Context) (bool, string) {
			err := c.User.Get(ctx, client.ObjectKeyFromObject(slice), slice)
			answer := conditions.Find(slice.Status.Conditions, authv1beta1.ResourcesCondition)
			return err == nil && answer != nil && answer.ObservedGeneration >= generation, fmt.Sprint(slice.Status.Conditions, err)
		})
		if got := slice.Status.Resources[corev1.ResourceCPU]; got.String() != step.gets {
			t.Errorf("who asks for %s gets %s, want %s", step.asks, got.String(), step.gets)
		}
	}
	csr, err := identity.NewCSR(c.Key.Signer(), identity.SliceSubject(c.ID, "late").InPeering(c.Peering))
	fixture.Must(t, "making a CSR", err)
	late := c.Slice("late", csr, nil)
	fixture.Must(t, "asking for another slice", c.User.Create(t.Context(), late))
	fixture.Await(t, fixture.Patience, "the new slice to be denied", func(ctx context.Context) (bool, string) {
		err := c.User.Get(ctx, client.ObjectKeyFromObject(late), late)
		answer := world.Status(late, authv1beta1.ResourcesCondition)
		return err == nil && answer.Status == authv1beta1.Denied && answer.Reason == authv1beta1.ReasonTenantCordoned, fmt.Sprint(late.Status.Conditions, err)
	})
}
