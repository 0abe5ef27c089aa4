package slicegrant

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func slice(changes ...func(*authv1beta1.ResourceSlice)) *authv1beta1.ResourceSlice {
	s := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "liqo-tenant-rome", Name: "s", UID: "u1",
			Labels: map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "rome"},
		},
		Spec: authv1beta1.ResourceSliceSpec{
			ConsumerClusterID: ptr.To(corev1beta1.ClusterID("rome")), ProviderClusterID: ptr.To(corev1beta1.ClusterID("milan")),
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func TestWhyInvalid(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*authv1beta1.ResourceSlice)
		want   string
	}{
		"a good slice":                       {func(*authv1beta1.ResourceSlice) {}, ""},
		"the label of another cluster (V12)": {func(s *authv1beta1.ResourceSlice) { s.Labels[corev1beta1.OriginIDLabel] = "turin" }, "originID"},
		"another consumer":                   {func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = ptr.To(corev1beta1.ClusterID("turin")) }, "consumerClusterID"},
		"no consumer":                        {func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = nil }, "consumerClusterID"},
		"another provider":                   {func(s *authv1beta1.ResourceSlice) { s.Spec.ProviderClusterID = ptr.To(corev1beta1.ClusterID("turin")) }, "providerClusterID"},
		"no provider":                        {func(s *authv1beta1.ResourceSlice) { s.Spec.ProviderClusterID = nil }, "providerClusterID"},
		"a long name":                        {func(s *authv1beta1.ResourceSlice) { s.Name = strings.Repeat("x", 64) }, "at most 63"},
		"a negative quantity":                {func(s *authv1beta1.ResourceSlice) { s.Spec.Resources = list("cpu", "-1") }, "negative"},
		"a resource that is none":            {func(s *authv1beta1.ResourceSlice) { s.Spec.Resources = list("not valid", "1") }, "not valid"},
		"a node by its name": {func(s *authv1beta1.ResourceSlice) {
			s.Annotations = map[string]string{authv1beta1.NodeSelectorAnnotation: "kubernetes.io/hostname=milan-1"}
		}, "names a node"},
		"nodes that cannot be chosen so": {func(s *authv1beta1.ResourceSlice) {
			s.Annotations = map[string]string{authv1beta1.NodeSelectorAnnotation: "pool in (a, b)"}
		}, "not like key=value"},
		"a flood of resources": {func(s *authv1beta1.ResourceSlice) {
			s.Spec.Resources = list()
			for i := range 65 {
				s.Spec.Resources[corev1.ResourceName(fmt.Sprintf("x%d", i))] = resource.MustParse("1")
			}
		}, "at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			got := WhyInvalid(slice(tc.change), "rome", "milan")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGrant(t *testing.T) {
	for name, tc := range map[string]struct {
		offered, present, want corev1.ResourceList
		cordoned               bool
	}{
		"what is offered": {offered: list("cpu", "4", "nvidia.com/gpu", "1"), want: list("cpu", "4", "nvidia.com/gpu", "1")},
		"a cordoned tenant gets no more than it has":   {offered: list("cpu", "9", "memory", "8Gi"), present: list("cpu", "2", "memory", "8Gi"), cordoned: true, want: list("cpu", "2", "memory", "8Gi")},
		"nor anything new":                             {offered: list("x/y", "1", "cpu", "4"), present: list("cpu", "4"), cordoned: true, want: list("cpu", "4")},
		"but may give back":                            {offered: list("cpu", "1"), present: list("cpu", "2"), cordoned: true, want: list("cpu", "1")},
		"an active tenant is not held to what it had ": {offered: list("cpu", "9"), present: list("cpu", "2"), want: list("cpu", "9")},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tc.offered)
			if diff := cmp.Diff(tc.want, Grant(tc.offered, tc.present, tc.cordoned)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.offered); diff != "" {
				t.Errorf("the offer was changed: %s", diff)
			}
		})
	}
}

