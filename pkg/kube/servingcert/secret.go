package servingcert

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// ExpireTimeAnnotation on the Secrets is the time when the serving certificate expires (RFC 3339). It also marks them as made
// by us.
const ExpireTimeAnnotation = "liqo.io/certificate-expire-time"

// read returns a Secret that is ours to write. One that is not there has no resourceVersion.
func (k *Keeper) read(ctx context.Context, name string) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: k.options.Namespace, Name: name}
	secret := &corev1.Secret{}
	err := k.options.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: corev1.SecretTypeTLS}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if !ours(secret) {
		return nil, fmt.Errorf("the Secret %s holds data that Liqo did not put there: delete it, or label it %s=true to let Liqo replace the data",
			key, corev1beta1.WebhookLabel)
	}
	return secret, nil
}

// issue returns what the authority's Secret holds after it was brought up to date.
func (k *Keeper) issue(ctx context.Context, authority, served *corev1.Secret) (Material, error) {
	now := k.options.Clock.Now()
	material, earlier := Parse(authority.Data), Parse(served.Data)
	// Releases before this one kept the key beside the certificate, where controller managers read it. It is followed by another one in the
	// usual order, so that API servers trust what is served all the time; the same after a way back to such a release.
	wasRead := earlier.AuthorityKey != nil
	if wasRead || len(material.Authorities) == 0 {
		material = earlier
	}
	plan := Decide(material, k.options.DNSNames, now)
	plan.Authority = plan.Authority || wasRead
	if plan.Empty() {
		return material, nil
	}
	material, err := Execute(material, plan, k.options.DNSNames, now)
	if err != nil {
		return Material{}, err
	}
	data, err := material.Data()
	if err != nil {
		return Material{}, err
	}
	if err := k.write(ctx, authority, data, material); err != nil {
		return Material{}, err
	}
	ctrl.LoggerFrom(ctx).Info("Issued webhook certificates", "secret", client.ObjectKeyFromObject(authority).String(), "newAuthority", plan.Authority,
		"newServingCertificate", plan.Serving, "droppedAuthorities", len(plan.Drop), "expires", material.Serving.Leaf.NotAfter)
	return material, nil
}

// serve gives controller managers what they serve with: all but the authority's key.
func (k *Keeper) serve(ctx context.Context, served *corev1.Secret, material Material, token string) error {
	data, err := material.Data()
	if err != nil {
		return err
	}
	delete(data, AuthorityPrivateKey)
	data[TokenKey] = []byte(token)
	if maps.EqualFunc(data, served.Data, bytes.Equal) {
		return nil
	}
	return k.write(ctx, served, data, material)
}

// write creates or updates a Secret. Whoever writes first wins: others get a conflict, and read the result.
func (k *Keeper) write(ctx context.Context, secret *corev1.Secret, data map[string][]byte, material Material) error {
	secret.Data = data
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	maps.Copy(secret.Labels, k.options.WebhookSelector)
	secret.Labels[corev1beta1.ManagedLabel] = "true"
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[ExpireTimeAnnotation] = material.Serving.Leaf.NotAfter.UTC().Format(time.RFC3339)
	key := client.ObjectKeyFromObject(secret)
	if secret.ResourceVersion == "" {
		if err := k.options.Client.Create(ctx, secret, fieldManager); err != nil {
			return fmt.Errorf("creating Secret %s: %w", key, err)
		}
		return nil
	}
	if err := k.options.Client.Update(ctx, secret, fieldManager); err != nil {
		return fmt.Errorf("updating Secret %s: %w", key, err)
	}
	return nil
}

// ours tells whether we may write the Secret: it carries our mark, or nothing at all (made in advance by a chart).
func ours(secret *corev1.Secret) bool {
	if secret.Annotations[ExpireTimeAnnotation] != "" || secret.Labels[corev1beta1.WebhookLabel] == "true" {
		return true
	}
	for _, value := range secret.Data {
		if len(value) > 0 {
			return false
		}
	}
	return true
}
