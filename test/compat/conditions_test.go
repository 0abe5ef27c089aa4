package compat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Each kind of v1 that has conditions is read by v1's rules. That our controllers write what these find to be well is tested where they are:
// by tests named TestProgramsOfV1….
func TestConditionsAreReadByTheRulesOfV1(t *testing.T) {
	type list = []corev1beta1.Condition
	says := func(conditions ...string) (all list) {
		for _, c := range conditions {
			kind, status, _ := strings.Cut(c, " ")
			all = append(all, corev1beta1.Condition{Type: kind, Status: status})
		}
		return all
	}
	slice := func(all list) client.Object {
		return &authv1beta1.ResourceSlice{Status: authv1beta1.ResourceSliceStatus{Conditions: all, Summary: says("Ready False")}}
	}
	peer := func(all, module list) client.Object {
		return &corev1beta1.ForeignCluster{Status: corev1beta1.ForeignClusterStatus{Conditions: all, Summary: says("Ready False"),
			Modules: corev1beta1.Modules{Authentication: corev1beta1.Module{Enabled: true, Conditions: module}}}}
	}
	node := func(all list) client.Object {
		return &offloadingv1beta1.VirtualNode{Status: offloadingv1beta1.VirtualNodeStatus{Conditions: all, Summary: says("Ready False")}}
	}
	configuration := func(kinds ...string) client.Object {
		c := &networkingv1beta1.Configuration{}
		for _, kind := range kinds {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		return c
	}
	host := func(kind networkingv1beta1.HostConditionType) []networkingv1beta1.HostCondition {
		return []networkingv1beta1.HostCondition{{Host: "node-1", Type: kind, Status: metav1.ConditionTrue}}
	}
	type reading struct {
		object client.Object
		want   []string
	}
	kinds := map[string]map[string]reading{
		"authentication.liqo.io/ResourceSlice": {
			"a granted one":            {slice(says("Authentication Accepted", "Resources Accepted")), nil},
			"a denied one":             {slice(says("Authentication Accepted", "Resources Denied")), []string{"Resources is Denied"}},
			"one of which is not said": {slice(nil), []string{"Authentication is not answered", "Resources is not answered"}},
			"one with a summary":       {slice(says("Authentication Accepted", "Resources Accepted", "Ready True")), []string{"Ready is True"}},
		},
		"core.liqo.io/ForeignCluster": {
			"one at work":                  {peer(says("APIServerStatus Established"), says("AuthTenantStatus Ready")), nil},
			"one whose module is not well": {peer(says("APIServerStatus Established"), says("AuthTenantStatus Pending")), []string{"AuthTenantStatus is Pending"}},
			"one with a summary":           {peer(says("APIServerStatus Established", "Ready True"), nil), []string{"Ready is True"}},
		},
		"offloading.liqo.io/VirtualNode": {
			"one at work":            {node(says("VirtualKubelet Running", "Node Running")), nil},
			"one that is not ready":  {node(says("VirtualKubelet Running", "Node NotReady")), []string{"Node is NotReady"}},
			"one that gets no pods":  {node(says("VirtualKubelet Running", "Node Running", "Cordoned True")), []string{"Cordoned is True"}},
			"one with held removals": {node(says("VirtualKubelet Running", "Node Running", "RemovalsHeld True")), []string{"RemovalsHeld is True"}},
		},
		"networking.liqo.io/Configuration": {
			"one that is mapped": {configuration("NetworkCIDRsConfigured", "Ready"), nil},
			"one that is not":    {configuration("Ready"), []string{"NetworkCIDRsConfigured is not True"}},
		},
		"networking.liqo.io/FirewallConfiguration": {
			"one that is applied": {&networkingv1beta1.FirewallConfiguration{Status: networkingv1beta1.FirewallConfigurationStatus{Conditions: host("Applied")}}, nil},
			"one that is not":     {&networkingv1beta1.FirewallConfiguration{Status: networkingv1beta1.FirewallConfigurationStatus{Conditions: host("Error")}}, []string{"Error of node-1"}},
		},
		"networking.liqo.io/RouteConfiguration": {
			"one that is applied": {&networkingv1beta1.RouteConfiguration{Status: networkingv1beta1.RouteConfigurationStatus{Conditions: host("Applied")}}, nil},
			"one that is not":     {&networkingv1beta1.RouteConfiguration{Status: networkingv1beta1.RouteConfigurationStatus{Conditions: host("Error")}}, []string{"Error of node-1"}},
		},
	}
	for kind, readings := range kinds {
		for sentence, r := range readings {
			t.Run(kind+"/"+sentence, func(t *testing.T) {
				if diff := cmp.Diff(r.want, Faults(r.object)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
	for _, row := range rows(t, "kinds.tsv", 5) {
		if row[2] == "status.conditions" && kinds[row[0]] == nil {
			t.Errorf("%s has conditions in v1, and is read by no rule", row[0])
		}
	}
}
