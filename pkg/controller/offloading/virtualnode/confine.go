package virtualnode

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// list names the node of a VirtualNode among those that the admission policy confines, before its virtual kubelet may ask for the node's
// certificate. The name stays when the VirtualNode goes: certificates are valid longer.
func (r *reconciler) list(ctx context.Context, s *scope) error {
	var live rbacv1.RoleBinding
	key := client.ObjectKey{Namespace: r.Namespace, Name: offloadingv1beta1.VirtualNodesPolicy}
	found, err := r.find(ctx, key, &live)
	if err != nil {
		return err
	}
	if !found {
		return reconcile.Refuse(offloadingv1beta1.ReasonPolicyMissing, fmt.Errorf(
			"the RoleBinding %s, which tells the admission policy of the same name who is a virtual node, is missing: upgrade the chart", key))
	}
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: identity.NodeUser(s.vn.Name)}
	if slices.Contains(live.Subjects, user) {
		return nil
	}
	changed := live.DeepCopy()
	changed.Subjects = append(changed.Subjects, user)
	if err := r.Update(ctx, changed); err != nil {
		return fmt.Errorf("adding Node %s to RoleBinding %s: %w", s.vn.Name, key, err)
	}
	return nil
}

// confined refuses to give rights that nothing confines.
func (r *reconciler) confined(ctx context.Context) error {
	var policy admissionregistrationv1.ValidatingAdmissionPolicyBinding
	err := r.Live.Get(ctx, client.ObjectKey{Name: offloadingv1beta1.VirtualNodesPolicy}, &policy)
	if apierrors.IsNotFound(err) {
		return reconcile.Refuse(offloadingv1beta1.ReasonPolicyMissing, fmt.Errorf(
			"the ValidatingAdmissionPolicyBinding %s, which confines virtual kubelets that are no nodes, is missing: "+
				"upgrade the chart, or set virtualKubelet.nodeIdentity to node",
			offloadingv1beta1.VirtualNodesPolicy))
	}
	if err != nil {
		return fmt.Errorf("reading ValidatingAdmissionPolicyBinding %s: %w", offloadingv1beta1.VirtualNodesPolicy, err)
	}
	return nil
}
