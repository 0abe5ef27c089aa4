package binding

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

func render(role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
}

func TestEnsure(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	ensure := func(what, role, user string, want bool) {
		t.Helper()
		wrote, err := Ensure(t.Context(), c, render(role, user))
		if err != nil || wrote != want {
			t.Fatalf("%s: wrote %v, %v", what, wrote, err)
		}
		live := &rbacv1.RoleBinding{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b"}, live); err != nil {
			t.Fatal(err)
		}
		if live.RoleRef.Name != role || live.Subjects[0].Name != user {
			t.Errorf("%s: the binding is %+v to %+v", what, live.RoleRef, live.Subjects)
		}
	}
	ensure("created", "r", "u", true)
	ensure("unchanged", "r", "u", false)
	ensure("another user", "r", "v", true)
	ensure("another role", "s", "v", true)
}

func TestForeignBindingIsNotTouched(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(render("theirs", "x")).Build()
	_, err := Ensure(t.Context(), c, render("ours", "y"))
	if reconcile.ReasonOf(err) != authv1beta1.ReasonNotOurs {
		t.Errorf("got %v", err)
	}
}
