package gatewaytemplate

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

func options(replicas string) Options {
	content := runtime.RawExtension{Raw: []byte(`{"spec": {"deployment": {"spec": {"replicas": ` + replicas + `}}, "secretRef": {"name": "{{ .SecretName }}"}}}`)}
	return Options{Templates: v1alpha1.GatewayTemplates{Server: content, Client: content}, Labels: map[string]string{"a": "b"}, Namespace: "liqo", Deployment: "manager"}
}

func TestOnlyWhatDiffersIsWritten(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, networkingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: "liqo", UID: "u1"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	for _, step := range []struct {
		what     string
		replicas string
		want     int
	}{
		{"they are made", "1", 2}, {"they are there", "1", 0}, {"the configuration is another one", "2", 2}, {"and stays so", "2", 0},
	} {
		writes = 0
		if err := ensure(t.Context(), c, c, options(step.replicas)); err != nil {
			t.Fatal(err)
		}
		if writes != step.want {
			t.Errorf("%s: %d writes, want %d", step.what, writes, step.want)
		}
	}
	var server networkingv1beta1.WgGatewayServerTemplate
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "liqo", Name: "wireguard-server"}, &server); err != nil {
		t.Fatal(err)
	}
	got := []any{server.Spec.ObjectKind.Kind, string(server.Spec.Template.Raw), server.Labels["a"], server.OwnerReferences[0].Name}
	want := []any{"WgGatewayServer", `{"spec":{"deployment":{"spec":{"replicas":2}},"secretRef":{"name":"{{ .SecretName }}"}}}`, "b", "manager"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutContentThereIsNothingToMake(t *testing.T) {
	if objects, err := Objects(Options{}); err != nil || len(objects) != 0 {
		t.Errorf("%v, %v", objects, err)
	}
	if _, err := Objects(Options{Templates: v1alpha1.GatewayTemplates{Client: runtime.RawExtension{Raw: []byte("[]")}}}); err == nil {
		t.Error("a list was taken for a template")
	}
}
