package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var (
	isVirtual   = requirement("liqo.io/type", corev1.NodeSelectorOpIn, "virtual-node")
	notVirtual  = requirement("liqo.io/type", corev1.NodeSelectorOpNotIn, "virtual-node")
	inNorth     = requirement("region", corev1.NodeSelectorOpIn, "north")
	inSouth     = requirement("region", corev1.NodeSelectorOpIn, "south")
	withGPU     = requirement("gpu", corev1.NodeSelectorOpExists)
	tolerations = []corev1.Toleration{{Key: "virtual-node.liqo.io/not-allowed", Operator: "Exists", Effect: "NoExecute"}}
)

func podWith(terms ...corev1.NodeSelectorTerm) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Affinity: affinity(terms...)}}
}

func affinity(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	if len(terms) == 0 {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

func TestMutatePod(t *testing.T) {
	const (
		local  = offloadingv1beta1.LocalPodOffloadingStrategyType
		remote = offloadingv1beta1.RemotePodOffloadingStrategyType
		both   = offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType
	)
	for name, tc := range map[string]struct {
		rules   PodRules
		pod     *corev1.Pod
		want    corev1.PodSpec
		changed bool
	}{
		"Local changes nothing": {PodRules{Strategy: local, Selector: selector(term(inNorth))}, podWith(term(withGPU)), podWith(term(withGPU)).Spec, false},
		"a pod with our RuntimeClass is left to it": {PodRules{Strategy: remote}, &corev1.Pod{Spec: corev1.PodSpec{RuntimeClassName: ptr.To("liqo")}},
			corev1.PodSpec{RuntimeClassName: ptr.To("liqo")}, false},
		"the RuntimeClass may have another name": {PodRules{Strategy: remote, RuntimeClass: "far"}, &corev1.Pod{Spec: corev1.PodSpec{RuntimeClassName: ptr.To("far")}},
			corev1.PodSpec{RuntimeClassName: ptr.To("far")}, false},
		"another RuntimeClass does not matter": {PodRules{Strategy: both}, &corev1.Pod{Spec: corev1.PodSpec{RuntimeClassName: ptr.To("gvisor")}},
			corev1.PodSpec{RuntimeClassName: ptr.To("gvisor"), Tolerations: tolerations}, true},
		"Remote without selector":                            {PodRules{Strategy: remote}, podWith(), corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term(isVirtual))}, true},
		"Remote with selector":                               {PodRules{Strategy: remote, Selector: selector(term(inNorth), term(inSouth))}, podWith(), corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term(inNorth, isVirtual), term(inSouth, isVirtual))}, true},
		"Remote with a selector of nothing selects nothing":  {PodRules{Strategy: remote, Selector: selector(term())}, podWith(), corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term())}, true},
		"LocalAndRemote without selector only tolerates":     {PodRules{Strategy: both}, podWith(), corev1.PodSpec{Tolerations: tolerations}, true},
		"no strategy is LocalAndRemote":                      {PodRules{}, podWith(), corev1.PodSpec{Tolerations: tolerations}, true},
		"LocalAndRemote with selector lets stay at home":     {PodRules{Strategy: both, Selector: selector(term(inNorth))}, podWith(), corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term(inNorth), term(notVirtual))}, true},
		"the pod's own terms are multiplied with the rules'": {PodRules{Strategy: both, Selector: selector(term(inNorth))}, podWith(term(withGPU), term(inSouth)), corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term(withGPU, inNorth), term(withGPU, notVirtual), term(inSouth, inNorth), term(inSouth, notVirtual))}, true},
		"a pod that matches no node still matches none":      {PodRules{Strategy: remote}, podWith(term()), corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term())}, true},
		"fields are multiplied too": {PodRules{Strategy: remote, Selector: selector(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", "In", "milan")}})},
			podWith(term(withGPU)), corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{withGPU, isVirtual}, MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", "In", "milan")}})}, true},
		"a pod that has everything already is not changed": {PodRules{Strategy: remote}, &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term(withGPU, isVirtual))}},
			corev1.PodSpec{Tolerations: tolerations, Affinity: affinity(term(withGPU, isVirtual))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if changed := MutatePod(tc.pod, tc.rules); changed != tc.changed {
				t.Errorf("changed = %v, want %v", changed, tc.changed)
			}
			if diff := cmp.Diff(tc.want, tc.pod.Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func drawTerm() *rapid.Generator[corev1.NodeSelectorTerm] {
	return rapid.Custom(func(t *rapid.T) corev1.NodeSelectorTerm {
		list := rapid.SliceOfN(rapid.SampledFrom([]corev1.NodeSelectorRequirement{inNorth, inSouth, withGPU, isVirtual, notVirtual}), 0, 3).Draw(t, "expressions")
		fields := rapid.SliceOfN(rapid.Just(requirement("metadata.name", "In", "one")), 0, 1).Draw(t, "fields")
		return corev1.NodeSelectorTerm{MatchExpressions: list, MatchFields: fields}
	})
}

// A pod lands where both the pod and the rules allow it, and nowhere else; a second pass changes nothing.
func TestMutatePodMeansBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.SliceOfN(drawTerm(), 0, 3).Draw(t, "own")
		rules := PodRules{Selector: selector(rapid.SliceOfN(drawTerm(), 0, 3).Draw(t, "selector")...),
			Strategy: rapid.SampledFrom([]offloadingv1beta1.PodOffloadingStrategyType{"Local", "Remote", "LocalAndRemote"}).Draw(t, "strategy")}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "node"), Labels: map[string]string{}}}
		for key, values := range map[string][]string{"region": {"", "north", "south"}, "gpu": {"", "yes"}, "liqo.io/type": {"", "virtual-node"}} {
			if value := rapid.SampledFrom(values).Draw(t, key); value != "" {
				node.Labels[key] = value
			}
		}
		pod := podWith(own...)
		before := matches(t, pod, node)
		MutatePod(pod, rules)
		virtual := node.Labels["liqo.io/type"] == "virtual-node"
		selected, err := Selects(rules.Selector, node.Name, node.Labels)
		if err != nil {
			t.Fatal(err)
		}
		allowed := true
		switch rules.Strategy {
		case offloadingv1beta1.RemotePodOffloadingStrategyType:
			allowed = virtual && selected
		case offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType:
			allowed = selected || !virtual
		}
		if got, want := matches(t, pod, node), before && allowed; got != want {
			t.Fatalf("matches = %v, want %v: %+v", got, want, pod.Spec.Affinity)
		}
		again := pod.DeepCopy()
		MutatePod(again, rules)
		if matches(t, again, node) != matches(t, pod, node) || len(again.Spec.Tolerations) != len(pod.Spec.Tolerations) {
			t.Fatal("a second pass means something else")
		}
	})
}

