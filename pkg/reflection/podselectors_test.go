package reflection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// kubectl expose copies all labels of a pod into the selector of its Service: what of them is ours, or another cluster's to set, selects
// nothing at the provider, and is left out there.
func TestOurLabelsSelectNoPodsAtTheProvider(t *testing.T) {
	for name, tc := range map[string]struct{ selector, want map[string]string }{
		"as exposed":             {map[string]string{"run": "fiddler", "liqo.io/shadowPod": "true"}, map[string]string{"run": "fiddler"}},
		"all that is ours":       {map[string]string{"app": "a", "offloading.liqo.io/nodename": "milan", "liqo.io/managed-by": "x", "offloading.liqo.io/new": "x"}, map[string]string{"app": "a"}},
		"nothing that is ours":   {map[string]string{"app": "a", "shop.example/tier": "b"}, map[string]string{"app": "a", "shop.example/tier": "b"}},
		"a user's below liqo.io": {map[string]string{"demo.liqo.io/app": "a"}, map[string]string{"demo.liqo.io/app": "a"}},
		"nothing else":           {map[string]string{"liqo.io/shadowPod": "true"}, map[string]string{"offloading.liqo.io/origin": "rome"}},
		"no selector":            {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			local := serviceOf(corev1.ServiceSpec{Selector: tc.selector, Ports: []corev1.ServicePort{port(80, 0)}})
			before := local.DeepCopy()
			remote := translateService(input(local)).Apply.(*corev1.Service)
			if diff := cmp.Diff(tc.want, remote.Spec.Selector); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Spec, local.Spec); diff != "" {
				t.Errorf("the local Service was changed: %s", diff)
			}
			if changes := serviceChanges(remote, remote.DeepCopy()); len(changes) > 0 {
				t.Errorf("the same Service has changes: %v", changes)
			}
		})
	}
}

// The same holds for the selectors of a pod, and how many domains there have to be is asked of this cluster's nodes.
func TestOurLabelsSpreadNoPodsAtTheProvider(t *testing.T) {
	selector := func(more ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}, MatchExpressions: more}
	}
	exposed := selector(metav1.LabelSelectorRequirement{Key: "offloading.liqo.io/origin", Operator: metav1.LabelSelectorOpDoesNotExist},
		metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpExists})
	exposed.MatchLabels["liqo.io/shadowPod"] = "true"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u", Labels: map[string]string{"app": "a", "liqo.io/shadowPod": "true"},
			Annotations: map[string]string{"liqo.io/anti-affinity-preset": "propagate"}},
		Spec: corev1.PodSpec{
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "site", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: exposed, MinDomains: ptr.To[int32](2)}},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "site", LabelSelector: exposed.DeepCopy()}}}},
		},
	}
	before := pod.DeepCopy()
	shadow, refusal := ShadowPod(pod, PodInput{Home: "rome", Remote: "milan"})
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := selector(metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpExists})
	got := shadow.Spec.Pod
	if diff := cmp.Diff([]corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "site", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: want}}, got.TopologySpreadConstraints); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]corev1.PodAffinityTerm{{TopologyKey: "site", LabelSelector: want}}, got.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, pod); diff != "" {
		t.Errorf("the local pod was changed: %s", diff)
	}
}

// The open gates of a pod are told by an annotation of its ShadowPod, which no annotation of a user's is taken for.
func TestOpenGatesAreTold(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Annotations: map[string]string{offloadingv1beta1.OpenGatesAnnotation: "mine"}}}
	told := func() (string, bool) {
		t.Helper()
		shadow, refusal := ShadowPod(pod, PodInput{Home: "rome", Remote: "milan"})
		if refusal != nil {
			t.Fatal(refusal)
		}
		value, there := shadow.Annotations[offloadingv1beta1.OpenGatesAnnotation]
		return value, there
	}
	if value, there := told(); there {
		t.Errorf("a pod without gates tells %q", value)
	}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "a.example/one"}, {ConditionType: "a.example/two"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "a.example/one", Status: corev1.ConditionTrue}}
	if value, _ := told(); value != "a.example/two" {
		t.Errorf("with one gate met it tells %q", value)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "a.example/two", Status: corev1.ConditionTrue})
	if value, there := told(); value != "" || !there {
		t.Errorf("with both met it tells %q, %v", value, there)
	}
}
