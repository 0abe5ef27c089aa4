package namespaceoffloading

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestHandle(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := offloadingv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &webhook{Decoder: admission.NewDecoder(scheme), Options: Options{ClusterID: "rome"}}
	type spec = offloadingv1beta1.NamespaceOffloadingSpec
	broken := corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Near"}}}}}
	for name, tc := range map[string]struct {
		objectName    string
		old           *spec
		now           spec
		want, warning string
	}{
		"all defaults":                  {"offloading", nil, spec{}, "", ""},
		"another name":                  {"mine", nil, spec{}, `must be named "offloading"`, ""},
		"SelectedName without a name":   {"offloading", nil, spec{NamespaceMappingStrategy: "SelectedName"}, "remoteNamespaceName is required", ""},
		"an unknown strategy":           {"offloading", nil, spec{NamespaceMappingStrategy: "Sideways"}, "is unknown", ""},
		"a selector that is not one":    {"offloading", nil, spec{ClusterSelector: broken}, "clusterSelector of the NamespaceOffloading is not valid", ""},
		"another mapping strategy":      {"offloading", &spec{NamespaceMappingStrategy: "DefaultName"}, spec{NamespaceMappingStrategy: "EnforceSameName"}, "namespaceMappingStrategy cannot be changed", ""},
		"another remote name":           {"offloading", &spec{RemoteNamespaceName: "a"}, spec{RemoteNamespaceName: "b"}, "remoteNamespaceName cannot be changed", ""},
		"a stricter pod strategy warns": {"offloading", &spec{PodOffloadingStrategy: "LocalAndRemote"}, spec{PodOffloadingStrategy: "Remote"}, "", "more restrictive"},
		"a looser pod strategy":         {"offloading", &spec{PodOffloadingStrategy: "Local"}, spec{PodOffloadingStrategy: "LocalAndRemote"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(s spec) runtime.RawExtension {
				text, err := json.Marshal(&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: tc.objectName}, Spec: s})
				if err != nil {
					t.Fatal(err)
				}
				return runtime.RawExtension{Raw: text}
			}
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: object(tc.now)}}
			if tc.old != nil {
				req.Operation, req.OldObject = admissionv1.Update, object(*tc.old)
			}
			got := w.Handle(context.Background(), req)
			message := ""
			if got.Result != nil {
				message = got.Result.Message
			}
			if got.Allowed != (tc.want == "") || !strings.Contains(message, tc.want) || !strings.Contains(strings.Join(got.Warnings, ""), tc.warning) || (len(got.Warnings) > 0) != (tc.warning != "") {
				t.Errorf("allowed %v: %s, warnings %v", got.Allowed, message, got.Warnings)
			}
		})
	}
}
