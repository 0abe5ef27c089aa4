package binding

import (
	"context"
	"fmt"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// New returns a RoleBinding of ours to a ClusterRole.
func New(namespace, name, clusterRole string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{corev1beta1.ManagedLabel: "true"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   subjects,
	}
}

// Group returns the subject for a group of users.
func Group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

// ServiceAccount returns the subject for a ServiceAccount.
func ServiceAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// Ensure makes a RoleBinding what is wanted. Nothing is written if it is that already. A wanted roleRef that differs from the
// live one, which Kubernetes does not let change, makes it delete and create the object.
func Ensure(ctx context.Context, c client.Client, want *rbacv1.RoleBinding) error {
	var live rbacv1.RoleBinding
	key := client.ObjectKeyFromObject(want)
	switch err := c.Get(ctx, key, &live); {
	case apierrors.IsNotFound(err):
		return create(ctx, c, want)
	case err != nil:
		return fmt.Errorf("reading RoleBinding %s: %w", key, err)
	}
	if live.Labels[corev1beta1.ManagedLabel] != "true" {
		return conflict(key)
	}
	if live.RoleRef != want.RoleRef {
		if err := remove(ctx, c, &live); err != nil {
			return err
		}
		return create(ctx, c, want)
	}
	changed := live.DeepCopy()
	changed.Subjects = want.Subjects
	changed.Labels, changed.Annotations = merged(live.Labels, want.Labels), merged(live.Annotations, want.Annotations)
	if want.OwnerReferences != nil {
		changed.OwnerReferences = want.OwnerReferences
	}
	if equality.Semantic.DeepEqual(&live, changed) {
		return nil
	}
	if err := c.Patch(ctx, changed, client.MergeFromWithOptions(&live, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing RoleBinding %s: %w", key, err)
	}
	return nil
}

// Remove deletes a RoleBinding if it is there and ours.
func Remove(ctx context.Context, c client.Client, namespace, name string) error {
	var live rbacv1.RoleBinding
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := c.Get(ctx, key, &live); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading RoleBinding %s: %w", key, err)
	}
	if live.Labels[corev1beta1.ManagedLabel] != "true" {
		return nil
	}
	return remove(ctx, c, &live)
}

func create(ctx context.Context, c client.Client, want *rbacv1.RoleBinding) error {
	err := c.Create(ctx, want.DeepCopy())
	switch {
	case apierrors.IsAlreadyExists(err):
		// The cache has not seen it yet, or it is not ours; the next look tells.
		return reconcile.Wait(offloadingv1beta1.ReasonNameConflict,
			fmt.Sprintf("waiting for RoleBinding %s/%s, which exists already", want.Namespace, want.Name), retry)
	case err != nil:
		return fmt.Errorf("creating RoleBinding %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}

func remove(ctx context.Context, c client.Client, live *rbacv1.RoleBinding) error {
	err := c.Delete(ctx, live, client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting RoleBinding %s/%s: %w", live.Namespace, live.Name, err)
	}
	return nil
}

func conflict(key client.ObjectKey) error {
	return reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "RoleBinding", key)
}

func merged(live, want map[string]string) map[string]string {
	if len(want) == 0 {
		return live
	}
	out := map[string]string{}
	maps.Copy(out, live)
	maps.Copy(out, want)
	return out
}
