package foreigncluster

import (
	"slices"
	"strings"
	"time"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// Observe returns the status of a ForeignCluster: the old one with what the facts say now. Conditions keep their times as long
// as their statuses stay.
func Observe(old corev1beta1.ForeignClusterStatus, generation int64, facts Facts, now time.Time) corev1beta1.ForeignClusterStatus {
	facts.sort()
	status := *old.DeepCopy()
	status.ObservedGeneration = generation
	status.Role = facts.role()
	status.TenantNamespace.Local = facts.Namespace
	status.APIServerURL, status.ForeignProxyURL, status.TenantNamespace.Remote = facts.apiEndpoint()

	var authentication, offloading, peering []observation
	if len(facts.Tenants) > 0 {
		authentication = append(authentication, facts.tenant())
	}
	if len(facts.Identities) > 0 {
		authentication = append(authentication, facts.identity(old.Modules.Authentication.Conditions))
		peering = append(peering, facts.api(old.Conditions))
	}
	authentication = append(authentication, facts.slices()...)
	if len(facts.VirtualNodes) > 0 {
		offloading = append(offloading, facts.kubelets(), facts.nodes())
	}
	if facts.CutOff != "" {
		peering = append(peering, observation{corev1beta1.CutOffCondition, corev1beta1.StatusError, corev1beta1.ReasonCutOff, facts.CutOff})
	}
	networking := facts.Network.observations(facts.CutOff)
	module(&status.Modules.Networking, networking, now)
	module(&status.Modules.Authentication, authentication, now)
	module(&status.Modules.Offloading, offloading, now)
	keepOnly(&status.Conditions, append(peering, observation{kind: corev1beta1.ConditionReady}))
	for _, o := range peering {
		conditions.Set(&status.Conditions, condition(o, 0), now)
	}
	all := slices.Concat(peering, authentication, networking, offloading)
	conditions.Set(&status.Conditions, condition(ready(all), generation), now)
	return status
}

// module sets the conditions of one module, and removes those of parts that are not there any more.
func module(m *corev1beta1.Module, observations []observation, now time.Time) {
	m.Enabled = len(observations) > 0
	keepOnly(&m.Conditions, observations)
	for _, o := range observations {
		conditions.Set(&m.Conditions, condition(o, 0), now)
	}
}

func keepOnly(list *[]corev1beta1.Condition, observations []observation) {
	wanted := map[string]bool{}
	for _, o := range observations {
		wanted[o.kind] = true
	}
	var gone []string
	for _, c := range *list {
		if !wanted[c.Type] {
			gone = append(gone, c.Type)
		}
	}
	for _, conditionType := range gone {
		conditions.Remove(list, conditionType)
	}
	if len(*list) == 0 {
		*list = nil
	}
}

func condition(o observation, generation int64) corev1beta1.Condition {
	return corev1beta1.Condition{Type: o.kind, Status: o.status, Reason: o.reason, Message: o.message, ObservedGeneration: generation}
}

// ready sums all observations up.
func ready(all []observation) observation {
	var problems []string
	for _, o := range all {
		if !o.good() {
			problems = append(problems, o.message)
		}
	}
	switch {
	case len(all) == 0:
		return observation{corev1beta1.ConditionReady, "Unknown", corev1beta1.ReasonModuleNotReady, "nothing of a peering exists yet"}
	case len(problems) > 0:
		return observation{corev1beta1.ConditionReady, "False", corev1beta1.ReasonModuleNotReady, strings.Join(problems, "; ")}
	default:
		return observation{corev1beta1.ConditionReady, "True", corev1beta1.ReasonPeeringReady, "everything of the peering works"}
	}
}
