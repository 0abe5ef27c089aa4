package secrets

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// permissionRetry is how soon a request is tried again that the rights in a new tenant namespace do not allow yet.
const permissionRetry = time.Second

// Store reads and writes Secrets in tenant namespaces.
type Store struct {
	// Client writes.
	Client client.Client
	// Reader reads live: Secrets are in no cache.
	Reader client.Reader
}

// Get returns a Secret, or nil if there is none.
func (s Store) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, pending(fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err))
	}
	return secret, nil
}

// Update writes a Secret that was read before; a change made meanwhile by somebody else makes it fail.
func (s Store) Update(ctx context.Context, secret *corev1.Secret) error {
	if err := s.Client.Update(ctx, secret); err != nil {
		return pending(fmt.Errorf("updating Secret %s/%s: %w", secret.Namespace, secret.Name, err))
	}
	return nil
}

// Keep has a Secret be there as it is wanted.
func (s Store) Keep(ctx context.Context, w keep.Wanted) error {
	_, err := s.keeper().Keep(ctx, w)
	return pending(err)
}

// Known is Keep for a Secret that was read already; nil if there is none.
func (s Store) Known(ctx context.Context, read *corev1.Secret, w keep.Wanted) error {
	_, err := keep.Known(ctx, s.keeper(), read, w)
	return pending(err)
}

func (s Store) keeper() keep.Keeper {
	return keep.Keeper{Client: s.Client, Reader: s.Reader, Reason: authv1beta1.ReasonNotOurs}
}

// pending makes a wait of a missing permission: the binding in a new tenant namespace takes a moment to be effective.
func pending(err error) error {
	if apierrors.IsForbidden(err) {
		return reconcile.Wait(authv1beta1.ReasonPermissionPending,
			"waiting for the rights in the tenant namespace: "+err.Error(), permissionRetry)
	}
	return err
}
