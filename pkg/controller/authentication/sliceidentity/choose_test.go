package sliceidentity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

func TestChoose(t *testing.T) {
	ca, otherCA := testca.New(t), testca.New(t)
	now := time.Unix(2_000_000, 0)
	subject := identity.SliceSubject("rome", "s")
	key, other := ca.Key(), ca.Key()
	cert, fresh := ca.Issue(key, subject, now, time.Hour), ca.Issue(key, subject, now, 2*time.Hour)
	proxy := "http://192.0.2.9:3128"
	params := func(cert []byte) *authv1beta1.AuthParams {
		return &authv1beta1.AuthParams{APIServer: "https://192.0.2.1:6443", CA: ca.PEM, SignedCRT: cert}
	}
	changed := func(change func(*authv1beta1.AuthParams)) *authv1beta1.AuthParams {
		p := params(cert)
		change(p)
		return p
	}
	for name, tc := range map[string]struct {
		offered, live, want *authv1beta1.AuthParams
		reason              string
	}{
		"one of an earlier peering is waited out":      {offered: params(ca.Issue(key, subject.InPeering("0123456789abcdef"), now, time.Hour)), reason: authv1beta1.ReasonWaitingForProvider},
		"nothing was offered yet":                      {reason: authv1beta1.ReasonWaitingForProvider},
		"the first certificate is taken":               {offered: params(cert), want: params(cert)},
		"the same again changes nothing":               {offered: params(cert), live: params(cert)},
		"a fresher one is taken":                       {offered: params(fresh), live: params(cert), want: params(fresh)},
		"an older one is not":                          {offered: params(cert), live: params(fresh)},
		"one for another key is refused":               {offered: params(ca.Issue(other, subject, now, time.Hour)), reason: authv1beta1.ReasonCertificateMismatch},
		"and leaves a good Identity alone":             {offered: params(ca.Issue(other, subject, now, time.Hour)), live: params(cert)},
		"one for another name is refused":              {offered: params(ca.Issue(key, identity.TenantSubject("rome"), now, time.Hour)), reason: authv1beta1.ReasonCertificateMismatch},
		"one that expired is refused":                  {offered: params(ca.Issue(key, subject, now.Add(-3*time.Hour), time.Hour)), reason: authv1beta1.ReasonCertificateMismatch},
		"another API server (W6)":                      {offered: changed(func(p *authv1beta1.AuthParams) { p.APIServer = "https://198.51.100.1" }), reason: authv1beta1.ReasonEndpointChanged},
		"another API server for a live Identity (W6)":  {offered: changed(func(p *authv1beta1.AuthParams) { p.APIServer = "https://198.51.100.1" }), live: params(cert), reason: authv1beta1.ReasonEndpointChanged},
		"another CA (W6)":                              {offered: changed(func(p *authv1beta1.AuthParams) { p.CA = otherCA.PEM }), reason: authv1beta1.ReasonEndpointChanged},
		"no CA instead of one (W6)":                    {offered: changed(func(p *authv1beta1.AuthParams) { p.CA = nil }), reason: authv1beta1.ReasonEndpointChanged},
		"a proxy in between (W6)":                      {offered: changed(func(p *authv1beta1.AuthParams) { p.ProxyURL = &proxy }), reason: authv1beta1.ReasonEndpointChanged},
		"an endpoint that changed here is taken along": {offered: params(cert), live: changed(func(p *authv1beta1.AuthParams) { p.APIServer = "https://192.0.2.7" }), want: params(cert)},
	} {
		t.Run(name, func(t *testing.T) {
			slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Status: authv1beta1.ResourceSliceStatus{AuthParams: tc.offered}}
			var live *authv1beta1.Identity
			if tc.live != nil {
				live = &authv1beta1.Identity{Spec: authv1beta1.IdentitySpec{AuthParams: *tc.live}}
			}
			got, err := Choose(slice, live, params([]byte("control plane")), key, "rome", now)
			reason := ""
			if err != nil {
				reason = reconcile.ReasonOf(err)
			}
			if reason != tc.reason {
				t.Fatalf("reason %q (%v), want %q", reason, err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
