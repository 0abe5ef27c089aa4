package placement

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// SelectorError says that a cluster selector cannot be parsed. Nothing may be concluded from such a selector: neither that it
// selects a cluster nor that it does not.
type SelectorError struct {
	// Err is what the parser says, with the path of the field.
	Err error
}

// Error tells the user what to change.
func (e *SelectorError) Error() string {
	return fmt.Sprintf("the clusterSelector of the NamespaceOffloading is not valid: %v", e.Err)
}

// Unwrap returns the parser's error.
func (e *SelectorError) Unwrap() error { return e.Err }

// Selects tells whether a cluster selector selects a virtual node with the given labels. An empty selector selects all. The
// error is a *SelectorError.
func Selects(selector corev1.NodeSelector, node string, labels map[string]string) (bool, error) {
	if len(selector.NodeSelectorTerms) == 0 {
		return true, nil
	}
	parsed, err := nodeaffinity.NewNodeSelector(&selector)
	if err != nil {
		return false, &SelectorError{Err: err}
	}
	return parsed.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: labels}}), nil
}

// NodeLabels returns the labels that a VirtualNode's Node gets. extra are those of the VkOptionsTemplate. The labels that make
// a node recognizable as the virtual node of its cluster cannot be overridden by the others.
func NodeLabels(vn *offloadingv1beta1.VirtualNode, extra map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, extra)
	maps.Copy(labels, vn.Spec.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname:               vn.Name,
		"kubernetes.io/role":               "agent",
		"type":                             "virtual-kubelet",
		corev1beta1.TypeLabel:              corev1beta1.VirtualNodeType,
		corev1beta1.RemoteClusterIDLabel:   string(vn.Spec.ClusterID),
		offloadingv1beta1.VirtualNodeLabel: vn.Name,
		// A virtual node has no network of its own that a load balancer could send packets to.
		corev1.LabelNodeExcludeBalancers:                          "true",
		"alpha.service-controller.kubernetes.io/exclude-balancer": "true",
	})
	return labels
}

// Candidate is a virtual node that a namespace may be offloaded to.
type Candidate struct {
	// Cluster that the node stands for.
	Cluster corev1beta1.ClusterID
	// Node is its name.
	Node string
	// Labels of the Node.
	Labels map[string]string
}

// SelectClusters tells for every cluster of the candidates whether the selector selects at least one of its nodes. The error
// is a *SelectorError, and then no cluster may be treated as not selected.
func SelectClusters(selector corev1.NodeSelector, candidates []Candidate) (map[corev1beta1.ClusterID]bool, error) {
	selected := map[corev1beta1.ClusterID]bool{}
	for _, c := range candidates {
		ok, err := Selects(selector, c.Node, c.Labels)
		if err != nil {
			return nil, err
		}
		selected[c.Cluster] = selected[c.Cluster] || ok
	}
	return selected, nil
}
