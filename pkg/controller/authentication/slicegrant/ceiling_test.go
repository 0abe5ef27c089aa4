package slicegrant

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/test/fakeapi"
)

const tenantNamespace = "liqo-tenant-rome"

// provider is a Reconciler with three nodes of 4 cpus and 110 pods; stale is what its cache shows in place of the API server's objects.
type provider struct {
	*testing.T
	*fakeapi.Server
	r *Reconciler
}

func newProvider(t *testing.T, objects ...client.Object) *provider {
	t.Helper()
	offers := supply.New(supply.Options{})
	for i := range 3 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sim-%d", i)}, Status: corev1.NodeStatus{
			Allocatable: list("cpu", "4", "memory", "16Gi", "pods", "110"),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		offers.Node(node)
		objects = append(objects, node)
	}
	offers.Counted()
	kinds := []func(*runtime.Scheme) error{authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme}
	p := &provider{T: t, Server: fakeapi.New(t, fakeapi.Options{Kinds: kinds, Objects: objects})}
	p.r = &Reconciler{client: p.Server, live: p.Server, options: Options{ClusterID: "milan", Supply: offers, Policy: Policy{
		DefaultClassEnabled: true, DefaultResources: list("cpu", "4", "memory", "8Gi", "pods", "110", "ephemeral-storage", "20Gi"), LimitsEnforcement: offloadingv1beta1.NoLimitsEnforcement}}}
	return p
}

// asks has the provider grant what a slice of that name asks for.
func (p *provider) asks(tenant *authv1beta1.Tenant, name string, resources corev1.ResourceList) corev1.ResourceList {
	p.Helper()
	s := &scope{tenant: tenant, slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name, s.Spec.Resources = name, resources })}
	s.quota = p.quota(name)
	if err := p.r.grant(p.Context(), s); err != nil {
		p.Fatal(err)
	}
	return s.slice.Status.Resources
}

// quota of a slice; nil if there is none.
func (p *provider) quota(name string) *offloadingv1beta1.Quota {
	quota := &offloadingv1beta1.Quota{}
	if p.Get(p.Context(), types.NamespacedName{Namespace: tenantNamespace, Name: QuotaName("rome", name)}, quota) != nil {
		return nil
	}
	return quota
}

// granted is what all Quotas of the tenant hold together.
func (p *provider) granted() corev1.ResourceList {
	p.Helper()
	all, sum := &offloadingv1beta1.QuotaList{}, corev1.ResourceList{}
	if err := p.List(p.Context(), all); err != nil {
		p.Fatal(err)
	}
	for i := range all.Items {
		sum = capacity.Sum(sum, all.Items[i].Spec.Resources)
	}
	return sum
}

func tenantOf(change func(*authv1beta1.TenantSpec)) *authv1beta1.Tenant {
	tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "rome", UID: "uid-of-rome"}, Spec: authv1beta1.TenantSpec{ClusterID: "rome"}}
	change(&tenant.Spec)
	return tenant
}

// The grant was what the consumer asks for, as often as it asks.
func TestTheGrantIsNotTheWish(t *testing.T) {
	greedy := list("cpu", "1000000", "memory", "1Pi", "pods", "1000000", "nvidia.com/gpu", "1000000")
	plain := func(*authv1beta1.TenantSpec) {}
	for name, tc := range map[string]struct {
		tenant func(*authv1beta1.TenantSpec)
		attack func(p *provider, tenant *authv1beta1.Tenant)
		most   corev1.ResourceList
	}{
		"a slice that asks for everything": {plain, func(p *provider, tenant *authv1beta1.Tenant) {
			p.asks(tenant, "greedy", greedy)
		}, list("cpu", "12", "memory", "48Gi", "pods", "330", "nvidia.com/gpu", "0")},
		"several slices that do": {plain, func(p *provider, tenant *authv1beta1.Tenant) {
			for i := range 5 {
				p.asks(tenant, fmt.Sprintf("greedy-%d", i), greedy)
			}
		}, list("cpu", "12", "memory", "48Gi", "pods", "330", "nvidia.com/gpu", "0")},
		"one that asks for little first, and grows": {plain, func(p *provider, tenant *authv1beta1.Tenant) {
			p.asks(tenant, "small", list("cpu", "1"))
			p.asks(tenant, "large", greedy)
			p.asks(tenant, "small", greedy)
		}, list("cpu", "12", "memory", "48Gi", "pods", "330", "nvidia.com/gpu", "0", "ephemeral-storage", "0")},
		"slices that ask for nothing, and get what is given by default": {plain, func(p *provider, tenant *authv1beta1.Tenant) {
			for i := range 5 {
				p.asks(tenant, fmt.Sprintf("default-%d", i), nil)
			}
		}, list("cpu", "12", "memory", "48Gi", "pods", "330", "ephemeral-storage", "0")},
		"a tenant with a limit of its own": {func(s *authv1beta1.TenantSpec) {
			s.Limits = &authv1beta1.TenantLimits{Resources: list("cpu", "2", "nvidia.com/gpu", "1")}
		}, func(p *provider, tenant *authv1beta1.Tenant) {
			for i := range 3 {
				p.asks(tenant, fmt.Sprintf("greedy-%d", i), greedy)
			}
		}, list("cpu", "2", "memory", "48Gi", "pods", "330", "nvidia.com/gpu", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			tc.attack(p, tenantOf(tc.tenant))
			got := p.granted()
			delete(got, "ephemeral-storage")
			delete(tc.most, "ephemeral-storage")
			if less := capacity.Less(tc.most, got); len(less) > 0 || len(got) == 0 {
				t.Errorf("the tenant was granted %v, more %v than %v", got, less, tc.most)
			}
		})
	}
}

