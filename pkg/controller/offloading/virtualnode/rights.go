package virtualnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/reconcile"
)

const (
	// rightsPrefix and a VirtualNode's name make the name of its virtual kubelet's bindings.
	rightsPrefix = "liqo-virtual-kubelet-"
	// bootstrapRights and a VirtualNode's name make the name of the binding by which its virtual kubelet asks for a certificate.
	bootstrapRights = "liqo-virtual-bootstrap:"
	// secretSuffix after a VirtualNode's name makes the name of the Role that lets its virtual kubelet read its kubeconfig.
	secretSuffix = "-kubeconfig"
)

// authorize ensures the virtual kubelet's account and its rights: to ask for a certificate, to read its tenant namespace, and
// to read its one Secret.
func (r *reconciler) authorize(ctx context.Context, s *scope) error {
	account := binding.ServiceAccount(s.vn.Namespace, s.vn.Name)
	if err := r.account(ctx, s.vn); err != nil {
		return err
	}
	if err := r.clusterBinding(ctx, newClusterBinding(s.vn, rightsPrefix+s.vn.Name, offloadingv1beta1.VirtualKubeletClusterRole)); err != nil {
		return err
	}
	if err := r.bootstrap(ctx, s.vn); err != nil {
		return err
	}
	if err := r.secretRole(ctx, s.vn); err != nil {
		return err
	}
	tenant := binding.New(s.vn.Namespace, rightsPrefix+s.vn.Name, offloadingv1beta1.VirtualKubeletTenantClusterRole, account)
	secret := binding.New(s.vn.Namespace, s.vn.Name+secretSuffix, "", account)
	secret.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: s.vn.Name + secretSuffix}
	for _, rb := range []*rbacv1.RoleBinding{tenant, secret} {
		rb.OwnerReferences = []metav1.OwnerReference{ownerOf(s.vn)}
		if err := binding.Ensure(ctx, r.Client, rb); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) account(ctx context.Context, vn *offloadingv1beta1.VirtualNode) error {
	var live corev1.ServiceAccount
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(vn), &live)
	if apierrors.IsNotFound(err) {
		err = r.Create(ctx, &corev1.ServiceAccount{ObjectMeta: owned(vn, vn.Name)})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("ensuring ServiceAccount %s/%s: %w", vn.Namespace, vn.Name, err)
	}
	return nil
}

// owned is the metadata of an object in the tenant namespace that goes with the VirtualNode.
func owned(vn *offloadingv1beta1.VirtualNode, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: vn.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{ownerOf(vn)},
		Labels: map[string]string{corev1beta1.ManagedLabel: "true", offloadingv1beta1.VirtualNodeLabel: vn.Name}}
}

// bootstrap lets the virtual kubelet ask for the certificate by which it becomes a node; one that stays a ServiceAccount does
// not need it.
func (r *reconciler) bootstrap(ctx context.Context, vn *offloadingv1beta1.VirtualNode) error {
	if r.NodeIdentity == v1alpha1.NodeIdentityServiceAccount {
		return r.removeClusterBinding(ctx, bootstrapRights+vn.Name)
	}
	return r.clusterBinding(ctx, newClusterBinding(vn, bootstrapRights+vn.Name, offloadingv1beta1.VirtualKubeletBootstrapClusterRole))
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

func (r *reconciler) clusterBinding(ctx context.Context, want *rbacv1.ClusterRoleBinding) error {
	var live rbacv1.ClusterRoleBinding
	found, err := r.find(ctx, client.ObjectKeyFromObject(want), &live)
	if err != nil {
		return err
	}
	if !found {
		if err := r.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating ClusterRoleBinding %s: %w", want.Name, err)
		}
		return nil
	}
	if live.Labels[corev1beta1.ManagedLabel] != "true" || live.RoleRef != want.RoleRef {
		return reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "ClusterRoleBinding", client.ObjectKeyFromObject(want))
	}
	if equality.Semantic.DeepEqual(live.Subjects, want.Subjects) && equality.Semantic.DeepEqual(live.OwnerReferences, want.OwnerReferences) {
		return nil
	}
	changed := live.DeepCopy()
	changed.Subjects, changed.OwnerReferences = want.Subjects, want.OwnerReferences
	if err := r.Patch(ctx, changed, client.MergeFrom(&live)); err != nil {
		return fmt.Errorf("changing ClusterRoleBinding %s: %w", want.Name, err)
	}
	return nil
}

// secretRole lets the virtual kubelet read the one Secret that holds its kubeconfig.
func (r *reconciler) secretRole(ctx context.Context, vn *offloadingv1beta1.VirtualNode) error {
	want := &rbacv1.Role{ObjectMeta: owned(vn, vn.Name+secretSuffix), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secretOf(vn)}, Verbs: []string{"get", "list", "watch"}}}}
	var live rbacv1.Role
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), &live)
	switch {
	case apierrors.IsNotFound(err):
		err = r.Create(ctx, want)
	case err == nil && !equality.Semantic.DeepEqual(live.Rules, want.Rules):
		if live.Labels[corev1beta1.ManagedLabel] != "true" {
			return reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "Role", client.ObjectKeyFromObject(want))
		}
		changed := live.DeepCopy()
		changed.Rules = want.Rules
		err = r.Patch(ctx, changed, client.MergeFrom(&live))
	}
	if err != nil {
		return fmt.Errorf("ensuring Role %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}

// unauthorize removes the account and its rights.
func (r *reconciler) unauthorize(ctx context.Context, s *scope) error {
	for _, name := range []string{rightsPrefix + s.vn.Name, s.vn.Name + secretSuffix} {
		if err := binding.Remove(ctx, r.Client, s.vn.Namespace, name); err != nil {
			return err
		}
	}
	account := metav1.ObjectMeta{Namespace: s.vn.Namespace, Name: s.vn.Name}
	role := account
	role.Name += secretSuffix
	for _, owned := range []client.Object{&corev1.ServiceAccount{ObjectMeta: account}, &rbacv1.Role{ObjectMeta: role}} {
		if s.terminating {
			break // They go with the namespace, and our rights to them may have gone already.
		}
		if err := r.removeOwned(ctx, s.vn, owned); err != nil {
			return err
		}
	}
	if err := r.removeClusterBinding(ctx, bootstrapRights+s.vn.Name); err != nil {
		return err
	}
	return r.removeClusterBinding(ctx, rightsPrefix+s.vn.Name)
}

// removeClusterBinding deletes a ClusterRoleBinding if it is there and ours.
func (r *reconciler) removeClusterBinding(ctx context.Context, name string) error {
	var live rbacv1.ClusterRoleBinding
	found, err := find(ctx, r.Live, client.ObjectKey{Name: name}, &live)
	if err != nil || !found || live.Labels[corev1beta1.ManagedLabel] != "true" {
		return err
	}
	if err := r.Delete(ctx, &live, client.Preconditions{UID: &live.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ClusterRoleBinding %s: %w", live.Name, err)
	}
	return nil
}

// removeOwned deletes an object if the VirtualNode owns it.
func (r *reconciler) removeOwned(ctx context.Context, vn *offloadingv1beta1.VirtualNode, o client.Object) error {
	key := client.ObjectKeyFromObject(o)
	if err := r.Live.Get(ctx, key, o); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading %T %s: %w", o, key, err)
	}
	if !metav1.IsControlledBy(o, vn) {
		return nil
	}
	uid := o.GetUID()
	if err := r.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", o, key, err)
	}
	return nil
}