func matches(t *rapid.T, pod *corev1.Pod, node *corev1.Node) bool {
	ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestPodsThatNoProviderTakes(t *testing.T) {
	home := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{typeRequirement(corev1.NodeSelectorOpNotIn)}}}
	north := corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "region", Operator: "In", Values: []string{"north"}}}}}}
	for name, tc := range map[string]struct {
		strategy offloadingv1beta1.PodOffloadingStrategyType
		selector corev1.NodeSelector
		asks     bool
		kept     bool
	}{
		"may run at home":                       {offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, corev1.NodeSelector{}, false, true},
		"whatever clusters are selected":        {offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, north, false, true},
		"asks for a virtual node":               {offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, corev1.NodeSelector{}, true, false},
		"may run on virtual nodes only":         {offloadingv1beta1.RemotePodOffloadingStrategyType, corev1.NodeSelector{}, false, false},
		"of a namespace whose pods stay anyway": {offloadingv1beta1.LocalPodOffloadingStrategyType, corev1.NodeSelector{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if tc.asks {
				pod.Spec.NodeSelector = map[string]string{"liqo.io/type": "virtual-node"}
			}
			rules := PodRules{Strategy: tc.strategy, Selector: tc.selector, Never: []string{"ports.hostPort", "volumes.hostPath"}}
			MutatePod(pod, rules)
			if MutatePod(pod, rules) {
				t.Error("it is changed a second time")
			}
			if got := pod.Annotations[offloadingv1beta1.KeptAtHomeAnnotation]; (got == "ports.hostPort, volumes.hostPath") != tc.kept {
				t.Errorf("note %q", got)
			}
			if !tc.kept {
				return
			}
			if diff := cmp.Diff(home, pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); diff != "" || len(pod.Spec.Tolerations) > 0 {
				t.Errorf("tolerations %v, terms %s", pod.Spec.Tolerations, diff)
			}
		})
	}
}
