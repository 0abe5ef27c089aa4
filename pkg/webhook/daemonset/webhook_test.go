package daemonset

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestHandle(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &webhook{admission.NewDecoder(scheme)}
	const (
		apart = `{"key":"liqo.io/type","operator":"NotIn","values":["virtual-node"]}`
		terms = `{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` + apart + `]}]}}`
	)
	set := func(spec string) string {
		return `{"apiVersion":"apps/v1","kind":"DaemonSet","spec":{"template":{"spec":` + spec + `}}}`
	}
	for name, tc := range map[string]struct {
		set, patch string
		allowed    bool
	}{
		"any DaemonSet": {set(`{"tolerations":[{"operator":"Exists"}]}`),
			`[{"op":"add","path":"/spec/template/spec/affinity","value":{"nodeAffinity":` + terms + `}}]`, true},
		"one with an affinity to pods": {set(`{"affinity":{"podAffinity":{}}}`),
			`[{"op":"add","path":"/spec/template/spec/affinity/nodeAffinity","value":` + terms + `}]`, true},
		"one that wants some nodes": {
			set(`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}]}}}}`),
			`[{"op":"add","path":"/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/1","value":` + apart + `}]`, true},
		"one that keeps off by itself":          {set(`{"affinity":{"nodeAffinity":` + terms + `}}`), "null", true},
		"a field of a newer Kubernetes is kept": {set(`{"teleport":true,"affinity":{"nodeAffinity":` + terms + `,"teleport":true}}`), "null", true},
		"no DaemonSet at all":                   {`[]`, "null", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(tc.set)}}})
			patch, err := json.Marshal(got.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.patch, tc.allowed}, []any{string(patch), got.Allowed}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
