package tenant

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/counting"
)

// counted is the ResourceQuota of the tenant namespace as Kubernetes counted it.
func counted() *corev1.ResourceQuota {
	hard, used := corev1.ResourceList{}, corev1.ResourceList{}
	for _, kind := range []corev1.ResourceName{
		"count/resourceslices.authentication.liqo.io", "count/renews.authentication.liqo.io", "count/namespacemaps.offloading.liqo.io",
	} {
		hard[kind], used[kind] = tenantObjects, resource.Quantity{}
	}
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: counting.QuotaName, Labels: map[string]string{corev1beta1.ManagedLabel: "true"}},
		Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Used: used}}
}

// V15: before a tenant has rights, what it makes is counted and its requests are served at a level of their own.
func TestATenantIsFenced(t *testing.T) {
	b := newBench(t)
	want := counted().Spec
	if err := b.client.Delete(t.Context(), counted()); err != nil {
		t.Fatal(err)
	}
	tenant := b.tenant(func(tenant *authv1beta1.Tenant) { tenant.Spec.AuthzPolicy = authv1beta1.TolerateNoHandshake })
	s := &scope{tenant: tenant}
	if err := b.r.findNamespace(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := b.r.fence(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: tn, Name: "liqo-remote-controlplane"}, &rbacv1.RoleBinding{}); err == nil {
		t.Error("the tenant has its rights before the fence")
	}
	quota := &corev1.ResourceQuota{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: tn, Name: counting.QuotaName}, quota); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, quota.Spec); diff != "" {
		t.Error(diff)
	}
	if s.again == 0 {
		t.Error("a quota that is not counted yet is not looked at again")
	}
	flow := &flowcontrolv1.FlowSchema{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "liqo-consumer-rome"}, flow); err != nil {
		t.Fatal(err)
	}
	var who []string
	for _, subject := range flow.Spec.Rules[0].Subjects {
		if subject.User != nil {
			who = append(who, subject.User.Name)
		}
		if subject.Group != nil {
			who = append(who, subject.Group.Name)
		}
	}
	if diff := cmp.Diff([]string{identity.TenantUser("rome"), identity.ConsumerGroup("rome")}, who); diff != "" {
		t.Error(diff)
	}
	level := &flowcontrolv1.PriorityLevelConfiguration{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: flow.Spec.PriorityLevelConfiguration.Name}, level); err != nil {
		t.Fatal(err)
	}
	if limited := level.Spec.Limited; *limited.NominalConcurrencyShares != b.r.options.RequestShares || *limited.LendablePercent != 0 || *limited.BorrowingLimitPercent != 0 {
		t.Errorf("the level is %+v", limited)
	}
	// What somebody changed is put back; what is in place is not written.
	changed := flow.DeepCopy()
	changed.Spec.PriorityLevelConfiguration.Name = "exempt"
	wider := level.DeepCopy()
	wider.Spec.Limited.NominalConcurrencyShares = ptr.To[int32](100)
	wider.OwnerReferences = nil
	for _, object := range []client.Object{changed, wider} {
		if err := b.client.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := b.r.fence(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	again := &flowcontrolv1.FlowSchema{}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(flow), again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flow.Spec, again.Spec); diff != "" {
		t.Error(diff)
	}
	kept := &flowcontrolv1.PriorityLevelConfiguration{}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(level), kept); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{level.Spec, level.OwnerReferences}, []any{kept.Spec, kept.OwnerReferences}); diff != "" {
		t.Error(diff)
	}
	// It goes with the tenant.
	if err := b.r.unfence(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{quota, flow, level} {
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err == nil {
			t.Errorf("%T %s is there still", object, object.GetName())
		}
	}
}

// Kubernetes refuses what it is to count and does not know yet: right after an installation peering does not wait for that.
func TestNobodyWaitsForNewKindsToBeCounted(t *testing.T) {
	b := newBench(t)
	if err := b.client.Delete(t.Context(), counted()); err != nil {
		t.Fatal(err)
	}
	const young = 20 * time.Second
	b.r.countFrom = b.clock.Now().Add(young)
	s := &scope{tenant: b.tenant(func(tenant *authv1beta1.Tenant) { tenant.Spec.AuthzPolicy = authv1beta1.TolerateNoHandshake })}
	if err := b.r.findNamespace(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := b.r.fence(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	quota, key := &corev1.ResourceQuota{}, client.ObjectKey{Namespace: tn, Name: counting.QuotaName}
	if err := b.client.Get(t.Context(), key, quota); err == nil || s.again != young {
		t.Errorf("a quota is there while its kinds are new: %v; it is looked at again in %s, want %s", err == nil, s.again, young)
	}
	b.clock.Step(young)
	if err := b.r.fence(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Get(t.Context(), key, quota); err != nil {
		t.Errorf("nothing is counted once the kinds are known: %v", err)
	}
}

// A level or a FlowSchema by a tenant's name that somebody else made is left as it is, and the tenant gets no rights.
func TestOthersPrioritiesAreLeft(t *testing.T) {
	for kind, theirs := range map[string]client.Object{
		"FlowSchema":                 &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "liqo-consumer-rome"}},
		"PriorityLevelConfiguration": &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-consumer-rome"}},
	} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, theirs)
			tenant := b.tenant(func(tenant *authv1beta1.Tenant) { tenant.Spec.AuthzPolicy = authv1beta1.TolerateNoHandshake })
			s := &scope{tenant: tenant}
			if err := b.r.findNamespace(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if err := b.r.fence(t.Context(), s); err == nil || !strings.Contains(err.Error(), kind+" liqo-consumer-rome") {
				t.Errorf("it says %v", err)
			}
			if err := b.r.unfence(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
				t.Errorf("%s of somebody else: %v", kind, err)
			}
		})
	}
}
