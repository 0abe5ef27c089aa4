package gateway

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/netlink"
)

// administrators asks a gateway for a table, as one of all, for routes, as itself, and for what a gateway cannot do.
func (e *end) administrators(t *testing.T) {
	t.Helper()
	all := map[string]string{networkingv1beta1.FirewallCategoryLabel: networkingv1beta1.CategoryGateway, networkingv1beta1.FirewallSubcategoryLabel: networkingv1beta1.SubcategoryAllGateways}
	kind := metav1.TypeMeta{Kind: "FirewallConfiguration"}
	chain := networkingv1beta1.Chain{Name: "early", Type: "filter", Hook: "prerouting", Policy: "accept", Priority: -310, Rules: networkingv1beta1.RulesSet{
		FilterRules: []networkingv1beta1.FilterRule{{Action: networkingv1beta1.ActionDrop, Counter: true, Match: []networkingv1beta1.Match{
			{Op: "eq", Dev: &networkingv1beta1.MatchDev{Value: dataplane.TunnelDevice, Position: "in"}, IP: &networkingv1beta1.MatchIP{Value: "10.244.3.0/24", Position: "dst"}},
		}}},
	}}
	const every, nat, routes = group + "namespaces/liqo/firewallconfigurations/every", group + "namespaces/liqo/firewallconfigurations/nat", here + "routeconfigurations/milan"
	e.api.Put(t, every, &networkingv1beta1.FirewallConfiguration{
		TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "every", UID: "u-every", Generation: 1, Labels: all},
		Spec: networkingv1beta1.FirewallConfigurationSpec{Table: networkingv1beta1.Table{Name: "every", Family: "IPV4", Chains: []networkingv1beta1.Chain{chain}}},
	})
	e.api.Put(t, nat, &networkingv1beta1.FirewallConfiguration{
		TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "nat", UID: "u-nat", Generation: 1, Labels: all},
		Spec: networkingv1beta1.FirewallConfigurationSpec{Table: networkingv1beta1.Table{Name: "nat", Family: "IPV4", Chains: []networkingv1beta1.Chain{{Name: "in", Type: "nat", Hook: "prerouting", Policy: "accept"}}}},
	})
	device, to, priority := networkingv1beta1.DeviceName(dataplane.TunnelDevice), networkingv1beta1.CIDR("10.244.9.0/24"), int32(50)
	out := networkingv1beta1.DeviceName("eth0")
	e.api.Put(t, routes, &networkingv1beta1.RouteConfiguration{
		TypeMeta: metav1.TypeMeta{Kind: "RouteConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", UID: "u-routes", Generation: 1, Labels: map[string]string{
			networkingv1beta1.RouteCategoryLabel: networkingv1beta1.CategoryGateway, networkingv1beta1.RouteUniqueLabel: "milan",
		}},
		Spec: networkingv1beta1.RouteConfigurationSpec{Table: networkingv1beta1.RouteTable{Name: "milan", Rules: []networkingv1beta1.Rule{
			{Iif: &device, Dst: &to, Priority: &priority, Routes: []networkingv1beta1.Route{{Dst: to, Dev: &out}}},
		}}},
	})
	for path, reason := range map[string]string{every: networkingv1beta1.ReasonApplied, nat: networkingv1beta1.ReasonNotSupported, routes: networkingv1beta1.ReasonApplied} {
		e.says(t, path, reason)
	}
	kernel, err := netlink.Open(e.space)
	if err != nil {
		t.Fatal(err)
	}
	there, err := kernel.Read(dataplane.State{})
	if err != nil || !strings.Contains(there.String(), "table ip liqo/every {") || strings.Contains(there.String(), "liqo/nat") {
		t.Errorf("the kernel has %s, %v", there, err)
	}
	if err := kernel.Close(); err != nil {
		t.Error(err)
	}
	number := fmt.Sprint(dataplane.AdministratorTable("milan"))
	if got := within(t, e.space, "ip rule show; ip route show table "+number); !strings.Contains(got, "50:") || !strings.Contains(got, "lookup "+number) || !strings.Contains(got, "10.244.9.0/24 dev eth0") {
		t.Errorf("the rules and routes are %s", got)
	}
}

// says waits until an object says of the gateway what became of it.
func (e *end) says(t *testing.T, path, reason string) {
	t.Helper()
	eventually(t, func() string {
		// Both kinds have the same status.
		var object networkingv1beta1.RouteConfiguration
		e.api.Get(t, path, &object)
		all := object.Status.Conditions
		if len(all) == 1 && all[0].Host == "liqo-tenant-milan:gw-milan" && all[0].Reason == reason {
			return ""
		}
		return fmt.Sprintf("%s says %+v, want %s", path, all, reason)
	})
}
