package placement_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
)

func TestViolates(t *testing.T) {
	local, remote, both := offloadingv1beta1.LocalPodOffloadingStrategyType, offloadingv1beta1.RemotePodOffloadingStrategyType, offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType
	physical := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rome-1"}}
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, "region": "italy"}}}
	in := func(operator corev1.NodeSelectorOperator, region string) corev1.NodeSelector {
		return corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "region", Operator: operator, Values: []string{region}}}}}}
	}
	france, broken := in(corev1.NodeSelectorOpIn, "france"), in("Near", "france")
	cases := map[string]struct {
		node   *corev1.Node
		rules  placement.PodRules
		change func(*corev1.Pod)
		want   bool
	}{
		"Local, at home":                      {node: physical, rules: placement.PodRules{Strategy: local}},
		"Local, away":                         {node: virtual, rules: placement.PodRules{Strategy: local}, want: true},
		"Remote, at home":                     {node: physical, rules: placement.PodRules{Strategy: remote}, want: true},
		"Remote, away":                        {node: virtual, rules: placement.PodRules{Strategy: remote}},
		"Remote, away where not selected":     {node: virtual, rules: placement.PodRules{Strategy: remote, Selector: france}, want: true},
		"both, at home":                       {node: physical, rules: placement.PodRules{Strategy: both, Selector: france}},
		"both, away":                          {node: virtual, rules: placement.PodRules{Strategy: both, Selector: in(corev1.NodeSelectorOpIn, "italy")}},
		"both, away where not selected":       {node: virtual, rules: placement.PodRules{Strategy: both, Selector: france}, want: true},
		"it asks for a virtual node itself":   {node: virtual, rules: placement.PodRules{Strategy: local}, change: func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("liqo") }},
		"it asks by another name":             {node: virtual, rules: placement.PodRules{Strategy: local, RuntimeClass: "far"}, change: func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("far") }},
		"another RuntimeClass asks nothing":   {node: virtual, rules: placement.PodRules{Strategy: local}, change: func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("gvisor") }, want: true},
		"it succeeded":                        {node: virtual, rules: placement.PodRules{Strategy: local}, change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
		"it failed":                           {node: virtual, rules: placement.PodRules{Strategy: local}, change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"it has no node yet":                  {node: virtual, rules: placement.PodRules{Strategy: local}, change: func(p *corev1.Pod) { p.Spec.NodeName = "" }},
		"it is a kubelet's own":               {node: physical, rules: placement.PodRules{Strategy: remote}, change: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }},
		"it is a DaemonSet's":                 {node: physical, rules: placement.PodRules{Strategy: remote}, change: func(p *corev1.Pod) { p.OwnerReferences = controlledBy("DaemonSet") }},
		"it is a ReplicaSet's":                {node: physical, rules: placement.PodRules{Strategy: remote}, change: func(p *corev1.Pod) { p.OwnerReferences = controlledBy("ReplicaSet") }, want: true},
		"nothing follows from a bad selector": {node: physical, rules: placement.PodRules{Strategy: both, Selector: broken}},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: test.node.Name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			if test.change != nil {
				test.change(pod)
			}
			if got, err := placement.Violates(pod, test.node, test.rules); got != test.want || err != nil {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
	t.Run("a selector that cannot be parsed", func(t *testing.T) {
		var selector *placement.SelectorError
		got, err := placement.Violates(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "milan"}}, virtual, placement.PodRules{Strategy: both, Selector: broken})
		if got || !errors.As(err, &selector) {
			t.Errorf("got %t, %v", got, err)
		}
	})
}

func controlledBy(kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: ptr.To(true)}}
}
