package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// KeySecretName is the name of the Secret that holds the private key of an Identity.
func KeySecretName(identityName string) string { return authv1beta1.KeySecretPrefix + identityName }

// Keys is what a key Secret holds.
type Keys struct {
	// Current is the key of the present certificate.
	Current identity.KeyPair
	// Next is the key that a running renewal introduces; empty if none runs.
	Next identity.KeyPair
	// Secret they were read from.
	Secret *corev1.Secret
}

// HasNext tells whether a renewal introduces a key.
func (k Keys) HasNext() bool { return k.Next.Signer() != nil }

// Keys returns the keys of an Identity, or nil if it has none. A Secret that cannot be read as keys is a terminal error: it is
// never overwritten, because a certificate may depend on it.
func (s Store) Keys(ctx context.Context, namespace, identityName string) (*Keys, error) {
	secret, err := s.Get(ctx, namespace, KeySecretName(identityName))
	if err != nil || secret == nil {
		return nil, err
	}
	keys := &Keys{Secret: secret}
	if keys.Current, err = identity.KeyPairFromData(secret.Data); err != nil {
		return nil, reconcile.Terminate(authv1beta1.ReasonKeyMissing,
			fmt.Errorf("reading the keys in Secret %s/%s (delete it and peer again): %w", namespace, secret.Name, err))
	}
	if next := secret.Data[authv1beta1.NextPrivateKeyKey]; len(next) != 0 {
		if keys.Next, err = identity.ParseKeyPair(next); err != nil {
			return nil, reconcile.Terminate(authv1beta1.ReasonKeyMissing,
				fmt.Errorf("reading %s in Secret %s/%s (delete that entry): %w", authv1beta1.NextPrivateKeyKey, namespace, secret.Name, err))
		}
	}
	return keys, nil
}

// EnsureKeys returns the keys of an Identity, made now if there are none. The owners keep the Secret alive: it goes with the
// last of them.
func (s Store) EnsureKeys(ctx context.Context, namespace, identityName, remoteID string, algorithm identity.Algorithm, owners ...client.Object) (*Keys, error) {
	keys, err := s.Keys(ctx, namespace, identityName)
	if err != nil {
		return nil, err
	}
	if keys != nil {
		return keys, s.Own(ctx, keys, owners...)
	}
	pair, err := identity.NewKeyPair(algorithm)
	if err != nil {
		return nil, fmt.Errorf("making the key of Identity %s/%s: %w", namespace, identityName, err)
	}
	data, err := pair.Data()
	if err != nil {
		return nil, fmt.Errorf("making the key of Identity %s/%s: %w", namespace, identityName, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: KeySecretName(identityName),
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: remoteID},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
	return &Keys{Current: pair, Secret: secret}, s.owned(ctx, nil, secret, owners...)
}

// Own adds owners to a Secret of ours, if they are missing.
func (s Store) Own(ctx context.Context, keys *Keys, owners ...client.Object) error {
	read := keys.Secret
	keys.Secret = read.DeepCopy()
	return s.owned(ctx, read, keys.Secret, owners...)
}

// owned has a Secret with keys be there, with these owners too. It is ours whatever its labels say: it was read as keys.
func (s Store) owned(ctx context.Context, read, secret *corev1.Secret, owners ...client.Object) error {
	for _, owner := range owners {
		if err := controllerutil.SetOwnerReference(owner, secret, s.Client.Scheme()); err != nil {
			return fmt.Errorf("setting the owner of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
	}
	return s.Known(ctx, read, keep.Wanted{Object: secret, Ours: keep.Whoever})
}

// SetNext stores the key that a renewal introduces.
func (s Store) SetNext(ctx context.Context, keys *Keys, next identity.KeyPair) error {
	private, err := next.PrivatePEM()
	if err != nil {
		return fmt.Errorf("storing the next key in Secret %s/%s: %w", keys.Secret.Namespace, keys.Secret.Name, err)
	}
	secret := keys.Secret.DeepCopy()
	secret.Data[authv1beta1.NextPrivateKeyKey] = private
	if err := s.Update(ctx, secret); err != nil {
		return err
	}
	keys.Secret, keys.Next = secret, next
	return nil
}

// Promote makes the next key the current one, in one write.
func (s Store) Promote(ctx context.Context, keys *Keys) error {
	data, err := keys.Next.Data()
	if err != nil {
		return fmt.Errorf("promoting the next key in Secret %s/%s: %w", keys.Secret.Namespace, keys.Secret.Name, err)
	}
	secret := keys.Secret.DeepCopy()
	secret.Data = data
	if err := s.Update(ctx, secret); err != nil {
		return err
	}
	keys.Secret, keys.Current, keys.Next = secret, keys.Next, identity.KeyPair{}
	return nil
}
