package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v3/pkg/chartutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
)

// place gives the pod that the API server stores for one of a namespace that is offloaded so.
func place(t failer, m *mutation, pod *corev1.Pod, offloading *offloadingv1beta1.NamespaceOffloading) *corev1.Pod {
	t.Helper()
	text, err := json.Marshal(offloading)
	if err != nil {
		t.Fatal(err)
	}
	// Parameters come as they were stored, whatever a client sent.
	params := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &params.Object); err != nil {
		t.Fatal(err)
	}
	return m.apply(t, pod, params, corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")).(*corev1.Pod)
}

func drawTerms(most int) *rapid.Generator[[]corev1.NodeSelectorTerm] {
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	expressions := rapid.SampledFrom([]corev1.NodeSelectorRequirement{requirement("region", "In", "north", "south"), requirement("region", "NotIn", "south"),
		requirement("gpu", "Exists"), requirement("liqo.io/type", "In", "virtual-node"), requirement("liqo.io/type", "NotIn", "virtual-node")})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{
			MatchExpressions: rapid.SliceOfNDistinct(expressions, 0, 3, func(r corev1.NodeSelectorRequirement) string { return r.Key + string(r.Operator) }).Draw(t, "expressions"),
			MatchFields:      rapid.SliceOfN(rapid.Just(requirement(metav1.ObjectNameField, "In", "one")), 0, 1).Draw(t, "fields"),
		}
	}), 0, most)
}

// What the API server does by itself from Kubernetes 1.36 on is what the webhook does before.
func TestPlacementIsTheWebhooks(t *testing.T) {
	policy := compiled(t, valueSets["default"], "placement.yaml")
	rapid.Check(t, func(t *rapid.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "c", Image: "i"}},
			Tolerations: rapid.SliceOfN(rapid.SampledFrom([]corev1.Toleration{{Key: "own", Operator: "Exists"}, placement.VirtualNodeToleration()}), 0, 2).Draw(t, "tolerations"),
		}}
		if class := rapid.SampledFrom([]string{"", "liqo", "gvisor"}).Draw(t, "runtime class"); class != "" {
			pod.Spec.RuntimeClassName = ptr.To(class)
		}
		preferred := []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "fast", Operator: "Exists"}}}}}
		switch rapid.SampledFrom([]string{"none", "empty", "pods", "preferred", "required"}).Draw(t, "affinity") {
		case "empty":
			pod.Spec.Affinity = &corev1.Affinity{}
		case "pods":
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		case "preferred":
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
		case "required":
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred,
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: drawTerms(3).Draw(t, "own")}}}
		}
		offloading := &offloadingv1beta1.NamespaceOffloading{Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			PodOffloadingStrategy: rapid.SampledFrom([]offloadingv1beta1.PodOffloadingStrategyType{"", "Local", "Remote", "LocalAndRemote"}).Draw(t, "strategy"),
			ClusterSelector:       corev1.NodeSelector{NodeSelectorTerms: drawTerms(3).Draw(t, "selector")},
		}}
		if rapid.Bool().Draw(t, "unoffloading") {
			offloading.DeletionTimestamp = &metav1.Time{}
			*offloading.DeletionTimestamp = metav1.Now()
		}

		want := pod.DeepCopy()
		if offloading.DeletionTimestamp == nil {
			placement.MutatePod(want, placement.PodRules{Strategy: offloading.Spec.PodOffloadingStrategy, Selector: offloading.Spec.ClusterSelector})
		}
		got := place(t, policy, pod.DeepCopy(), offloading)
		if diff := cmp.Diff(normal(want), normal(got), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(got, place(t, policy, got.DeepCopy(), offloading), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("once more: %s", diff)
		}
	})
}

// Every API server decides about the pods of offloaded namespaces: by itself if it can, else by asking the webhook about each.
func TestSomeoneDecidesAboutEveryPod(t *testing.T) {
	for _, tc := range []struct {
		version       chartutil.KubeVersion
		byItself      bool
		failurePolicy admissionregistrationv1.FailurePolicyType
	}{
		{chartutil.KubeVersion{Version: "v1.36.0-rc.0", Major: "1", Minor: "36"}, true, admissionregistrationv1.Ignore},
		{chartutil.KubeVersion{Version: "v1.35.9", Major: "1", Minor: "35"}, false, admissionregistrationv1.Fail},
	} {
		rendered, err := renderFor(t, tc.version, valueSets["default"])
		if err != nil {
			t.Fatal(err)
		}
		if policy := strings.Contains(rendered["liqo/templates/placement.yaml"], "kind: MutatingAdmissionPolicyBinding"); policy != tc.byItself {
			t.Errorf("%s: policy liqo-placement is there: %v, want %v", tc.version.Version, policy, tc.byItself)
		}
		var configuration admissionregistrationv1.MutatingWebhookConfiguration
		if err := yaml.UnmarshalStrict([]byte(strings.Split(rendered["liqo/templates/webhooks.yaml"], "\n---")[0]), &configuration); err != nil {
			t.Fatal(err)
		}
		pods := configuration.Webhooks[0]
		if pods.Name != "pod.mutate.liqo.io" || *pods.FailurePolicy != tc.failurePolicy || (len(pods.MatchConditions) > 0) != tc.byItself {
			t.Errorf("%s: the first webhook is %s, fails with %s and has conditions %v", tc.version.Version, pods.Name, *pods.FailurePolicy, pods.MatchConditions)
		}
	}
}

// normal leaves terms that select nothing out, which say nothing beside one that selects something.
func normal(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		some := len(required.NodeSelectorTerms) > 0
		required.NodeSelectorTerms = slices.DeleteFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
			return len(term.MatchExpressions)+len(term.MatchFields) == 0
		})
		if some && len(required.NodeSelectorTerms) == 0 {
			required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
		}
	}
	return pod
}

// BenchmarkPlacement is what the policy costs the API server for each pod.
func BenchmarkPlacement(b *testing.B) {
	policy := compiled(b, valueSets["default"], "placement.yaml")
	offloading := &offloadingv1beta1.NamespaceOffloading{Spec: offloadingv1beta1.NamespaceOffloadingSpec{PodOffloadingStrategy: "Remote"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for b.Loop() {
		place(b, policy, pod, offloading)
	}
}
