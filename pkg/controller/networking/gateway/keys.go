package gateway

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// keyLength is that of both keys of WireGuard, in bytes.
const keyLength = 32

// NewKeys makes the keys of a gateway, as a Secret holds them.
func NewKeys() (map[string][]byte, error) {
	private := make([]byte, keyLength)
	// It never fails: without random numbers the process ends.
	_, _ = rand.Read(private)
	// WireGuard keeps its keys so; the public key is the same either way.
	private[0] &= 248
	private[31] = private[31]&127 | 64
	key, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("making the keys of a gateway: %w", err)
	}
	return map[string][]byte{networkingv1beta1.PrivateKeyKey: private, networkingv1beta1.PublicKeyKey: key.PublicKey().Bytes()}, nil
}

// CheckKeys tells what is wrong with the keys of a Secret.
func CheckKeys(data map[string][]byte) error {
	private, public := data[networkingv1beta1.PrivateKeyKey], data[networkingv1beta1.PublicKeyKey]
	for name, value := range map[string][]byte{networkingv1beta1.PrivateKeyKey: private, networkingv1beta1.PublicKeyKey: public} {
		if len(value) != keyLength {
			return fmt.Errorf("its key %s has %d bytes; a key of WireGuard has %d, and is not encoded as text", name, len(value), keyLength)
		}
	}
	key, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil || !bytes.Equal(key.PublicKey().Bytes(), public) {
		return errors.New("its publicKey does not belong to its privateKey")
	}
	return nil
}

// keys sees to the Secret with the gateway's keys.
func (r *reconciler) keys(ctx context.Context, s *scope) error {
	name := s.gateway.secretRef.Name
	own := name == ""
	if own {
		name = networkingv1beta1.GatewayKeysSecret(s.gateway.GetName())
	}
	secret, err := r.Secrets.Get(ctx, s.gateway.GetNamespace(), name)
	switch {
	case err != nil:
		return err
	case secret == nil && own:
		secret, err = r.makeKeys(ctx, s, name)
		if err != nil {
			return err
		}
	case secret == nil:
		return reconcile.Wait(networkingv1beta1.ReasonSecretInvalid,
			fmt.Sprintf("waiting for Secret %s/%s, which spec.secretRef names", s.gateway.GetNamespace(), name), secretRetry)
	case own && metav1.GetControllerOf(secret) != nil && !metav1.IsControlledBy(secret, s.gateway):
		return taken("Secret", secret)
	}
	if err := CheckKeys(secret.Data); err != nil {
		return reconcile.Refuse(networkingv1beta1.ReasonSecretInvalid, fmt.Errorf("the Secret %s/%s cannot be used: %w", secret.Namespace, name, err))
	}
	s.secret = name
	return nil
}

// secretRetry is how soon a Secret is looked for again that the user has to make.
const secretRetry = 10 * time.Second

func (r *reconciler) makeKeys(ctx context.Context, s *scope, name string) (*corev1.Secret, error) {
	data, err := NewKeys()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.gateway.GetNamespace(), Name: name, Labels: s.labels(),
			OwnerReferences: []metav1.OwnerReference{s.controlledBy(s.gateway.Object, r.side.gateway)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
	return secret, r.Secrets.Known(ctx, nil, keep.Wanted{Object: secret})
}

// taken says that an object which the gateway needs is another gateway's, or nobody's. That of a gateway that was deleted goes soon.
func taken(kind string, object client.Object) error {
	return reconcile.Wait(networkingv1beta1.ReasonGatewayNameTaken, fmt.Sprintf(
		"waiting for %s %s/%s to go, which does not belong to this gateway: rename or delete it if it stays",
		kind, object.GetNamespace(), object.GetName()), takenRetry)
}

// takenRetry is how soon a name is tried again that somebody else has.
const takenRetry = 2 * time.Second
