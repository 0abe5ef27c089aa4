package virtualnode

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
)

// The manager's rights to what is written here are rendered by the chart with virtualKubelet.nodeIdentity=serviceAccount alone:
// they are not generated from markers.

const (
	// nodeRights and a VirtualNode's name make the name of the roles that reach only its own Node and Lease, and of their
	// bindings. No VirtualNode has a colon in its name, so the names cannot collide with others.
	nodeRights = "liqo-virtual-node:"
	// accountRights and a VirtualNode's name make the name of the binding to what the admission policy confines.
	accountRights = "liqo-virtual-account:"
	// clientCANamespace and clientCARole are where Kubernetes lets the CA of the cluster's clients be read.
	clientCANamespace = "kube-system"
	clientCARole      = "extension-apiserver-authentication-reader"
)

// empower gives a virtual kubelet that is no node but a ServiceAccount what the Node authorizer gives a node: its Node and its
// Lease by name, and pods, confined by an admission policy to those of its own node. Everything is owned by the Node and goes
// with it. A virtual kubelet that is a node has none of it.
func (r *reconciler) empower(ctx context.Context, s *scope) error {
	if r.NodeIdentity != v1alpha1.NodeIdentityServiceAccount || s.node == nil {
		return r.unbindAccount(ctx, s)
	}
	if err := r.confined(ctx); err != nil {
		return err
	}
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: s.node.Name, UID: s.node.UID}}
	if err := r.alive().All(ctx, nodeRole(s.vn, owner), leaseRole(s.vn, owner)); err != nil {
		return err
	}
	account := binding.ServiceAccount(s.vn.Namespace, s.vn.Name)
	name := nodeRights + s.vn.Name
	var bindings []client.Object
	for namespace, role := range map[string]string{corev1.NamespaceNodeLease: name, clientCANamespace: clientCARole} {
		rb := binding.New(namespace, name, "", account)
		rb.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}
		rb.OwnerReferences, rb.Labels = owner, accountLabels(s.vn)
		bindings = append(bindings, rb)
	}
	for bound, role := range map[string]string{name: name, accountRights + s.vn.Name: offloadingv1beta1.VirtualKubeletAccountClusterRole} {
		crb := newClusterBinding(s.vn, bound, role)
		crb.OwnerReferences = owner
		bindings = append(bindings, crb)
	}
	return r.keeper().All(ctx, bindings...)
}

// disempower takes all of that away.
func (r *reconciler) disempower(ctx context.Context, s *scope) error {
	if err := r.unbindAccount(ctx, s); err != nil {
		return err
	}
	if r.NodeIdentity != v1alpha1.NodeIdentityServiceAccount {
		// What an earlier configuration left is bound to nobody and goes with the Node; the manager has no right to it any more.
		return nil
	}
	return r.alive().Remove(ctx, nodeRole(s.vn, nil), leaseRole(s.vn, nil))
}

// unbindAccount removes the bindings, first that to what only the admission policy confines.
func (r *reconciler) unbindAccount(ctx context.Context, s *scope) error {
	name := nodeRights + s.vn.Name
	if err := r.alive().Remove(ctx, newClusterBinding(s.vn, accountRights+s.vn.Name, ""), newClusterBinding(s.vn, name, "")); err != nil {
		return err
	}
	return r.keeper().Remove(ctx, binding.New(corev1.NamespaceNodeLease, name, ""), binding.New(clientCANamespace, name, ""))
}

func accountLabels(vn *offloadingv1beta1.VirtualNode) map[string]string {
	return map[string]string{corev1beta1.ManagedLabel: "true", offloadingv1beta1.VirtualNodeLabel: vn.Name}
}

// nodeRole reaches one Node and its status.
func nodeRole(vn *offloadingv1beta1.VirtualNode, owner []metav1.OwnerReference) *rbacv1.ClusterRole {
	own := []string{vn.Name}
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: nodeRights + vn.Name, Labels: accountLabels(vn), OwnerReferences: owner},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: own, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"nodes/status"}, ResourceNames: own, Verbs: []string{"patch"}},
		},
	}
}

// leaseRole reaches one node's Lease. Who may create an object cannot be told by its name; the admission policy does that.
func leaseRole(vn *offloadingv1beta1.VirtualNode, owner []metav1.OwnerReference) *rbacv1.Role {
	groups, resources := []string{"coordination.k8s.io"}, []string{"leases"}
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: nodeRights + vn.Name, Labels: accountLabels(vn), OwnerReferences: owner},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: groups, Resources: resources, ResourceNames: []string{vn.Name}, Verbs: []string{"get", "update"}},
			{APIGroups: groups, Resources: resources, Verbs: []string{"create"}},
		},
	}
}
