package claim

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A claim of a consumer has a class that there is.
func TestHandle(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	class := func(name, isDefault string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": isDefault}}}
	}
	claim := func(spec string) string {
		return `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":` + spec + `}`
	}
	for name, tc := range map[string]struct {
		operation admissionv1.Operation
		classes   []client.Object
		claim     string
		refusal   string
	}{
		"a class that there is": {admissionv1.Create, []client.Object{class("fast", "")}, claim(`{"storageClassName":"fast"}`), ""},
		"the class of volumes that an administrator made": {admissionv1.Create, []client.Object{class("fast", "true")}, claim(`{"storageClassName":"payroll"}`),
			`StorageClassNotAllowed: the provider does not offer the storage class "payroll"`},
		"the empty class":                {admissionv1.Create, []client.Object{class("fast", "true")}, claim(`{"storageClassName":""}`), "StorageClassNotAllowed: its storage class must not be empty"},
		"no class, which is the default": {admissionv1.Create, []client.Object{class("fast", "true")}, claim(`{}`), ""},
		"no class, and no default":       {admissionv1.Create, []client.Object{class("fast", "")}, claim(`{}`), "StorageClassNotAllowed: it names no storage class"},
		"a claim that is there":          {admissionv1.Update, nil, claim(`{"storageClassName":"gone"}`), ""},
		"no claim at all":                {admissionv1.Create, nil, `[]`, "decoding the claim"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &webhook{admission.NewDecoder(scheme), fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.classes...).Build()}
			got := w.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: tc.operation, Object: runtime.RawExtension{Raw: []byte(tc.claim)}}})
			if got.Allowed != (tc.refusal == "") || tc.refusal != "" && !strings.Contains(got.Result.Message, tc.refusal) {
				t.Errorf("answered %v, want %q", got.AdmissionResponse, tc.refusal)
			}
		})
	}
	failing := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("away")
		}})
	w := &webhook{admission.NewDecoder(scheme), failing}
	got := w.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(claim(`{"storageClassName":"fast"}`))}}})
	if got.Allowed || got.Result.Code != http.StatusInternalServerError {
		t.Errorf("when nobody knows the classes the answer is %v", got.AdmissionResponse)
	}
}
