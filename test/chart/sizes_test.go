package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

// What API servers take for a small pod requests no more than capacity.Small, so that nobody has to ask whether it fits. What may be large is marked, and
// what names its node, so that the controller manager is asked about it.
func TestLargePodsAreMarked(t *testing.T) {
	policy := compiled(t, valueSets["default"], "placement.yaml")
	offloading := &offloadingv1beta1.NamespaceOffloading{}
	marked := func(t failer, spec corev1.PodSpec) bool {
		t.Helper()
		alone := place(t, policy, &corev1.Pod{Spec: spec}, offloading)
		beside := place(t, policy, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: spec}, offloading)
		if alone.Labels[offloadingv1beta1.MarkedLabel] != beside.Labels[offloadingv1beta1.MarkedLabel] || beside.Labels["app"] != "web" {
			t.Fatal("other labels of the pod count: ", alone.Labels, beside.Labels)
		}
		return alone.Labels[offloadingv1beta1.MarkedLabel] == "true"
	}
	requests := func(pairs ...string) corev1.ResourceRequirements {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return corev1.ResourceRequirements{Requests: list}
	}
	of := func(each ...corev1.ResourceRequirements) corev1.PodSpec {
		var spec corev1.PodSpec
		for _, r := range each {
			spec.Containers = append(spec.Containers, corev1.Container{Name: "c", Resources: r})
		}
		return spec
	}
	initialised, whole, overhead, bound := of(requests("cpu", "100m")), of(requests()), of(requests("cpu", "1m")), of(requests())
	initialised.InitContainers = of(requests("cpu", "2")).Containers
	pod := requests("cpu", "100m")
	whole.Resources, overhead.Overhead, bound.NodeName = &pod, pod.Requests, "milan"
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"nothing is requested":          {of(requests()), false},
		"half of what a small one may":  {of(requests("cpu", "250m", "memory", "512Mi")), false},
		"in two":                        {of(requests("cpu", "125m", "memory", "256Mi"), requests("cpu", "0.125", "memory", "256Mi")), false},
		"more CPUs":                     {of(requests("cpu", "251m")), true},
		"more CPUs in two":              {of(requests("cpu", "200m"), requests("cpu", "0.2")), true},
		"more memory":                   {of(requests("memory", "513Mi")), true},
		"more memory in another manner": {of(requests("memory", "2e9")), true},
		"a device":                      {of(requests("nvidia.com/gpu", "1")), true},
		"an init container":             {initialised, true},
		"for the pod as a whole":        {whole, true},
		"an overhead":                   {overhead, true},
		"a pod that names its node":     {bound, true},
	} {
		if got := marked(t, tc.spec); got != tc.want {
			t.Errorf("%s: marked: %v, want %v", name, got, tc.want)
		}
	}
	if policy.namespace.Labels = map[string]string{offloadingv1beta1.LargePodsLabel: "true"}; marked(t, of(requests("cpu", "4"))) {
		t.Error("a pod is marked although its namespace is known for large ones")
	}
	if !marked(t, bound) {
		t.Error("a pod that names its node is not marked where there are large ones")
	}
	policy.namespace.Labels = nil
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Custom(func(t *rapid.T) corev1.ResourceRequirements {
			return requests("cpu", rapid.SampledFrom([]string{"0", "1m", "100m", "0.25", "499m", "5e-1", "1", "1u"}).Draw(t, "cpu"),
				"memory", rapid.SampledFrom([]string{"0", "64Mi", "0.5Gi", "500M", "1Gi", "1073741825", "1e9"}).Draw(t, "memory"))
		})
		spec := of(rapid.SliceOfN(some, 1, 3).Draw(t, "containers")...)
		if rapid.Bool().Draw(t, "init") {
			spec.InitContainers = of(rapid.SliceOfN(some, 1, 2).Draw(t, "init containers")...).Containers
		}
		if why := capacity.WhyLarger(&spec, capacity.Small()); why != "" && !marked(t, spec) {
			t.Fatal("API servers take for small: ", why)
		}
	})
}
