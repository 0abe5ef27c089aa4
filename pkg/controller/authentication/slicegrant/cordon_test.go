package slicegrant

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// Who is cordoned is told so, and told when it is over: new pods are refused, and nothing else would say it before.
func TestACordonIsTold(t *testing.T) {
	p := newProvider(t)
	p.r.options.Clock = clock.RealClock{}
	active, cordoned := tenantOf(func(*authv1beta1.TenantSpec) {}), tenantOf(func(s *authv1beta1.TenantSpec) { s.TenantCondition = authv1beta1.TenantCordoned })
	own := map[string]string{authv1beta1.CordonAnnotation: "true"}
	s := &scope{slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name = "a" })}
	for _, step := range []struct {
		sentence    string
		tenant      *authv1beta1.Tenant
		annotations map[string]string
		want        string
	}{
		{"all is well", active, nil, ""},
		{"the tenant is cordoned", cordoned, nil, "the provider takes no new pods of ResourceSlice a: TenantCordoned: the tenant keeps what it has and gets nothing new"},
		{"it is not any more", active, nil, ""},
		{"the slice is cordoned", active, own, "the provider takes no new pods of ResourceSlice a: SliceCordoned: the slice keeps what it has and gets no new pods"},
	} {
		s.tenant, s.slice.Annotations, s.cordoned, s.quota = step.tenant, step.annotations, nil, p.quota("a")
		if err := p.r.grant(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.resources = outcome{} // of which the recorder would be told
		p.r.summarize(s, nil)
		if got := s.slice.WhyCordoned(); got != step.want {
			t.Errorf("%s: %q, want %q", step.sentence, got, step.want)
		}
	}
}

// As in Liqo v1, the slices of a cordoned tenant carry an annotation, also one that is recreated without; what somebody writes by hand, or a
// consumer takes away, follows the Tenant again.
func TestTheSlicesOfACordonedTenantSaySo(t *testing.T) {
	for sentence, test := range map[string]struct {
		condition authv1beta1.TenantCondition
		before    map[string]string
		want      map[string]string
	}{
		"the tenant is cordoned":                {authv1beta1.TenantCordoned, nil, map[string]string{authv1beta1.CordonTenantAnnotation: "true"}},
		"it is not any more":                    {authv1beta1.TenantActive, map[string]string{"a": "b", authv1beta1.CordonTenantAnnotation: "true"}, map[string]string{"a": "b"}},
		"it never was":                          {authv1beta1.TenantActive, map[string]string{"a": "b"}, map[string]string{"a": "b"}},
		"the word that it is not":               {authv1beta1.TenantActive, map[string]string{authv1beta1.CordonTenantAnnotation: "false"}, map[string]string{authv1beta1.CordonTenantAnnotation: "false"}},
		"the word that it is not, though it is": {authv1beta1.TenantCordoned, map[string]string{authv1beta1.CordonTenantAnnotation: "false"}, map[string]string{authv1beta1.CordonTenantAnnotation: "true"}},
		"the slice's own cordon stays":          {authv1beta1.TenantActive, map[string]string{authv1beta1.CordonAnnotation: "true"}, map[string]string{authv1beta1.CordonAnnotation: "true"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			tenant := tenantOf(func(s *authv1beta1.TenantSpec) { s.TenantCondition = test.condition })
			tenant.Namespace, tenant.Status.TenantNamespace = tenantNamespace, tenantNamespace
			there := slice(func(s *authv1beta1.ResourceSlice) { s.Annotations, s.Spec.CSR = test.before, nil })
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace, Labels: map[string]string{
				corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}}}
			p := newProvider(t, tenant, there, namespace)
			p.r.options.Clock = clock.RealClock{}
			written := p.Writes
			err := p.r.phases(t.Context(), &scope{slice: there.DeepCopy()})
			if reconcile.ReasonOf(err) != authv1beta1.ReasonCSRMissing {
				t.Fatal(err)
			}
			live := &authv1beta1.ResourceSlice{}
			if err := p.Get(t.Context(), client.ObjectKeyFromObject(there), live); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, live.Annotations); diff != "" {
				t.Error(diff)
			}
			wanted := 0
			if !maps.Equal(test.before, test.want) {
				wanted++
			}
			if test.condition == authv1beta1.TenantActive {
				wanted++ // the Quota
			}
			if p.Writes-written != wanted {
				t.Errorf("%d writes, want %d", p.Writes-written, wanted)
			}
		})
	}
}
