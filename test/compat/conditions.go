package compat

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Faults are what programs of Liqo v1 find wrong with an object by its conditions. Of the lists that v1 made itself they take each condition for
// a fault that has not the status hoped for, whatever its type; in a list of standard conditions they look for the types that they know.
func Faults(object client.Object) []string {
	switch o := object.(type) {
	case *authv1beta1.ResourceSlice:
		faults := others(o.Status.Conditions, authv1beta1.Accepted)
		for _, asked := range []string{authv1beta1.AuthenticationCondition, authv1beta1.ResourcesCondition} {
			if !slices.ContainsFunc(o.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == asked }) {
				faults = append(faults, asked+" is not answered")
			}
		}
		return faults
	case *corev1beta1.ForeignCluster:
		faults := others(o.Status.Conditions, corev1beta1.StatusEstablished, corev1beta1.StatusReady)
		for _, module := range []corev1beta1.Module{o.Status.Modules.Authentication, o.Status.Modules.Networking, o.Status.Modules.Offloading} {
			if module.Enabled {
				faults = append(faults, others(module.Conditions, corev1beta1.StatusEstablished, corev1beta1.StatusReady)...)
			}
		}
		return faults
	case *offloadingv1beta1.VirtualNode:
		return others(o.Status.Conditions, offloadingv1beta1.StatusRunning)
	case *networkingv1beta1.Configuration:
		if !meta.IsStatusConditionTrue(o.Status.Conditions, networkingv1beta1.NetworkCIDRsConfigured) {
			return []string{networkingv1beta1.NetworkCIDRsConfigured + " is not True"}
		}
	case *networkingv1beta1.FirewallConfiguration:
		return hosts(o.Status.Conditions)
	case *networkingv1beta1.RouteConfiguration:
		return hosts(o.Status.Conditions)
	}
	return nil
}

// others are the conditions that have none of the statuses hoped for.
func others(list []corev1beta1.Condition, hopedFor ...string) (faults []string) {
	for _, c := range list {
		if !slices.Contains(hopedFor, c.Status) {
			faults = append(faults, fmt.Sprintf("%s is %s", c.Type, c.Status))
		}
	}
	return faults
}

// hosts are those at which rules were not applied.
func hosts(list []networkingv1beta1.HostCondition) (faults []string) {
	for _, c := range list {
		if c.Type != networkingv1beta1.HostApplied {
			faults = append(faults, fmt.Sprintf("%s of %s", c.Type, c.Host))
		}
	}
	return faults
}
