package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/placement"
)

// required is the node affinity with these terms.
func required(terms ...corev1.NodeSelectorTerm) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// matching is the term of nodes with these labels, and other requirements.
func matching(more []corev1.NodeSelectorRequirement, labels ...string) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for _, label := range labels {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpExists})
	}
	term.MatchExpressions = append(term.MatchExpressions, more...)
	return term
}

// By default (virtualKubelet.virtualNode.keepDaemonSetsOff) every way to a node leads past virtual ones, and what a DaemonSet wants of
// its nodes besides stays as it is.
func TestDaemonSetsAreKeptOffVirtualNodes(t *testing.T) {
	policy := compiled(t, valueSets["default"], "daemonsets.yaml")
	apply := func(set *appsv1.DaemonSet) *appsv1.DaemonSet {
		return policy.apply(t, set, nil, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), appsv1.SchemeGroupVersion.WithResource("daemonsets")).(*appsv1.DaemonSet)
	}
	apart := []corev1.NodeSelectorRequirement{{Key: corev1beta1.TypeLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{corev1beta1.VirtualNodeType}}}
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}}
	byNameApart := byName
	byNameApart.MatchExpressions = apart
	of := func(nodes *corev1.NodeAffinity) *corev1.Affinity { return &corev1.Affinity{NodeAffinity: nodes} }
	preferring := func(nodes *corev1.NodeAffinity) *corev1.Affinity {
		nodes.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: matching(nil, "fast")}}
		return of(nodes)
	}
	for name, tc := range map[string]struct{ has, want *corev1.Affinity }{
		"no affinity":    {nil, of(required(matching(apart)))},
		"empty affinity": {&corev1.Affinity{}, of(required(matching(apart)))},
		"affinity to pods": {&corev1.Affinity{PodAffinity: &corev1.PodAffinity{}},
			&corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, NodeAffinity: required(matching(apart))}},
		"preferred nodes": {preferring(&corev1.NodeAffinity{}), preferring(required(matching(apart)))},
		"a term":          {of(required(matching(nil, "disk"))), of(required(matching(apart, "disk")))},
		"several terms": {of(required(matching(nil, "disk"), matching(nil, "gpu", "fast"), byName)),
			of(required(matching(apart, "disk"), matching(apart, "gpu", "fast"), byNameApart))},
		"a term that has it and one that has not": {of(required(matching(apart, "disk"), matching(nil, "gpu"))),
			of(required(matching(apart, "disk"), matching(apart, "gpu")))},
		"a term that selects nothing": {of(required(corev1.NodeSelectorTerm{}, matching(nil, "gpu"))),
			of(required(corev1.NodeSelectorTerm{}, matching(apart, "gpu")))},
		"only virtual nodes": {of(required(matching([]corev1.NodeSelectorRequirement{{Key: corev1beta1.TypeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{corev1beta1.VirtualNodeType}}}))),
			of(required(matching(append([]corev1.NodeSelectorRequirement{{Key: corev1beta1.TypeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{corev1beta1.VirtualNodeType}}}, apart...))))},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: tc.has}}}}
			patched := apply(set)
			if diff := cmp.Diff(tc.want, patched.Spec.Template.Spec.Affinity); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.want, apply(patched).Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("once more: %s", diff)
			}
			// The webhook that older API servers ask leaves out terms that select nothing beside others, and comes to the same.
			asked := corev1.PodSpec{Affinity: tc.has.DeepCopy()}
			changed := placement.KeepOffVirtualNodes(&asked)
			if diff := cmp.Diff(normal(&corev1.Pod{Spec: corev1.PodSpec{Affinity: tc.want}}).Spec, normal(&corev1.Pod{Spec: asked}).Spec); diff != "" || !changed {
				t.Errorf("the webhook, which changed something: %v: %s", changed, diff)
			}
			if once := asked.DeepCopy(); placement.KeepOffVirtualNodes(&asked) || cmp.Diff(*once, asked) != "" {
				t.Error("the webhook changes it once more")
			}
		})
	}
}
