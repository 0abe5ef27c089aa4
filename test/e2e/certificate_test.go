package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWebhookCertificate shows that the rights of what keeps the certificate of the webhooks are enough to see that it was deleted, with all that
// it was made of, or that API servers were told to trust another one.
func TestWebhookCertificate(t *testing.T) {
	the.alone(t)
	certificate := &corev1.Secret{ObjectMeta: named("liqo", "liqo-webhook-certs")}
	the.rome.reads(t, certificate)
	before := certificate.Data["ca.crt"]
	the.rome.deletes(t, certificate)
	the.rome.deletes(t, &corev1.Secret{ObjectMeta: named("liqo", "liqo-webhook-authority")})
	trusted := func(known []byte) check {
		return func(ctx context.Context) (bool, string) {
			secret, mutating, validating := &corev1.Secret{}, &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := errors.Join(the.rome.Get(ctx, client.ObjectKeyFromObject(certificate), secret), the.rome.Get(ctx, client.ObjectKey{Name: "liqo-webhook"}, mutating),
				the.rome.Get(ctx, client.ObjectKey{Name: "liqo-webhook"}, validating)); err != nil {
				return false, err.Error()
			}
			bundle := secret.Data["ca.crt"]
			differ := 0
			for i := range mutating.Webhooks {
				if !bytes.Equal(mutating.Webhooks[i].ClientConfig.CABundle, bundle) {
					differ++
				}
			}
			for i := range validating.Webhooks {
				if !bytes.Equal(validating.Webhooks[i].ClientConfig.CABundle, bundle) {
					differ++
				}
			}
			return differ == 0 && len(bundle) > 0 && !bytes.Equal(bundle, known), fmt.Sprintf("%d webhooks do not trust the present authority", differ)
		}
	}
	eventually(t, soon, "a new certificate that API servers were told to trust", trusted(before))
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	mutating.Name = "liqo-webhook"
	the.rome.changes(t, mutating, func() {
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].ClientConfig.CABundle = before
		}
	})
	eventually(t, soon, "API servers to be told again whom to trust", trusted(before))
}