func TestCordonSurvivesRecreation(t *testing.T) {
	yes := map[string]string{authv1beta1.CordonAnnotation: "true"}
	quota := func(annotations ...string) *offloadingv1beta1.Quota {
		q := &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		for i := 0; i < len(annotations); i += 2 {
			q.Annotations[annotations[i]] = annotations[i+1]
		}
		return q
	}
	for name, tc := range map[string]struct {
		slice     *authv1beta1.ResourceSlice
		quota     *offloadingv1beta1.Quota
		cordoned  bool
		inherited bool
	}{
		"no cordon, no Quota":                 {slice: slice()},
		"the annotation cordons":              {slice: slice(func(s *authv1beta1.ResourceSlice) { s.Annotations = yes }), cordoned: true},
		"a new slice inherits it (V10)":       {slice: slice(), quota: quota(authv1beta1.CordonAnnotation, "true", authv1beta1.SliceUIDAnnotation, "u0"), cordoned: true, inherited: true},
		"taking it off the same slice lifts":  {slice: slice(), quota: quota(authv1beta1.CordonAnnotation, "true", authv1beta1.SliceUIDAnnotation, "u1"), inherited: true},
		"an uncordoned Quota gives no cordon": {slice: slice(), quota: quota(authv1beta1.SliceUIDAnnotation, "u0")},
	} {
		t.Run(name, func(t *testing.T) {
			cordoned, inherited := cordon(tc.slice, tc.quota)
			if cordoned != tc.cordoned || inherited != tc.inherited {
				t.Errorf("cordoned %v, inherited %v", cordoned, inherited)
			}
		})
	}
}

func TestQuota(t *testing.T) {
	tenant := &authv1beta1.Tenant{Spec: authv1beta1.TenantSpec{ClusterID: "rome"}}
	quota := renderQuota(slice(), tenant, list("cpu", "1"), offloadingv1beta1.SoftLimitsEnforcement, false, true)
	want := offloadingv1beta1.QuotaSpec{
		User: identity.SliceUser("rome", "s"), LimitsEnforcement: offloadingv1beta1.SoftLimitsEnforcement, Resources: list("cpu", "1"), Cordoned: ptr.To(true),
	}
	if diff := cmp.Diff(want, quota.Spec); diff != "" {
		t.Error(diff)
	}
	if quota.Name == QuotaName("turin", "s") || !strings.HasPrefix(quota.Name, "s-") {
		t.Errorf("the name is %s", quota.Name)
	}
	if _, kept := quota.Annotations[authv1beta1.CordonAnnotation]; kept {
		t.Error("a tenant's cordon is kept as the slice's own")
	}
}

func TestStorageOffer(t *testing.T) {
	classes := []storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "slow"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{defaultStorageClassAnnotation: "true"}}},
	}
	for name, tc := range map[string]struct {
		named string
		want  []authv1beta1.StorageType
	}{
		"the cluster's default": {"", []authv1beta1.StorageType{{StorageClassName: "fast", Default: true}, {StorageClassName: "slow"}}},
		"the named default":     {"slow", []authv1beta1.StorageType{{StorageClassName: "fast"}, {StorageClassName: "slow", Default: true}}},
	} {
		if diff := cmp.Diff(tc.want, StorageOffer(classes, tc.named)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReady(t *testing.T) {
	accepted := corev1beta1.Condition{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted}
	denied := corev1beta1.Condition{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Denied, Reason: authv1beta1.ReasonTenantCordoned}
	s := slice(func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = []corev1beta1.Condition{accepted} })
	if c := ready(s, nil); c.Status != "False" || c.Reason != authv1beta1.ReasonWaitingForProvider {
		t.Errorf("half an answer is %+v", c)
	}
	s.Status.Conditions = append(s.Status.Conditions, denied)
	if c := ready(s, nil); c.Status != "False" || c.Reason != authv1beta1.ReasonTenantCordoned {
		t.Errorf("a refusal is %+v", c)
	}
	s.Status.Conditions[1].Status = authv1beta1.Accepted
	if c := ready(s, nil); c.Status != "True" {
		t.Errorf("two yes are %+v", c)
	}
}
