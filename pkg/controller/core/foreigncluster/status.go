package foreigncluster

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	var authentication, offloading, peering, revoked []observation
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
		revoked = append(revoked, observation{corev1beta1.CutOffCondition, string(metav1.ConditionTrue), corev1beta1.ReasonCutOff, facts.CutOff})
	}
	networking := facts.Network.observations(facts.CutOff)
	module(&status.Modules.Networking, networking, now)
	module(&status.Modules.Authentication, authentication, now)
	module(&status.Modules.Offloading, offloading, now)
	conditions.Replace(&status.Conditions, listed(peering, 0), now)
	all := slices.Concat(peering, revoked, authentication, networking, offloading)
	conditions.Replace(&status.Summary, append(listed(revoked, 0), listed([]observation{ready(all)}, generation)...), now)
	return status
}

// module sets the conditions of one module, and removes those of parts that are not there any more.
func module(m *corev1beta1.Module, observations []observation, now time.Time) {
	m.Enabled = len(observations) > 0
	conditions.Replace(&m.Conditions, listed(observations, 0), now)
}

// listed are observations as conditions, of a generation.
func listed(observations []observation, generation int64) []corev1beta1.Condition {
	list := make([]corev1beta1.Condition, 0, len(observations)+1)
	for _, o := range observations {
		list = append(list, corev1beta1.Condition{Type: o.kind, Status: o.status, Reason: o.reason, Message: o.message, ObservedGeneration: generation})
	}
	return list
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
