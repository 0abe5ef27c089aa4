package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// PodRules are what decides about a new pod of an offloaded namespace.
type PodRules struct {
	// Strategy says where the pods of the namespace may run.
	Strategy offloadingv1beta1.PodOffloadingStrategyType
	// Selector selects the clusters of the namespace.
	Selector corev1.NodeSelector
	// RuntimeClass is the one by which a pod asks for a virtual node itself; empty means the default one.
	RuntimeClass string
	// Never are the fields of the pod that no provider takes.
	Never []string
}

// MutatePod gives a new pod what the scheduler needs to treat it as its namespace's rules say, and tells whether that changed
// anything. With strategy Local, and for pods that ask for a virtual node by RuntimeClass (which brings its own scheduling
// rules), nothing is changed. A pod that no provider takes is kept off virtual nodes if it may run elsewhere and does not ask for one,
// with a note of the fields; else the virtual kubelet says why it does not run. Applied twice it changes nothing the second time.
func MutatePod(pod *corev1.Pod, rules PodRules) bool {
	if rules.Strategy == offloadingv1beta1.LocalPodOffloadingStrategyType {
		return false
	}
	if rules.byRuntimeClass(pod) {
		return false
	}
	if len(rules.Never) > 0 && rules.Strategy != offloadingv1beta1.RemotePodOffloadingStrategyType &&
		pod.Spec.NodeSelector[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
		noted := note(pod, strings.Join(rules.Never, ", "))
		return KeepOffVirtualNodes(&pod.Spec) || noted
	}
	tolerated := addToleration(&pod.Spec)
	return requireTerms(&pod.Spec, podTerms(rules)) || tolerated
}

// note says at a pod why it is kept at home, and tells whether that changed anything.
func note(pod *corev1.Pod, fields string) bool {
	if pod.Annotations[offloadingv1beta1.KeptAtHomeAnnotation] == fields {
		return false
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[offloadingv1beta1.KeptAtHomeAnnotation] = fields
	return true
}

// VirtualNodeToleration lets a pod run on virtual nodes.
func VirtualNodeToleration() corev1.Toleration {
	return corev1.Toleration{Key: offloadingv1beta1.VirtualNodeTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
}

func addToleration(spec *corev1.PodSpec) bool {
	want := VirtualNodeToleration()
	if slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, want) }) {
		return false
	}
	spec.Tolerations = append(spec.Tolerations, want)
	return true
}

// podTerms are the node selector terms that the rules ask for; none means any node.
func podTerms(rules PodRules) []corev1.NodeSelectorTerm {
	virtual := typeRequirement(corev1.NodeSelectorOpIn)
	physical := typeRequirement(corev1.NodeSelectorOpNotIn)
	if rules.Strategy == offloadingv1beta1.RemotePodOffloadingStrategyType {
		if len(rules.Selector.NodeSelectorTerms) == 0 {
			return []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{virtual}}}
		}
		var terms []corev1.NodeSelectorTerm
		for i := range rules.Selector.NodeSelectorTerms {
			term := rules.Selector.NodeSelectorTerms[i].DeepCopy()
			if emptyTerm(*term) {
				continue
			}
			if !contains(term.MatchExpressions, virtual) {
				term.MatchExpressions = append(term.MatchExpressions, virtual)
			}
			terms = append(terms, *term)
		}
		return orNothing(terms)
	}
	if len(rules.Selector.NodeSelectorTerms) == 0 {
		return nil
	}
	terms := rules.Selector.DeepCopy().NodeSelectorTerms
	return append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{physical}})
}

func typeRequirement(operator corev1.NodeSelectorOperator) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: corev1beta1.TypeLabel, Operator: operator, Values: []string{corev1beta1.VirtualNodeType}}
}

// requireTerms restricts a pod to the nodes that match one of the terms, besides what the pod requires itself.
func requireTerms(spec *corev1.PodSpec, terms []corev1.NodeSelectorTerm) bool {
	if len(terms) == 0 {
		return false
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	own := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if own == nil || len(own.NodeSelectorTerms) == 0 {
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
		return true
	}
	if implied(own.NodeSelectorTerms, terms) {
		return false
	}
	own.NodeSelectorTerms = crossProduct(own.NodeSelectorTerms, terms)
	return true
}

// crossProduct returns the terms that match exactly the nodes that both operands match: terms are alternatives, the
// requirements in one term must all hold.
func crossProduct(a, b []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	var product []corev1.NodeSelectorTerm
	for _, left := range a {
		for _, right := range b {
			if emptyTerm(left) || emptyTerm(right) {
				continue
			}
			term := left.DeepCopy()
			for _, r := range right.MatchExpressions {
				if !contains(term.MatchExpressions, r) {
					term.MatchExpressions = append(term.MatchExpressions, *r.DeepCopy())
				}
			}
			for _, r := range right.MatchFields {
				if !contains(term.MatchFields, r) {
					term.MatchFields = append(term.MatchFields, *r.DeepCopy())
				}
			}
			product = append(product, *term)
		}
	}
	return orNothing(product)
}

// orNothing replaces an empty list of terms, which Kubernetes refuses, with the term that matches no node.
func orNothing(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	if len(terms) == 0 {
		return []corev1.NodeSelectorTerm{{}}
	}
	return terms
}

// emptyTerm tells whether a term is the one that matches no node.
func emptyTerm(term corev1.NodeSelectorTerm) bool {
	return len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0
}

// implied tells whether every node that matches own also matches want, as far as equal requirements show it.
func implied(own, want []corev1.NodeSelectorTerm) bool {
	for _, o := range own {
		if emptyTerm(o) {
			continue
		}
		if !slices.ContainsFunc(want, func(w corev1.NodeSelectorTerm) bool { return !emptyTerm(w) && includes(o, w) }) {
			return false
		}
	}
	return true
}

func includes(term, part corev1.NodeSelectorTerm) bool {
	for _, r := range part.MatchExpressions {
		if !contains(term.MatchExpressions, r) {
			return false
		}
	}
	for _, r := range part.MatchFields {
		if !contains(term.MatchFields, r) {
			return false
		}
	}
	return true
}

func contains(list []corev1.NodeSelectorRequirement, r corev1.NodeSelectorRequirement) bool {
	return slices.ContainsFunc(list, func(l corev1.NodeSelectorRequirement) bool { return equality.Semantic.DeepEqual(l, r) })
}
