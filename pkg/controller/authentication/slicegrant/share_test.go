package slicegrant

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
)

// newSharer is a provider that gives no fixed quantities.
func newSharer(t *testing.T, change func(*Policy)) *provider {
	t.Helper()
	p := newProvider(t)
	p.r.options.Policy.DefaultResources = nil
	p.r.options.Clock = clock.RealClock{}
	change(&p.r.options.Policy)
	p.r.options.Supply = p.counts(supply.Options{Exclusive: p.r.options.Policy.Exclusive})
	return p
}

// counts is what this cluster has, by its nodes.
func (p *provider) counts(o supply.Options) *supply.Supply {
	p.Helper()
	nodes, offers := &corev1.NodeList{}, supply.New(o)
	if err := p.List(p.Context(), nodes); err != nil {
		p.Fatal(err)
	}
	for i := range nodes.Items {
		offers.Node(&nodes.Items[i])
	}
	offers.Counted()
	return offers
}

// runs has a pod take so much of a node: of the provider's own, or of the slice of a tenant.
func (p *provider) runs(name string, takes corev1.ResourceList, tenant *authv1beta1.Tenant, slice string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: "sim-0",
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: takes}}}}}
	if tenant != nil {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ShadowPod", Controller: ptr.To(true)}}
		pod.Labels = map[string]string{offloadingv1beta1.OriginLabel: string(tenant.Spec.ClusterID)}
		pod.Annotations = map[string]string{offloadingv1beta1.CreatorUserAnnotation: capacity.UserLabel(identity.SliceUser(string(tenant.Spec.ClusterID), slice))}
	}
	p.r.options.Supply.Pod(pod)
}

func tenantNamed(name string, change func(*authv1beta1.TenantSpec)) *authv1beta1.Tenant {
	tenant := tenantOf(change)
	tenant.Name, tenant.Namespace, tenant.Spec.ClusterID = name, "liqo-tenant-"+name, corev1beta1.ClusterID(name)
	return tenant
}

func plain(*authv1beta1.TenantSpec) {}

// The cluster has 12 cores, 48 GiB and 330 pods.
func TestAShareOfWhatIsFreeIsGranted(t *testing.T) {
	percent := func(n int32) func(*authv1beta1.TenantSpec) {
		return func(s *authv1beta1.TenantSpec) { s.Limits = &authv1beta1.TenantLimits{SharingPercentage: &n} }
	}
	for name, tc := range map[string]struct {
		policy func(*Policy)
		tenant func(*authv1beta1.TenantSpec)
		class  authv1beta1.ResourceSliceClass
		asks   corev1.ResourceList
		runs   corev1.ResourceList
		want   string
	}{
		"nothing is asked for":           {want: "cpu 10800m, memory 44236Mi, pods 297"},
		"the provider's own pods run":    {runs: list("cpu", "2", "memory", "8Gi"), want: "cpu 9, memory 36Gi, pods 296"},
		"a quantity is asked for":        {asks: list("cpu", "3"), want: "cpu 3, memory 44236Mi, pods 297"},
		"one that no cluster has":        {asks: list("cpu", "30"), want: "cpu 12, memory 44236Mi, pods 297"},
		"the chart says how much":        {policy: func(p *Policy) { p.Shares = NewShares(Percentages{All: ptr.To[int32](50)}) }, want: "cpu 6, memory 24Gi, pods 165"},
		"the Tenant says how much":       {policy: func(p *Policy) { p.Shares = NewShares(Percentages{All: ptr.To[int32](50)}) }, tenant: percent(25), want: "cpu 3, memory 12Gi, pods 82"},
		"the class says how much":        {policy: func(p *Policy) { p.Shares = NewShares(Percentages{Classes: map[string]int32{"gold": 100}}) }, tenant: percent(25), class: "gold", want: "cpu 12, memory 48Gi, pods 330"},
		"nothing is shared":              {tenant: percent(0), want: "cpu 0, memory 0, pods 0"},
		"fixed quantities are given":     {policy: func(p *Policy) { p.DefaultResources = list("cpu", "4") }, want: "cpu 4, memory 44236Mi, pods 297"},
		"the administrator set a limit":  {tenant: func(s *authv1beta1.TenantSpec) { s.Limits = &authv1beta1.TenantLimits{Resources: list("cpu", "2")} }, want: "cpu 2, memory 44236Mi, pods 297"},
		"a device of which none is here": {asks: list("nvidia.com/gpu", "2"), want: "cpu 10800m, memory 44236Mi, nvidia.com/gpu 0, pods 297"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.policy == nil {
				tc.policy = func(*Policy) {}
			}
			if tc.tenant == nil {
				tc.tenant = plain
			}
			p := newSharer(t, tc.policy)
			if tc.runs != nil {
				p.runs("own", tc.runs, nil, "")
			}
			s := &scope{tenant: tenantOf(tc.tenant), slice: slice(func(s *authv1beta1.ResourceSlice) { s.Spec.Class, s.Spec.Resources = tc.class, tc.asks })}
			if err := p.r.grant(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if got := capacity.Text(s.slice.Status.Resources); got != tc.want {
				t.Errorf("granted are %s, want %s", got, tc.want)
			}
			largest := "cpu 4, memory 16Gi"
			if got := capacity.Text(s.slice.Status.ProviderNodes.LargestPod); got != largest {
				t.Errorf("the largest pod is %s, want %s", got, largest)
			}
		})
	}
}

