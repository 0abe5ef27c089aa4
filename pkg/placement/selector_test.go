package placement

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func requirement(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

func term(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: requirements}
}

func selector(terms ...corev1.NodeSelectorTerm) corev1.NodeSelector {
	return corev1.NodeSelector{NodeSelectorTerms: terms}
}

func TestSelectClusters(t *testing.T) {
	candidates := []Candidate{
		{Cluster: "milan", Node: "milan", Labels: map[string]string{"region": "north", "gpu": "yes"}},
		{Cluster: "milan", Node: "milan-2", Labels: map[string]string{"region": "north"}},
		{Cluster: "naples", Node: "naples", Labels: map[string]string{"region": "south"}},
	}
	for name, tc := range map[string]struct {
		selector corev1.NodeSelector
		want     map[corev1beta1.ClusterID]bool
		invalid  bool
	}{
		"an empty selector selects all":               {selector(), map[corev1beta1.ClusterID]bool{"milan": true, "naples": true}, false},
		"a label selects its cluster":                 {selector(term(requirement("region", corev1.NodeSelectorOpIn, "south"))), map[corev1beta1.ClusterID]bool{"milan": false, "naples": true}, false},
		"one node is enough to select a cluster":      {selector(term(requirement("gpu", corev1.NodeSelectorOpExists))), map[corev1beta1.ClusterID]bool{"milan": true, "naples": false}, false},
		"terms are alternatives":                      {selector(term(requirement("gpu", corev1.NodeSelectorOpExists)), term(requirement("region", corev1.NodeSelectorOpIn, "south"))), map[corev1beta1.ClusterID]bool{"milan": true, "naples": true}, false},
		"requirements of a term hold together":        {selector(term(requirement("gpu", corev1.NodeSelectorOpExists), requirement("region", corev1.NodeSelectorOpIn, "south"))), map[corev1beta1.ClusterID]bool{"milan": false, "naples": false}, false},
		"an empty term selects nothing":               {selector(term()), map[corev1beta1.ClusterID]bool{"milan": false, "naples": false}, false},
		"In without values cannot be parsed":          {selector(term(requirement("gpu", corev1.NodeSelectorOpIn))), nil, true},
		"an unknown operator cannot be parsed":        {selector(term(requirement("gpu", "Like", "x"))), nil, true},
		"a selector by the node's name selects by it": {selector(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", corev1.NodeSelectorOpIn, "naples")}}), map[corev1beta1.ClusterID]bool{"milan": false, "naples": true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SelectClusters(tc.selector, candidates)
			var selectorError *SelectorError
			if errors.As(err, &selectorError) != tc.invalid {
				t.Fatalf("error %v, want a SelectorError: %v", err, tc.invalid)
			}
			if tc.invalid && (selectorError.Unwrap() == nil || selectorError.Error() == "") {
				t.Error("the error does not say what is wrong")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNodeLabels(t *testing.T) {
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Name: "milan-gpu"}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan",
		Labels: map[string]string{"region": "north", corev1beta1.RemoteClusterIDLabel: "forged", corev1beta1.TypeLabel: "physical"}}}
	want := map[string]string{
		"region": "north", "team": "ml",
		"kubernetes.io/hostname": "milan-gpu", "kubernetes.io/role": "agent", "type": "virtual-kubelet",
		"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan", "liqo.io/virtual-node": "milan-gpu",
		"node.kubernetes.io/exclude-from-external-load-balancers": "true", "alpha.service-controller.kubernetes.io/exclude-balancer": "true",
	}
	if diff := cmp.Diff(want, NodeLabels(vn, map[string]string{"team": "ml", "region": "overridden"})); diff != "" {
		t.Error(diff)
	}
}
