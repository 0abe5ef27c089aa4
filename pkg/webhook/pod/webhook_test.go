package pod

import (
	"context"
	"encoding/json"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
)

func TestHandle(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	nso := func(namespace string, strategy offloadingv1beta1.PodOffloadingStrategyType) *offloadingv1beta1.NamespaceOffloading {
		return &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "offloading"}, Spec: offloadingv1beta1.NamespaceOffloadingSpec{PodOffloadingStrategy: strategy}}
	}
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	w := &webhook{Decoder: admission.NewDecoder(scheme), Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(nso("local", "Local"), nso("both", "LocalAndRemote"), nso("remote", "Remote"), node("virtual", map[string]string{"liqo.io/type": "virtual-node"}), node("plain", nil)).Build()}
	toleration := `{"op":"add","path":"/spec/tolerations","value":[{"effect":"NoExecute","key":"virtual-node.liqo.io/not-allowed","operator":"Exists"}]}`
	for name, tc := range map[string]struct {
		namespace, pod, patch string
		warned, allowed       bool
	}{
		"E1: no NamespaceOffloading is a warning": {"none", `{"spec":{"containers":[{"name":"c"}]}}`, "null", true, true},
		"Local":          {"local", `{"spec":{"containers":[{"name":"c"}]}}`, "null", false, true},
		"LocalAndRemote": {"both", `{"spec":{"containers":[{"name":"c"}]}}`, "[" + toleration + "]", false, true},
		"a pod that no provider takes": {"both", `{"spec":{"containers":[{"name":"c"}],"volumes":[{"name":"h","hostPath":{"path":"/"}}]}}`,
			`[{"op":"add","path":"/metadata/annotations","value":{"offloading.liqo.io/kept-at-home":"volumes.hostPath"}},` +
				`{"op":"add","path":"/spec/affinity","value":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"liqo.io/type","operator":"NotIn","values":["virtual-node"]}]}]}}}}]`, false, true},
		"a field of a newer Kubernetes is left as it is": {"both", `{"spec":{"containers":[{"name":"c"}],"teleport":true}}`, "[" + toleration + "]", false, true},
		"a pod that names a virtual node is marked": {"local", `{"metadata":{"labels":{"app":"web"}},"spec":{"nodeName":"virtual"}}`,
			`[{"op":"add","path":"/metadata/labels/liqo.io~1shadowPod","value":"true"}]`, false, true},
		"a pod without labels that names one too": {"local", `{"spec":{"nodeName":"virtual"}}`,
			`[{"op":"add","path":"/metadata/labels","value":{"liqo.io/shadowPod":"true"}}]`, false, true},
		"a pod that names another node":       {"local", `{"spec":{"nodeName":"plain"}}`, "null", false, true},
		"a pod that names a node that is not": {"local", `{"spec":{"nodeName":"none"}}`, "null", false, true},
		"no pod at all":                       {"both", `[]`, "null", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: tc.namespace, Object: runtime.RawExtension{Raw: []byte(tc.pod)}}})
			sort.Slice(got.Patches, func(i, j int) bool { return got.Patches[i].Path < got.Patches[j].Path })
			patch, err := json.Marshal(got.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.patch, tc.warned, tc.allowed}, []any{string(patch), len(got.Warnings) > 0, got.Allowed}); diff != "" {
				t.Error(diff)
			}
		})
	}
	remote := w.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "remote", Object: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}}})
	if len(remote.Patches) != 2 {
		t.Errorf("Remote gives %v, want affinity and toleration", remote.Patches)
	}
}

// TestOnlyTheChangeablePartChanges: what placement decides outside of it would be lost.
func TestOnlyTheChangeablePartChanges(t *testing.T) {
	for _, strategy := range []offloadingv1beta1.PodOffloadingStrategyType{"Local", "Remote", "LocalAndRemote"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
			Spec: corev1.PodSpec{NodeName: "n", NodeSelector: map[string]string{"e": "f"}, SchedulerName: "s",
				Containers: []corev1.Container{{Name: "c", Image: "i"}}, Tolerations: []corev1.Toleration{{Key: "own"}}},
		}
		before := pod.DeepCopy()
		placement.MutatePod(pod, placement.PodRules{Strategy: strategy, Selector: corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "g", Operator: corev1.NodeSelectorOpExists}}}}}})
		before.Labels, before.Spec.Affinity, before.Spec.Tolerations = pod.Labels, pod.Spec.Affinity, pod.Spec.Tolerations
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Errorf("strategy %s changes more:\n%s", strategy, diff)
		}
	}
}

// A pod that is marked and names no node may be large: its namespace is labelled before it is there. Who only tries is not noted, and no pod waits for
// what fails.
func TestTheNamespaceOfALargePod(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	nso := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: offloadingv1beta1.NamespaceOffloadingSpec{PodOffloadingStrategy: "Local"}}
	elsewhere := nso.DeepCopy()
	elsewhere.Namespace = "gone"
	before := map[string]string{"a": "b"}
	for name, tc := range map[string]struct {
		namespace, pod string
		dry            bool
		patch          string
		labels         map[string]string
	}{
		"not marked":           {"shop", `{"metadata":{"labels":{"app":"web"}}}`, false, "null", before},
		"dry":                  {"shop", `{"metadata":{"labels":{"offloading.liqo.io/marked":"true"}}}`, true, `[{"op":"remove","path":"/metadata/labels"}]`, before},
		"names a node":         {"shop", `{"metadata":{"labels":{"offloading.liqo.io/marked":"true"}},"spec":{"nodeName":"n"}}`, false, `[{"op":"remove","path":"/metadata/labels"}]`, before},
		"of another namespace": {"gone", `{"metadata":{"labels":{"offloading.liqo.io/marked":"true"}}}`, false, `[{"op":"remove","path":"/metadata/labels"}]`, before},
		"of no offloading":     {"none", `{"metadata":{"labels":{"offloading.liqo.io/marked":"true"}}}`, false, `[{"op":"remove","path":"/metadata/labels"}]`, before},
		"large": {"shop", `{"metadata":{"labels":{"app":"db","offloading.liqo.io/marked":"true"}}}`, false, `[{"op":"remove","path":"/metadata/labels/offloading.liqo.io~1marked"}]`,
			map[string]string{"a": "b", offloadingv1beta1.LargePodsLabel: "true"}},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(nso, elsewhere, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: before}}).Build()
		w := &webhook{Decoder: admission.NewDecoder(scheme), Client: c}
		got := w.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: tc.namespace, DryRun: &tc.dry, Object: runtime.RawExtension{Raw: []byte(tc.pod)}}})
		if patch, err := json.Marshal(got.Patches); err != nil || !got.Allowed || string(patch) != tc.patch {
			t.Errorf("%s: allowed %v with %s, want %s; error %v", name, got.Allowed, patch, tc.patch, err)
		}
		var namespace corev1.Namespace
		if err := c.Get(t.Context(), client.ObjectKey{Name: "shop"}, &namespace); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.labels, namespace.Labels); diff != "" {
			t.Errorf("%s: labels of the namespace (-want +got):\n%s", name, diff)
		}
	}
}