// A cache that does not show yet what another slice was granted does not have it granted twice.
func TestTheGrantIsCountedLive(t *testing.T) {
	p := newProvider(t)
	tenant := tenantOf(func(*authv1beta1.TenantSpec) {})
	p.asks(tenant, "first", list("cpu", "12"))
	p.r.client = withNodes{p.Lagging(t), p.Server}
	if got := p.asks(tenant, "second", list("cpu", "12")); !got.Cpu().IsZero() {
		t.Errorf("the second slice was granted %s cpus", got.Cpu())
	}
}

// withNodes shows the nodes as they are, and all else as it was.
type withNodes struct {
	client.Client
	now client.Reader
}

func (w withNodes) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if _, nodes := into.(*corev1.NodeList); nodes {
		return w.now.List(ctx, into)
	}
	return w.Client.List(ctx, into, options...)
}

// V15: each slice is a user with a certificate, so their number is bounded.
func TestWhyTooMany(t *testing.T) {
	at := func(second int64, name string, accepted bool) authv1beta1.ResourceSlice {
		return *slice(func(s *authv1beta1.ResourceSlice) {
			s.Name, s.CreationTimestamp = name, metav1.Unix(second, 0)
			if accepted {
				s.Status.Conditions = []corev1beta1.Condition{{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted}}
			}
		})
	}
	own := *slice(func(s *authv1beta1.ResourceSlice) { s.Name, s.Labels = "own", nil })
	for name, tc := range map[string]struct {
		slice authv1beta1.ResourceSlice
		all   []authv1beta1.ResourceSlice
		limit int32
		many  bool
	}{
		"the first":                               {at(5, "a", false), nil, 1, false},
		"one too many":                            {at(5, "b", false), []authv1beta1.ResourceSlice{at(1, "a", true)}, 1, true},
		"older ones come first":                   {at(5, "b", false), []authv1beta1.ResourceSlice{at(1, "a", false)}, 1, true},
		"younger ones do not":                     {at(5, "b", false), []authv1beta1.ResourceSlice{at(9, "a", false)}, 1, false},
		"but those that were answered do":         {at(5, "b", false), []authv1beta1.ResourceSlice{at(9, "a", true)}, 1, true},
		"what was answered stays":                 {at(5, "b", true), []authv1beta1.ResourceSlice{at(1, "a", true), at(2, "c", true)}, 1, false},
		"of the same second the first by name":    {at(5, "b", false), []authv1beta1.ResourceSlice{at(5, "a", false)}, 1, true},
		"one's own slices of the other direction": {at(5, "b", false), []authv1beta1.ResourceSlice{own}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WhyTooMany(&tc.slice, append(tc.all, tc.slice), tc.limit); (got != "") != tc.many {
				t.Errorf("got %q, want it to be refused: %t", got, tc.many)
			}
		})
	}
}

// S12, a second way: who deletes a slice and asks for another one has not given back what still runs.
func TestAGrantIsHeldByWhatRuns(t *testing.T) {
	tenant := tenantOf(func(*authv1beta1.TenantSpec) {})
	quotaKey := types.NamespacedName{Namespace: tenantNamespace, Name: QuotaName("rome", "first")}
	p := newProvider(t)
	p.asks(tenant, "first", list("cpu", "12"))
	quota := &offloadingv1beta1.Quota{}
	if err := p.Get(t.Context(), quotaKey, quota); err != nil {
		t.Fatal(err)
	}
	pod := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "web",
		Labels: map[string]string{offloadingv1beta1.CreatorUserLabel: capacity.UserLabel(quota.Spec.User)}}}
	if err := p.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	gone := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: tenantNamespace, Name: "first"}}
	if result, err := p.r.Reconcile(t.Context(), gone); err != nil || result.RequeueAfter != leaving {
		t.Errorf("again in %s, error %v", result.RequeueAfter, err)
	}
	if err := p.Get(t.Context(), quotaKey, quota); err != nil || !ptr.Deref(quota.Spec.Cordoned, false) {
		t.Errorf("the Quota of a slice that is gone and whose pods run: %v, error %v", quota.Spec, err)
	}
	if got := p.asks(tenant, "second", list("cpu", "12")); !got.Cpu().IsZero() {
		t.Errorf("another slice was granted %s cpus meanwhile", got.Cpu())
	}
	if err := p.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if result, err := p.r.Reconcile(t.Context(), gone); err != nil || result.RequeueAfter != 0 {
		t.Errorf("again in %s, error %v", result.RequeueAfter, err)
	}
	if got := p.asks(tenant, "second", list("cpu", "12")); got.Cpu().Value() != 12 {
		t.Errorf("the slice was granted %s cpus when the pods were gone", got.Cpu())
	}
}

// The consumer's user reads that it got less, and of what.
func TestLessThanAskedIsSaid(t *testing.T) {
	p := newProvider(t)
	s := &scope{tenant: tenantOf(func(*authv1beta1.TenantSpec) {}), slice: slice(func(s *authv1beta1.ResourceSlice) { s.Spec.Resources = list("cpu", "13", "memory", "1Gi") })}
	if err := p.r.grant(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if message := s.resources.message; !strings.Contains(message, "less cpu") || strings.Contains(message, "memory") {
		t.Errorf("it says %q", message)
	}
}
