package namespacemap

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

// Who may work in a twin follows the Tenant's peering, whatever else is the matter with the twin.
func TestRightsInTwinsFollowThePeering(t *testing.T) {
	ca := testca.New(t)
	key := ca.Key()
	peering, err := identity.PeeringID(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome", "farm": "stuck-farm"}), tenantNamespace(), tenant("Active"))
	w.pass()
	rights := func() map[string][]string {
		t.Helper()
		names := map[string][]string{}
		for _, twin := range []string{"shop-rome", "stuck-farm"} {
			var binding rbacv1.RoleBinding
			if err := w.Get(context.Background(), client.ObjectKey{Namespace: twin, Name: offloadingv1beta1.RemoteClusterRole}, &binding); err != nil {
				t.Fatal(err)
			}
			names[twin] = nil
			for _, subject := range binding.Subjects {
				names[twin] = append(names[twin], subject.Kind+" "+subject.Name)
			}
		}
		return names
	}
	both := func(names ...string) map[string][]string {
		return map[string][]string{"shop-rome": names, "stuck-farm": names}
	}
	if diff := cmp.Diff(both("Group liqo.io:consumer:rome"), rights()); diff != "" {
		t.Fatal(diff)
	}
	// One of them is not wanted any more, and cannot go.
	w.desire(map[string]string{"shop": "shop-rome"})
	w.pass()
	for _, step := range []struct {
		sentence string
		change   func(*authv1beta1.TenantSpec)
		want     map[string][]string
	}{
		{"peered anew", func(s *authv1beta1.TenantSpec) {
			s.CSR = ca.CSR(key, identity.TenantSubject("rome").InPeering(peering))
		},
			both("Group liqo.io:peering:" + peering + ":consumer:rome")},
		{"revoked", func(s *authv1beta1.TenantSpec) { s.RevokedPeering = peering }, both()},
	} {
		var live authv1beta1.Tenant
		if err := w.Get(context.Background(), client.ObjectKey{Namespace: request.Namespace, Name: "rome"}, &live); err != nil {
			t.Fatal(err)
		}
		step.change(&live.Spec)
		if err := w.Client.Update(context.Background(), &live); err != nil {
			t.Fatal(err)
		}
		w.pass()
		if diff := cmp.Diff(step.want, rights()); diff != "" {
			t.Errorf("%s: %s", step.sentence, diff)
		}
	}
	// Without a Tenant nobody knows whose rights they would be.
	if err := w.Client.Delete(context.Background(), tenant("Active")); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if diff := cmp.Diff(both(), rights()); diff != "" {
		t.Error(diff)
	}
}
