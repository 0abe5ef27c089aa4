package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func TestBound(t *testing.T) {
	nodes := resources("cpu", "12", "memory", "64Gi", "pods", "330")
	for name, tc := range map[string]struct {
		set, wanted, held, others, want corev1.ResourceList
	}{
		"a modest wish is granted":                       {wanted: resources("cpu", "4", "pods", "10"), want: resources("cpu", "4", "pods", "10")},
		"no more than there is":                          {wanted: resources("cpu", "1000000", "memory", "1Pi", "pods", "1000000"), want: resources("cpu", "12", "memory", "64Gi", "pods", "330")},
		"what no node has":                               {wanted: resources("nvidia.com/gpu", "1000000", "pods", "1"), want: resources("nvidia.com/gpu", "0", "pods", "1")},
		"others hold some of it":                         {wanted: resources("cpu", "1000000", "pods", "1"), others: resources("cpu", "10"), want: resources("cpu", "2", "pods", "1")},
		"others hold all of it":                          {wanted: resources("cpu", "1000000", "pods", "1"), others: resources("cpu", "12"), want: resources("cpu", "0", "pods", "1")},
		"pods are counted where nobody names them":       {wanted: resources("cpu", "1"), others: resources("pods", "300"), want: resources("cpu", "1", "pods", "30")},
		"a negative room is none":                        {wanted: resources("cpu", "1", "pods", "1"), others: resources("cpu", "20"), want: resources("cpu", "0", "pods", "1")},
		"what a tenant has stays when a node goes":       {wanted: resources("cpu", "20", "pods", "1"), held: resources("cpu", "16"), want: resources("cpu", "16", "pods", "1")},
		"but it can ask for less":                        {wanted: resources("cpu", "2", "pods", "1"), held: resources("cpu", "16"), want: resources("cpu", "2", "pods", "1")},
		"a set limit wins over the nodes, upwards":       {set: resources("cpu", "100"), wanted: resources("cpu", "50", "pods", "1"), want: resources("cpu", "50", "pods", "1")},
		"and downwards, also over what a tenant has":     {set: resources("cpu", "3"), wanted: resources("cpu", "50", "pods", "1"), held: resources("cpu", "12"), want: resources("cpu", "3", "pods", "1")},
		"a set limit of nothing":                         {set: resources("nvidia.com/gpu", "0"), wanted: resources("nvidia.com/gpu", "8", "pods", "1"), held: resources("nvidia.com/gpu", "8"), want: resources("nvidia.com/gpu", "0", "pods", "1")},
		"a set limit is shared by all slices":            {set: resources("cpu", "3"), wanted: resources("cpu", "2", "pods", "1"), others: resources("cpu", "2"), want: resources("cpu", "1", "pods", "1")},
		"half a pod is none":                             {wanted: resources("cpu", "1500m", "pods", "1.5"), want: resources("cpu", "1500m", "pods", "1")},
		"half a device that is set is none":              {set: resources("nvidia.com/gpu", "1.5"), wanted: resources("nvidia.com/gpu", "2", "pods", "1"), want: resources("nvidia.com/gpu", "1", "pods", "1")},
		"nothing is wanted: the pods that there are for": {want: resources("pods", "330")},
	} {
		t.Run(name, func(t *testing.T) {
			got := Ceiling{Set: tc.set, Nodes: nodes}.Bound(tc.wanted, tc.held, tc.others)
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b corev1.ResourceList) bool { return same(a, b) })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func quantity(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

func same(a, b corev1.ResourceList) bool { return len(Less(a, b)) == 0 && len(Less(b, a)) == 0 }

// However often and however much a tenant asks, its grants together stay below the ceiling.
func TestBoundsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ceiling := Ceiling{Nodes: corev1.ResourceList{"cpu": quantity(rapid.IntRange(0, 20).Draw(t, "cpus")), "pods": quantity(110)}}
		grants := make([]corev1.ResourceList, 4)
		for range 20 {
			i := rapid.IntRange(0, 3).Draw(t, "slice")
			if rapid.Bool().Draw(t, "delete") {
				grants[i] = nil
				continue
			}
			others := corev1.ResourceList{}
			for j := range grants {
				if j != i {
					others = Sum(others, grants[j])
				}
			}
			grants[i] = ceiling.Bound(corev1.ResourceList{"cpu": quantity(rapid.IntRange(0, 30).Draw(t, "wish"))}, grants[i], others)
			if together := Sum(others, grants[i]); len(Less(ceiling.Nodes, together)) > 0 {
				t.Fatalf("granted %v of %v", together, ceiling.Nodes)
			}
		}
	})
}

func TestNodesHave(t *testing.T) {
	node := func(change func(*corev1.Node)) corev1.Node {
		n := corev1.Node{Status: corev1.NodeStatus{Allocatable: resources("cpu", "4", "pods", "110"),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		change(&n)
		return n
	}
	reports := func(has corev1.ResourceList) corev1.Node {
		return node(func(n *corev1.Node) { n.Status.Allocatable = has })
	}
	have := NodesHave([]corev1.Node{
		node(func(*corev1.Node) {}),
		node(func(n *corev1.Node) { n.Status.Allocatable = resources("cpu", "2", "example.com/gpu", "1") }),
		node(func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		node(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		node(func(n *corev1.Node) { n.Status.Conditions = nil }),
		// The nodes of this cluster's own providers are not its to give.
		node(func(n *corev1.Node) {
			n.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}}
		}),
		node(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}),
		// What cannot be takes nothing away from what others have.
		reports(resources("cpu", "-1000", "pods", "110")),
		reports(resources("cpu", "1Ei")),
		reports(resources("memory", "9e99")),
		reports(many(10_000, "x")),
		reports(nil),
	}, nil, nil)
	if want := resources("cpu", "6", "pods", "110", "example.com/gpu", "1"); !same(have, want) {
		t.Errorf("the nodes have %v, want %v", have, want)
	}
}
