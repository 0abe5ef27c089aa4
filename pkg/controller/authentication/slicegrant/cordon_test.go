package slicegrant

import (
	"testing"

	"k8s.io/utils/clock"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
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
