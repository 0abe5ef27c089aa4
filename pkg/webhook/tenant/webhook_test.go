package tenant

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func namespace(name, id string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if id != "" {
		ns.Labels[corev1beta1.TenantNamespaceLabel] = "true"
		ns.Labels[corev1beta1.RemoteClusterIDLabel] = id
	}
	return ns
}

func tenant(ns, name, id string) *authv1beta1.Tenant {
	return &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(id), PublicKey: []byte("k"), CSR: []byte("c"), Signature: []byte("s")},
	}
}

func TestWhyRefused(t *testing.T) {
	ns := namespace("liqo-tenant-rome", "rome")
	for name, tc := range map[string]struct {
		tenant    *authv1beta1.Tenant
		namespace *corev1.Namespace
		all       []authv1beta1.Tenant
		want      string
	}{
		"the only one in its own namespace": {tenant: tenant(ns.Name, "rome", "rome"), namespace: ns},
		"an update of itself":               {tenant: tenant(ns.Name, "rome", "rome"), namespace: ns, all: []authv1beta1.Tenant{*tenant(ns.Name, "rome", "rome")}},
		"without handshake, nothing is needed": {
			tenant:    &authv1beta1.Tenant{Spec: authv1beta1.TenantSpec{ClusterID: "rome", AuthzPolicy: authv1beta1.TolerateNoHandshake}},
			namespace: ns,
		},
		"without signature":       {tenant: &authv1beta1.Tenant{Spec: authv1beta1.TenantSpec{ClusterID: "rome"}}, namespace: ns, want: "are required"},
		"an ordinary namespace":   {tenant: tenant("default", "rome", "rome"), namespace: namespace("default", ""), want: "is not a tenant namespace: create the Tenant in liqo-tenant-rome"},
		"another's namespace":     {tenant: tenant("liqo-tenant-milan", "rome", "rome"), namespace: namespace("liqo-tenant-milan", "milan"), want: `belongs to cluster "milan"`},
		"an impossible ID":        {tenant: tenant(ns.Name, "rome", "Rome!"), namespace: ns, want: "is not valid"},
		"a second in a namespace": {tenant: tenant(ns.Name, "b", "rome"), namespace: ns, all: []authv1beta1.Tenant{*tenant(ns.Name, "a", "rome")}, want: "there can be only one"},
		"a name that is taken":    {tenant: tenant(ns.Name, "a", "rome"), namespace: ns, all: []authv1beta1.Tenant{*tenant("liqo-tenant-x", "a", "x")}, want: "choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			got := WhyRefused(tc.tenant, tc.namespace, tc.all)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWebhook(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(namespace("liqo-tenant-rome", "rome")).Build()
	v := validator{reader: reader, live: reader}
	object := tenant("liqo-tenant-rome", "rome", "rome")
	if err := (defaulter{}).Default(t.Context(), object); err != nil || object.Labels[corev1beta1.RemoteClusterIDLabel] != "rome" {
		t.Errorf("the default label is %v, %v", object.Labels, err)
	}
	if _, err := v.ValidateCreate(t.Context(), object); err != nil {
		t.Error(err)
	}
	wrong := tenant("liqo-tenant-rome", "rome", "milan")
	if _, err := v.ValidateUpdate(t.Context(), object, wrong); err == nil {
		t.Error("a Tenant moved to another cluster")
	}
	wrong.DeletionTimestamp = &metav1.Time{}
	wrong.DeletionTimestamp.Time = wrong.DeletionTimestamp.Add(1)
	if _, err := v.ValidateUpdate(t.Context(), object, wrong); err != nil {
		t.Errorf("a Tenant that is being deleted cannot let its finalizer go: %v", err)
	}
	if _, err := v.ValidateDelete(t.Context(), object); err != nil {
		t.Error(err)
	}
}

// Where namespaces are told apart by the ID that their names end in, no two tenants may be mistaken for each other.
func TestWhyMistaken(t *testing.T) {
	of := func(id corev1beta1.ClusterID) authv1beta1.Tenant {
		return authv1beta1.Tenant{Spec: authv1beta1.TenantSpec{ClusterID: id}}
	}
	for name, tc := range map[string]struct {
		id, other corev1beta1.ClusterID
		mistaken  bool
	}{
		"an ID that another ends in":      {"prod", "eu-prod", true},
		"an ID that ends in another":      {"eu-prod", "prod", true},
		"the end of a UID":                {"446655440000", "550e8400-e29b-41d4-a716-446655440000", true},
		"the same, changed":               {"prod", "prod", false},
		"an end that is no word":          {"prod", "reprod", false},
		"a beginning":                     {"eu", "eu-prod", false},
		"two that end in the same":        {"us-prod", "eu-prod", false},
		"two that have nothing in common": {"rome", "naples", false},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := of(tc.id)
			if got := WhyMistaken(&tenant, []authv1beta1.Tenant{of("milan"), of(tc.other)}); (got != "") != tc.mistaken {
				t.Errorf("got %q, want a refusal: %t", got, tc.mistaken)
			}
		})
	}
}
