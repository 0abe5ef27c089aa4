package binding

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// Ensure makes the binding be as wanted, and tells whether it wrote.
func Ensure(ctx context.Context, c client.Client, want *rbacv1.RoleBinding) (bool, error) {
	if want.Labels == nil {
		want.Labels = map[string]string{}
	}
	want.Labels[corev1beta1.ManagedLabel] = "true"
	live := &rbacv1.RoleBinding{}
	err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		return true, create(ctx, c, want)
	case err != nil:
		return false, fmt.Errorf("reading RoleBinding %s/%s: %w", want.Namespace, want.Name, err)
	case live.Labels[corev1beta1.ManagedLabel] != "true":
		return false, reconcile.NotOurs(authv1beta1.ReasonNotOurs, "RoleBinding", client.ObjectKeyFromObject(want))
	case live.RoleRef != want.RoleRef:
		// A binding's role cannot be changed.
		if err := Remove(ctx, c, live); err != nil {
			return false, err
		}
		return true, create(ctx, c, want)
	case equality.Semantic.DeepEqual(live.Subjects, want.Subjects) && equality.Semantic.DeepEqual(live.OwnerReferences, want.OwnerReferences):
		return false, nil
	}
	updated := live.DeepCopy()
	updated.Subjects, updated.OwnerReferences = want.Subjects, want.OwnerReferences
	if err := c.Update(ctx, updated); err != nil {
		return false, fmt.Errorf("updating RoleBinding %s/%s: %w", want.Namespace, want.Name, err)
	}
	return true, nil
}

// Remove deletes a binding of ours that was read before; one that is gone already is fine.
func Remove(ctx context.Context, c client.Client, live *rbacv1.RoleBinding) error {
	uid := live.UID
	if err := c.Delete(ctx, live, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting RoleBinding %s/%s: %w", live.Namespace, live.Name, err)
	}
	return nil
}

func create(ctx context.Context, c client.Client, want *rbacv1.RoleBinding) error {
	if err := c.Create(ctx, want); err != nil {
		return fmt.Errorf("creating RoleBinding %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}