// What is answered by somebody else stays theirs, and what cannot be is refused: what was granted before stays.
func TestWhatIsNotOfferedByUs(t *testing.T) {
	p := newSharer(t, func(p *Policy) { p.Shares = NewShares(Percentages{Classes: map[string]int32{"gold": 50}}) })
	theirs := &scope{tenant: tenantOf(plain), slice: slice(func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "theirs" })}
	if err := p.r.grant(t.Context(), theirs); err != nil || theirs.slice.Status.Resources != nil || theirs.resources.status != "" {
		t.Errorf("a slice of another class got %v, %+v, error %v", theirs.slice.Status.Resources, theirs.resources, err)
	}
	p.asks(tenantOf(plain), "a", nil)
	before := p.quota("a")
	p.r.options.Supply = supply.New(supply.Options{})
	uncounted := &scope{tenant: tenantOf(plain), quota: before, slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name = "a" })}
	if err := p.r.grant(t.Context(), uncounted); err == nil || !strings.Contains(err.Error(), "are counted") {
		t.Errorf("before the nodes are counted: %v", err)
	}
	if after := p.quota("a"); after == nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the Quota was changed from %+v to %+v", before, after)
	}
}

func TestOffersFollowWhatIsFree(t *testing.T) {
	p, rome := newSharer(t, func(*Policy) {}), tenantOf(plain)
	cpu := func() string {
		granted := p.asks(rome, "a", nil)
		return granted.Cpu().String()
	}
	steps := []string{cpu()}
	p.runs("own", list("cpu", "2"), nil, "")
	// Nobody was told of it yet: a slice that is looked at for another reason is not written.
	steps = append(steps, cpu())
	p.r.options.Supply = p.counts(supply.Options{})
	p.runs("own", list("cpu", "2"), nil, "")
	steps = append(steps, cpu())
	if got, want := strings.Join(steps, " "), "10800m 10800m 9"; got != want {
		t.Errorf("offered are %s, want %s", got, want)
	}
}

// More runs than is offered: it stays, nothing fits beside it, and the slice says so until it is over.
func TestOverCommitmentIsTold(t *testing.T) {
	p, rome := newSharer(t, func(*Policy) {}), tenantOf(plain)
	p.runs("theirs", list("cpu", "4"), rome, "a")
	p.runs("own", list("cpu", "6"), nil, "")
	s := &scope{tenant: rome, slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name = "a" })}
	told := func(share int32, limit corev1.ResourceList) string {
		t.Helper()
		s.tenant.Spec.Limits = &authv1beta1.TenantLimits{SharingPercentage: &share, Resources: limit}
		s.quota = p.quota("a")
		if err := p.r.grant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.resources = outcome{} // of which the recorder would be told
		p.r.summarize(s, nil)
		message := "nothing"
		if c := conditions.Find(s.slice.Status.Summary, authv1beta1.OverCommittedCondition); c != nil {
			message = c.Status + " " + c.Reason + " " + c.Message
		}
		return fmt.Sprintf("%s: %s", s.slice.Status.Resources.Cpu(), message)
	}
	for _, step := range []struct {
		share int32
		limit corev1.ResourceList
		want  string
	}{
		{90, nil, "5400m: nothing"},
		{50, nil, "4: True MoreRunsThanIsOffered what runs stays, and no more pods are taken: it is more than is offered now, by cpu 1"},
		{90, list("cpu", "1"), "4: True MoreRunsThanIsOffered what runs stays, and no more pods are taken: it is more than is offered now, by cpu 3"},
		{10, list("cpu", "5"), "4: True MoreRunsThanIsOffered what runs stays, and no more pods are taken: it is more than is offered now, by cpu 3400m"},
		{90, list("cpu", "0"), "4: True MoreRunsThanIsOffered what runs stays, and no more pods are taken: it is more than is offered now, by cpu 4"},
		{10, nil, "4: True MoreRunsThanIsOffered what runs stays, and no more pods are taken: it is more than is offered now, by cpu 3400m"},
		{100, nil, "6: nothing"},
	} {
		if got := told(step.share, step.limit); got != step.want {
			t.Errorf("at %d %% and a limit of %v: %s, want %s", step.share, step.limit, got, step.want)
		}
	}
}

