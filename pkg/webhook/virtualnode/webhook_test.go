package virtualnode

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func vnode(namespace, name, cluster string) *offloadingv1beta1.VirtualNode {
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	vn.Spec.ClusterID = "milan"
	if cluster == "naples" {
		vn.Spec.ClusterID = "naples"
	}
	return vn
}

func newWebhook(t *testing.T, objects ...client.Object) *webhook {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	tn := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-milan", Labels: map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "milan"}}}
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	return &webhook{Decoder: admission.NewDecoder(scheme), Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, tn, other)...).Build(), Options: Options{Namespace: "liqo"}}
}

func object(t *testing.T, o any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

func TestValidate(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	for name, tc := range map[string]struct {
		vn, old *offloadingv1beta1.VirtualNode
		others  []client.Object
		want    string
	}{
		"in its tenant namespace":         {vnode("liqo-tenant-milan", "milan", ""), nil, nil, ""},
		"in some namespace":               {vnode("shop", "milan", ""), nil, nil, "namespace shop is not the tenant namespace of cluster"},
		"in another cluster's namespace":  {vnode("liqo-tenant-milan", "milan", "naples"), nil, nil, "create the VirtualNode in namespace liqo-tenant-naples"},
		"with another VirtualNode's name": {vnode("liqo-tenant-milan", "milan", ""), nil, []client.Object{vnode("liqo-tenant-naples", "milan", "naples")}, "a VirtualNode named milan exists in namespace liqo-tenant-naples"},
		"with a real node's name":         {vnode("liqo-tenant-milan", "worker", ""), nil, []client.Object{node("worker", nil)}, "a Node named worker exists"},
		"with the name of its own Node":   {vnode("liqo-tenant-milan", "milan", ""), nil, []client.Object{node("milan", map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"})}, ""},
		"that changes its cluster":        {vnode("liqo-tenant-milan", "milan", ""), vnode("liqo-tenant-milan", "milan", "naples"), nil, "clusterID cannot be changed"},
		"that changes something else":     {vnode("liqo-tenant-milan", "milan", ""), vnode("liqo-tenant-milan", "milan", ""), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: object(t, tc.vn)}}
			if tc.old != nil {
				req.Operation, req.OldObject = admissionv1.Update, object(t, tc.old)
			}
			got := newWebhook(t, tc.others...).validate(context.Background(), req)
			if got.Allowed != (tc.want == "") || tc.want != "" && !strings.Contains(got.Result.Message, tc.want) {
				t.Errorf("allowed %v: %v", got.Allowed, got.Result)
			}
		})
	}
}

func TestMutate(t *testing.T) {
	template := &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "virtual-kubelet-default"}, Spec: offloadingv1beta1.VkOptionsTemplateSpec{CreateNode: true}}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: object(t, vnode("liqo-tenant-milan", "milan", ""))}}
	labels := `"/metadata/labels","value":{"liqo.io/remote-cluster-id":"milan","liqo.io/type":"virtual-node"}`
	for name, tc := range map[string]struct {
		w    *webhook
		want []string
	}{
		"with a template":    {newWebhook(t, template), []string{labels, `"/spec/createNode","value":true`, `"/spec/disableNetworkCheck","value":false`}},
		"without a template": {newWebhook(t), []string{labels}},
	} {
		got, err := json.Marshal(tc.w.mutate(context.Background(), req).Patches)
		if err != nil || strings.Count(string(got), `"op"`) != len(tc.want) {
			t.Errorf("%s: error %v: %s", name, err, got)
		}
		for _, part := range tc.want {
			if !strings.Contains(string(got), part) {
				t.Errorf("%s: %s lacks %s", name, got, part)
			}
		}
	}
}
