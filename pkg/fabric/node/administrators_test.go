package node

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/test/fakeapi"
)

const wall = group + "namespaces/liqo/firewallconfigurations/wall"

// newWall is a table that drops what goes to a port, by version.
func newWall(generation int64, port string, family networkingv1beta1.TableFamily) *networkingv1beta1.FirewallConfiguration {
	return &networkingv1beta1.FirewallConfiguration{
		TypeMeta: metav1.TypeMeta{Kind: "FirewallConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "wall", UID: "u-wall", Generation: generation, Labels: map[string]string{
			networkingv1beta1.FirewallCategoryLabel: networkingv1beta1.CategoryFabric, networkingv1beta1.FirewallSubcategoryLabel: networkingv1beta1.SubcategoryAllNodes,
		}},
		Spec: networkingv1beta1.FirewallConfigurationSpec{Table: networkingv1beta1.Table{Name: "wall", Family: family, Chains: []networkingv1beta1.Chain{{
			Name: "in", Type: "filter", Hook: "input", Policy: "accept", Rules: networkingv1beta1.RulesSet{FilterRules: []networkingv1beta1.FilterRule{{
				Action: networkingv1beta1.ActionDrop,
				Match: []networkingv1beta1.Match{{
					Op: "eq", Proto: &networkingv1beta1.MatchProto{Value: "tcp"}, Port: &networkingv1beta1.MatchPort{Value: port, Position: "dst"},
				}},
			}}},
		}}}},
	}
}

// A node has what an administrator asks for, tells so once, keeps what it has when it is asked for something that it cannot do, and lets go of it
// when it is not asked any more.
func TestANodeHasWhatAnAdministratorAsksFor(t *testing.T) {
	namespace, api := host(t), fakeapi.NewREST()
	api.Put(t, self, newNode())
	api.Put(t, wall, newWall(1, "8001", "IPV4"))
	start(t, namespace, api)

	says := func(kind networkingv1beta1.HostConditionType, reason string, generation int64) {
		t.Helper()
		eventually(t, func() string {
			var object networkingv1beta1.FirewallConfiguration
			api.Get(t, wall, &object)
			all := object.Status.Conditions
			if len(all) == 1 && all[0].Host == "node-2" && all[0].Type == kind && all[0].Status == metav1.ConditionTrue && all[0].Reason == reason && all[0].ObservedGeneration == generation {
				return ""
			}
			return fmt.Sprintf("the FirewallConfiguration says %+v, want %s %s of generation %d", all, kind, reason, generation)
		})
	}
	const list = "nft list table ip liqo/wall 2>&1 || true"
	says(networkingv1beta1.HostApplied, networkingv1beta1.ReasonApplied, 1)
	if got := within(t, namespace, list); !strings.Contains(got, "8001") {
		t.Errorf("the table is %s", got)
	}
	api.Put(t, wall, newWall(2, "8002", "BRIDGE"))
	says(networkingv1beta1.HostError, networkingv1beta1.ReasonNotSupported, 2)
	if got := within(t, namespace, list); !strings.Contains(got, "8001") {
		t.Errorf("after something that cannot be done, the table is %s", got)
	}
	api.Put(t, wall, newWall(3, "8003", "IPV4"))
	says(networkingv1beta1.HostApplied, networkingv1beta1.ReasonApplied, 3)
	if got := within(t, namespace, list); !strings.Contains(got, "8003") || strings.Contains(got, "8001") {
		t.Errorf("the table is %s", got)
	}
	if writes := api.Applied(wall + "/status"); writes > 5 {
		t.Errorf("three things were told in %d writes", writes)
	}
	api.Delete(wall)
	eventually(t, func() string {
		if got := within(t, namespace, list); strings.Contains(got, "8003") {
			return got
		}
		return ""
	})
}
