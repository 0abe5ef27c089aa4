package binding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// What is larger than any one node stays Pending at home; what is not known to be passes.
func TestHandle(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	node := func(name, kind, largest string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1beta1.TypeLabel: kind}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("20")}}}
		if largest != "" {
			n.Annotations = map[string]string{offloadingv1beta1.LargestPodAnnotation: largest}
		}
		return n
	}
	pod := func(name, cpu string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
	}
	const said = `{"cpu":"3800m","memory":"7Gi","pods":"10"}`
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pod("small", "1"), pod("large", "8"), pod("huge", "1T"), pod("full", "20100m"),
		node("milan", corev1beta1.VirtualNodeType, said), node("silent", corev1beta1.VirtualNodeType, ""),
		node("broken", corev1beta1.VirtualNodeType, `{"cpu":"many"}`), node("own", "", said)).Build()
	empty := node("empty", corev1beta1.VirtualNodeType, said)
	empty.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("0")}
	if err := reader.Create(t.Context(), empty); err != nil {
		t.Fatal(err)
	}
	w := &webhook{admission.NewDecoder(scheme), reader, reader}
	for name, tc := range map[string]struct{ pod, target, refusal string }{
		"a pod that fits":                                          {"small", "milan", ""},
		"a pod that is larger than any node":                       {"large", "milan", "LargerThanAnyNode: it requests cpu 8, of which no more than 3800m is left on any one node behind virtual node milan"},
		"more than the virtual node has, which no scheduler binds": {"huge", "milan", ""},
		"a little more than it has, which is refused as well":      {"full", "milan", ""},
		"a virtual node that does not say it":                      {"large", "silent", ""},
		"one whose annotation means nothing":                       {"large", "broken", ""},
		"a physical node":                                          {"large", "own", ""},
		"a node that is not known yet":                             {"large", "new", ""},
		"a pod that is gone":                                       {"gone", "milan", ""},
	} {
		t.Run(name, func(t *testing.T) {
			raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","target":{"kind":"Node","name":%q}}`, tc.target)
			got := w.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create,
				Namespace: "shop", Name: tc.pod, SubResource: "binding", Object: runtime.RawExtension{Raw: []byte(raw)}}})
			if refusal := got.Result.Message; got.Allowed != (tc.refusal == "") || !got.Allowed && refusal != tc.refusal {
				t.Errorf("allowed %v with %q, want %q", got.Allowed, refusal, tc.refusal)
			}
		})
	}
	// The scheduler decided when the node was larger: it tries again. A virtual kubelet would let wait what wants much of something that is not there.
	bind := func(user, pod, target string) bool {
		return w.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create,
			Namespace: "shop", Name: pod, SubResource: "binding", UserInfo: authenticationv1.UserInfo{Username: user},
			Object: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Binding","target":{"kind":"Node","name":%q}}`, target)}}}).Allowed
	}
	if bind("system:kube-scheduler", "huge", "milan") || !bind("paula", "huge", "milan") || bind("paula", "huge", "empty") {
		t.Error("a pod that is larger than the virtual node is bound by the scheduler, or not by hand, or where the virtual kubelet does not refuse it")
	}
	got := w.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(`[]`)}}})
	if got.Allowed || !strings.Contains(got.Result.Message, "decoding the binding") {
		t.Errorf("no binding at all: %+v", got)
	}
}

// A pod is read from what the API server has in memory, and from etcd if it is not there yet.
func TestAPodIsReadFromMemoryFirst(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var asked []string
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "known"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "again", UID: "2"}},
	).WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		var all client.GetOptions
		all.ApplyOptions(options)
		version := ""
		if all.Raw != nil {
			version = all.Raw.ResourceVersion
		}
		asked = append(asked, key.Name+"@"+version)
		if key.Name == "new" && version == "0" {
			return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
		}
		err := c.Get(ctx, key, o)
		if key.Name == "again" && version == "0" {
			o.SetUID("1")
		}
		return err
	}}).Build()
	w := &webhook{pods: reader}
	for name, tc := range map[string]struct {
		there bool
		uid   types.UID
	}{"known": {true, ""}, "new": {true, ""}, "again": {true, "2"}, "gone": {false, ""}} {
		pod, err := w.pod(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, tc.uid)
		if (err == nil) != tc.there || tc.there && (pod.Name != name || pod.UID != tc.uid) {
			t.Errorf("pod %s: %v, error %v", name, pod.Name, err)
		}
	}
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"again@", "again@0", "gone@", "gone@0", "known@0", "new@", "new@0"}, asked); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}