// A limit that is lower than what runs is enforced at once; what runs is shown, so that nothing new is sent, until it has ended.
func TestALimitBelowWhatRuns(t *testing.T) {
	p, rome := newSharer(t, func(*Policy) {}), tenantOf(plain)
	p.asks(rome, "a", nil) // Its pods start after the first answer.
	p.runs("theirs", list("cpu", "4"), rome, "a")
	for _, step := range []struct {
		limit corev1.ResourceList
		ends  bool
		want  string
	}{
		{nil, false, "granted 10800m, shown 10800m, "},
		{list("cpu", "1"), false, "granted 1, shown 4, by cpu 3"},
		{list("cpu", "3"), false, "granted 3, shown 4, by cpu 1"},
		{nil, false, "granted 10800m, shown 10800m, "},
		{list("cpu", "1"), false, "granted 1, shown 4, by cpu 3"},
		{list("cpu", "1"), true, "granted 1, shown 1, "},
	} {
		if step.ends {
			p.r.options.Supply.ForgetPod(types.NamespacedName{Namespace: "shop", Name: "theirs"})
		}
		p.r.options.Supply.Settle()
		rome.Spec.Limits = &authv1beta1.TenantLimits{Resources: step.limit}
		s := &scope{tenant: rome, quota: p.quota("a"), slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name = "a" })}
		if err := p.r.grant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		_, over, _ := strings.Cut(s.over.message, "offered now, ")
		if got := fmt.Sprintf("granted %s, shown %s, %s", p.quota("a").Spec.Resources.Cpu(), s.slice.Status.Resources.Cpu(), over); got != step.want {
			t.Errorf("with a limit of %v: %s; want %s", step.limit, got, step.want)
		}
	}
}

// With exclusive the Quotas of all consumers together never hold more than what is free, whoever is answered first.
func TestExclusiveGrantsAreNeverMoreThanWhatIsFree(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		p := newSharer(t, func(p *Policy) { p.Exclusive = exclusive })
		rome, turin := tenantNamed("rome", plain), tenantNamed("turin", plain)
		answer := func(tenant *authv1beta1.Tenant) {
			t.Helper()
			s := &scope{tenant: tenant, slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name, s.Namespace = "a", tenant.Namespace })}
			quotas := &offloadingv1beta1.QuotaList{}
			if err := p.List(t.Context(), quotas); err != nil {
				t.Fatal(err)
			}
			for i := range quotas.Items {
				if quotas.Items[i].Namespace == tenant.Namespace {
					s.quota = &quotas.Items[i]
				}
			}
			if err := p.r.grant(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			sum := p.granted()
			if over := sum.Cpu().CmpInt64(12) > 0; exclusive && over {
				t.Errorf("after an answer to %s, %s cores are granted", tenant.Name, sum.Cpu())
			}
		}
		answer(rome)
		answer(turin)
		p.r.options.Supply.Settle()
		for range 2 {
			answer(rome)
			answer(turin)
		}
		want := "21600m"
		if exclusive {
			want = "12"
		}
		if sum := p.granted(); sum.Cpu().String() != want {
			t.Errorf("exclusive %v: together %s cores are granted, want %s", exclusive, sum.Cpu(), want)
		}
	}
}
