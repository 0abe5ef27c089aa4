package virtualnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/reconcile"
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
	for _, want := range []client.Object{nodeRole(s.vn, owner), leaseRole(s.vn, owner)} {
		if err := r.role(ctx, want); err != nil {
			return err
		}
	}
	account := binding.ServiceAccount(s.vn.Namespace, s.vn.Name)
	name := nodeRights + s.vn.Name
	for namespace, role := range map[string]string{corev1.NamespaceNodeLease: name, clientCANamespace: clientCARole} {
		rb := binding.New(namespace, name, "", account)
		rb.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}
		rb.OwnerReferences, rb.Labels = owner, accountLabels(s.vn)
		if err := binding.Ensure(ctx, r.Client, rb); err != nil {
			return err
		}
	}
	for bound, role := range map[string]string{name: name, accountRights + s.vn.Name: offloadingv1beta1.VirtualKubeletAccountClusterRole} {
		crb := newClusterBinding(s.vn, bound, role)
		crb.OwnerReferences = owner
		if err := r.clusterBinding(ctx, crb); err != nil {
			return err
		}
	}
	return nil
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
	name := nodeRights + s.vn.Name
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}},
	} {
		if err := r.removeManaged(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// unbindAccount removes the bindings, first that to what only the admission policy confines.
func (r *reconciler) unbindAccount(ctx context.Context, s *scope) error {
	for _, prefix := range []string{accountRights, nodeRights} {
		if err := r.removeClusterBinding(ctx, prefix+s.vn.Name); err != nil {
			return err
		}
	}
	for _, namespace := range []string{corev1.NamespaceNodeLease, clientCANamespace} {
		if err := binding.Remove(ctx, r.Client, namespace, nodeRights+s.vn.Name); err != nil {
			return err
		}
	}
	return nil
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

// role makes a Role or ClusterRole what is wanted, unless somebody else made it.
func (r *reconciler) role(ctx context.Context, want client.Object) error {
	live := want.DeepCopyObject().(client.Object)
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		err = r.Create(ctx, want)
		if err != nil {
			return fmt.Errorf("creating %T %s: %w", want, want.GetName(), err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", want, want.GetName(), err)
	}
	if live.GetLabels()[corev1beta1.ManagedLabel] != "true" {
		kind := "Role"
		if want.GetNamespace() == "" {
			kind = "ClusterRole"
		}
		return reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, kind, client.ObjectKeyFromObject(want))
	}
	changed := live.DeepCopyObject().(client.Object)
	changed.SetOwnerReferences(want.GetOwnerReferences())
	*rulesOf(changed) = *rulesOf(want)
	if equality.Semantic.DeepEqual(live, changed) {
		return nil
	}
	if err := r.Patch(ctx, changed, client.MergeFrom(live)); err != nil {
		return fmt.Errorf("changing %T %s: %w", want, want.GetName(), err)
	}
	return nil
}

// rulesOf are the rules of a Role or ClusterRole.
func rulesOf(o client.Object) *[]rbacv1.PolicyRule {
	if role, ok := o.(*rbacv1.Role); ok {
		return &role.Rules
	}
	return &o.(*rbacv1.ClusterRole).Rules
}

// removeManaged deletes an object if it is there and ours.
func (r *reconciler) removeManaged(ctx context.Context, o client.Object) error {
	name := o.GetName()
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading %T %s: %w", o, name, err)
	}
	if o.GetLabels()[corev1beta1.ManagedLabel] != "true" {
		return nil
	}
	if err := r.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", o, name, err)
	}
	return nil
}
