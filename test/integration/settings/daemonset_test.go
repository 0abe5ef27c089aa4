package settings

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// nodesOf waits until a DaemonSet has a pod on each node that is meant for it, and returns these nodes.
func nodesOf(t *testing.T, set *appsv1.DaemonSet) []string {
	t.Helper()
	var nodes []string
	fixture.Await(t, fixture.Patience, "the pods of DaemonSet "+set.Name, func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return false, err.Error()
		}
		if err := env.Rome.Client.List(ctx, pods, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels)); err != nil {
			return false, err.Error()
		}
		nodes = nil
		for i := range pods.Items {
			if node := pods.Items[i].Spec.NodeName; node != "" {
				nodes = append(nodes, node)
			}
		}
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled > 0 && len(nodes) == int(s.DesiredNumberScheduled),
			fmt.Sprintf("%d of %d pods, on %v", len(nodes), s.DesiredNumberScheduled, nodes)
	})
	return nodes
}

// A DaemonSet that tolerates everything has a pod on the virtual node as well, unless the chart keeps it off; what it asks of
// its nodes besides stays.
func TestDaemonSetsStayOffVirtualNodes(t *testing.T) {
	w := env.Peered(t)
	create := func(change func(*corev1.PodSpec)) *appsv1.DaemonSet {
		set := fixture.DaemonSet(metav1.NamespaceDefault, fixture.Unique("agent"))
		change(&set.Spec.Template.Spec)
		fixture.Must(t, "creating a DaemonSet", env.Rome.Client.Create(t.Context(), set))
		t.Cleanup(func() {
			fixture.Must(t, "deleting a DaemonSet", env.Rome.Client.Delete(context.WithoutCancel(t.Context()), set, client.PropagationPolicy(metav1.DeletePropagationForeground)))
		})
		return set
	}
	before := nodesOf(t, create(func(*corev1.PodSpec) {}))
	if len(before) < 2 || !slices.Contains(before, w.Node) {
		t.Fatalf("without the value there are pods on %v, want them on all nodes", before)
	}
	fixture.KeepDaemonSetsOff(t, env.Rome)
	if after := nodesOf(t, create(func(*corev1.PodSpec) {})); len(after) != len(before)-1 || slices.Contains(after, w.Node) {
		t.Errorf("there are pods on %v, want them on all nodes but %s", after, w.Node)
	}
	mine := slices.DeleteFunc(slices.Clone(before), func(node string) bool { return node == w.Node })[0]
	wanted := func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{mine}}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1beta1.TypeLabel, Operator: corev1.NodeSelectorOpExists}}},
			}}}}
	}
	if some := nodesOf(t, create(wanted)); !slices.Equal(some, []string{mine}) {
		t.Errorf("there are pods on %v, want one on %s", some, mine)
	}
}
