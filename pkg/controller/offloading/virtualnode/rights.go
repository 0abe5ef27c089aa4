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
	"liqo.io/liqo/pkg/kube/keep"
)

const (
	// rightsPrefix and a VirtualNode's name make the name of its virtual kubelet's bindings.
	rightsPrefix = "liqo-virtual-kubelet-"
	// bootstrapRights and a VirtualNode's name make the name of the binding by which its virtual kubelet asks for a certificate.
	bootstrapRights = "liqo-virtual-bootstrap:"
	// secretSuffix after a VirtualNode's name makes the name of the Role that lets its virtual kubelet read its kubeconfig.
	secretSuffix = "-kubeconfig"
)

// keeper keeps objects that are in a cache. What that does not show yet is read past it, so that nothing waits for it.
func (r *reconciler) keeper() keep.Keeper {
	return keep.Keeper{Client: r.Client, Live: r.Live, Reason: offloadingv1beta1.ReasonNameConflict}
}

// alive keeps objects that are in no cache, or removes some by what they are now.
func (r *reconciler) alive() keep.Keeper {
	return keep.Keeper{Client: r.Client, Reader: r.Live, Reason: offloadingv1beta1.ReasonNameConflict}
}

// authorize ensures the virtual kubelet's account and its rights: to ask for a certificate, to read its tenant namespace, and
// to read its one Secret.
func (r *reconciler) authorize(ctx context.Context, s *scope) error {
	account := binding.ServiceAccount(s.vn.Namespace, s.vn.Name)
	if err := r.account(ctx, s.vn); err != nil {
		return err
	}
	if err := r.keeper().All(ctx, newClusterBinding(s.vn, rightsPrefix+s.vn.Name, offloadingv1beta1.VirtualKubeletClusterRole)); err != nil {
		return err
	}
	if err := r.bootstrap(ctx, s.vn); err != nil {
		return err
	}
	// It lets the virtual kubelet read the one Secret that holds its kubeconfig.
	role := &rbacv1.Role{ObjectMeta: owned(s.vn, s.vn.Name+secretSuffix), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secretOf(s.vn)}, Verbs: []string{"get", "list", "watch"}}}}
	if err := r.alive().All(ctx, role); err != nil {
		return err
	}
	tenant := binding.New(s.vn.Namespace, rightsPrefix+s.vn.Name, offloadingv1beta1.VirtualKubeletTenantClusterRole, account)
	secret := binding.New(s.vn.Namespace, role.Name, "", account)
	secret.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
	tenant.OwnerReferences, secret.OwnerReferences = role.OwnerReferences, role.OwnerReferences
	return r.keeper().All(ctx, tenant, secret)
}

// account has a ServiceAccount be there, whoever made it.
func (r *reconciler) account(ctx context.Context, vn *offloadingv1beta1.VirtualNode) error {
	if found, err := find(ctx, r.Live, client.ObjectKeyFromObject(vn), &corev1.ServiceAccount{}); err != nil || found {
		return err
	}
	return keep.Make(ctx, r.Client, &corev1.ServiceAccount{ObjectMeta: owned(vn, vn.Name)})
}

// owned is the metadata of an object in the tenant namespace that goes with the VirtualNode.
func owned(vn *offloadingv1beta1.VirtualNode, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: vn.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{ownerOf(vn)},
		Labels: map[string]string{corev1beta1.ManagedLabel: "true", offloadingv1beta1.VirtualNodeLabel: vn.Name}}
}

// bootstrap lets the virtual kubelet ask for the certificate by which it becomes a node; one that stays a ServiceAccount does
// not need it.
func (r *reconciler) bootstrap(ctx context.Context, vn *offloadingv1beta1.VirtualNode) error {
	rights := newClusterBinding(vn, bootstrapRights+vn.Name, offloadingv1beta1.VirtualKubeletBootstrapClusterRole)
	if r.NodeIdentity == v1alpha1.NodeIdentityServiceAccount {
		return r.alive().Remove(ctx, rights)
	}
	return r.keeper().All(ctx, rights)
}

// newClusterBinding is the binding of a ClusterRole to the virtual kubelet's account.
func newClusterBinding(vn *offloadingv1beta1.VirtualNode, name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", offloadingv1beta1.VirtualNodeLabel: vn.Name}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{binding.ServiceAccount(vn.Namespace, vn.Name)},
	}
}

// unauthorize removes the account and its rights.
func (r *reconciler) unauthorize(ctx context.Context, s *scope) error {
	account, role := owned(s.vn, s.vn.Name), owned(s.vn, s.vn.Name+secretSuffix)
	err := r.keeper().Remove(ctx, binding.New(s.vn.Namespace, rightsPrefix+s.vn.Name, ""), binding.New(s.vn.Namespace, role.Name, ""))
	// In a namespace that is being deleted they go with it, and our rights to them may have gone already.
	if err == nil && !s.terminating {
		err = r.alive().RemoveIf(ctx, keep.ControlledBy(s.vn), &corev1.ServiceAccount{ObjectMeta: account}, &rbacv1.Role{ObjectMeta: role})
	}
	if err != nil {
		return err
	}
	return r.alive().Remove(ctx, newClusterBinding(s.vn, bootstrapRights+s.vn.Name, ""), newClusterBinding(s.vn, rightsPrefix+s.vn.Name, ""))
}
