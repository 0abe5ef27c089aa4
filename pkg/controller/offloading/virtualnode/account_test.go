package virtualnode

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

func policyBinding() client.Object {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: offloadingv1beta1.VirtualNodesPolicy}}
}

// account is a world in which virtual kubelets are ServiceAccounts.
func account(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(objects, virtualNode(), tenantNamespace())...)
	w.r.NodeIdentity = v1alpha1.NodeIdentityServiceAccount
	w.pass()
	return w
}

// rights are the roles and bindings of the virtual kubelet beyond its tenant namespace: roles with their rules, bindings with
// their role. Everything else about them is checked here.
func (w *world) rights() map[string]string {
	w.Helper()
	var node corev1.Node
	uid := ""
	if w.is(&node, "") {
		uid = string(node.UID)
	}
	out := map[string]string{}
	check := func(o client.Object, subjects []rbacv1.Subject) {
		owners := o.GetOwnerReferences()
		if len(owners) != 1 || owners[0].Kind != "Node" || string(owners[0].UID) != uid {
			w.Errorf("%s has owners %v, the Node is %s", o.GetName(), owners, uid)
		}
		if len(subjects) > 0 && (len(subjects) != 1 || subjects[0].Name != "milan" || subjects[0].Namespace != key.Namespace) {
			w.Errorf("%s is for %v", o.GetName(), subjects)
		}
	}
	for _, name := range []string{"liqo-virtual-node:milan", "liqo-virtual-account:milan"} {
		var role rbacv1.ClusterRole
		if w.exists(&role, "", name) {
			check(&role, nil)
			out["ClusterRole "+name] = rules(role.Rules)
		}
		var crb rbacv1.ClusterRoleBinding
		if w.exists(&crb, "", name) {
			check(&crb, crb.Subjects)
			out["ClusterRoleBinding "+name] = crb.RoleRef.Name
		}
		for _, namespace := range []string{"kube-node-lease", "kube-system"} {
			var r rbacv1.Role
			if w.exists(&r, namespace, name) {
				check(&r, nil)
				out["Role "+namespace+" "+name] = rules(r.Rules)
			}
			var rb rbacv1.RoleBinding
			if w.exists(&rb, namespace, name) {
				check(&rb, rb.Subjects)
				out["RoleBinding "+namespace+" "+name] = rb.RoleRef.Kind + " " + rb.RoleRef.Name
			}
		}
	}
	return out
}

func (w *world) exists(o client.Object, namespace, name string) bool {
	w.Helper()
	err := w.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func rules(list []rbacv1.PolicyRule) string {
	var out []string
	for _, rule := range list {
		out = append(out, strings.Join(rule.Resources, ",")+strings.Join(rule.ResourceNames, ",")+": "+strings.Join(rule.Verbs, ","))
	}
	return strings.Join(out, "; ")
}

var accountHas = map[string]string{
	"ClusterRole liqo-virtual-node:milan":                 "nodesmilan: get,list,watch; nodes/statusmilan: patch",
	"ClusterRoleBinding liqo-virtual-node:milan":          "liqo-virtual-node:milan",
	"ClusterRoleBinding liqo-virtual-account:milan":       "liqo-virtual-kubelet-account",
	"Role kube-node-lease liqo-virtual-node:milan":        "leasesmilan: get,update; leases: create",
	"RoleBinding kube-node-lease liqo-virtual-node:milan": "Role liqo-virtual-node:milan",
	"RoleBinding kube-system liqo-virtual-node:milan":     "Role extension-apiserver-authentication-reader",
}

func TestAccountGetsTheRightsOfItsNode(t *testing.T) {
	w := account(t, policyBinding())
	if diff := cmp.Diff(accountHas, w.rights()); diff != "" {
		t.Error(diff)
	}
	if w.is(&rbacv1.ClusterRoleBinding{}, "liqo-virtual-bootstrap:milan") {
		t.Error("it may ask for a certificate, which it does not need")
	}
	if !w.is(&rbacv1.ClusterRoleBinding{}, "liqo-virtual-kubelet-milan") {
		t.Error("it cannot read how it is run")
	}
	before := w.Writes
	w.pass()
	if w.Writes != before {
		t.Errorf("%d writes at rest", w.Writes-before)
	}
	w.begone()
	w.pass()
	w.pass()
	if left := w.rights(); len(left) > 0 || w.is(&offloadingv1beta1.VirtualNode{}, "") {
		t.Errorf("left: %v, ready %s", left, w.condition("Ready"))
	}
}

// A Node that is made anew owns the rights, which Kubernetes would collect with the old one.
func TestAccountsRightsFollowTheNode(t *testing.T) {
	w := account(t, policyBinding())
	if err := w.Client.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if diff := cmp.Diff(accountHas, w.rights()); diff != "" {
		t.Error(diff)
	}
}

func TestAccountBecomesANode(t *testing.T) {
	w := account(t, policyBinding())
	w.r.NodeIdentity = v1alpha1.NodeIdentityNode
	w.pass()
	// The manager has no right to roles any more; without bindings they give nothing, and they go with the Node.
	want := map[string]string{}
	for name, value := range accountHas {
		if !strings.Contains(name, "Binding") {
			want[name] = value
		}
	}
	if diff := cmp.Diff(want, w.rights()); diff != "" || !w.is(&rbacv1.ClusterRoleBinding{}, "liqo-virtual-bootstrap:milan") {
		t.Errorf("it may ask for a certificate: %v; %s", w.is(&rbacv1.ClusterRoleBinding{}, "liqo-virtual-bootstrap:milan"), diff)
	}
}

// Rights that nothing confines are not given, and somebody else's roles are left alone.
func TestAccountIsRefused(t *testing.T) {
	foreign := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "liqo-virtual-node:milan"}, Rules: []rbacv1.PolicyRule{{Resources: []string{"pods"}}}}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"without the admission policy":     {nil, "False AdmissionPolicyMissing: the ValidatingAdmissionPolicyBinding liqo-virtual-nodes"},
		"C6: with the name of a role":      {[]client.Object{policyBinding(), foreign}, "False NameConflict: ClusterRole liqo-virtual-node:milan exists"},
		"C6: with the name of its binding": {[]client.Object{policyBinding(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "liqo-virtual-account:milan"}}}, "False NameConflict: ClusterRoleBinding"},
	} {
		t.Run(name, func(t *testing.T) {
			w := account(t, tc.objects...)
			if got := w.condition("Ready"); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			var crb rbacv1.ClusterRoleBinding
			if w.exists(&crb, "", "liqo-virtual-account:milan") && len(crb.Subjects) > 0 {
				t.Error("rights were given")
			}
		})
	}
}
