package foreigncluster

import (
	"context"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func TestHandle(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &webhook{Decoder: admission.NewDecoder(scheme)}
	for name, tc := range map[string]struct {
		fc, want string
		allowed  bool
	}{
		"without label":    {`{"spec":{"clusterID":"milan"}}`, `[{"op":"add","path":"/metadata/labels","value":{"liqo.io/remote-cluster-id":"milan"}}]`, true},
		"with the label":   {`{"metadata":{"labels":{"liqo.io/remote-cluster-id":"milan"}},"spec":{"clusterID":"milan"}}`, "null", true},
		"with a wrong one": {`{"metadata":{"labels":{"liqo.io/remote-cluster-id":"x"}},"spec":{"clusterID":"milan"}}`, `[{"op":"replace","path":"/metadata/labels/liqo.io~1remote-cluster-id","value":"milan"}]`, true},
		"not one":          {`[]`, "null", false},
	} {
		response := w.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(tc.fc)}}})
		got, err := json.Marshal(response.Patches)
		if err != nil || string(got) != tc.want || response.Allowed != tc.allowed {
			t.Errorf("%s: error %v, allowed %v: %s", name, err, response.Allowed, got)
		}
	}
}
