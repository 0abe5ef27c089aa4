package servingcert

import (
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

// ExpireTimeAnnotation on the Secret is the time when the serving certificate expires (RFC 3339). It also marks the Secret
// as made by us.
const ExpireTimeAnnotation = "liqo.io/certificate-expire-time"

// maxRaces bounds how often in a row another replica may be faster within one pass.
const maxRaces = 5

// +kubebuilder:rbac:groups="",resources=secrets,namespace=liqo,verbs=create
// +kubebuilder:rbac:groups="",resources=secrets,namespace=liqo,resourceNames=liqo-webhook-certs,verbs=get;list;watch;update

// ensureSecret returns what the Secret holds after it was brought up to date, by us or by another replica.
func (m *Manager) ensureSecret(ctx context.Context) (Material, error) {
	var err error
	for range maxRaces {
		var material Material
		if material, err = m.trySecret(ctx); err == nil {
			return material, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return Material{}, err
		}
	}
	return Material{}, err
}

func (m *Manager) trySecret(ctx context.Context) (Material, error) {
	o := m.options
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.SecretName}
	secret := &corev1.Secret{}
	err := o.Client.Get(ctx, key, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return Material{}, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	exists := err == nil
	if exists && !ours(secret) {
		return Material{}, fmt.Errorf("the Secret %s holds data that Liqo did not put there: delete it, or label it %s=true to let Liqo replace the data",
			key, corev1beta1.WebhookLabel)
	}
	now := o.Clock.Now()
	material := Parse(secret.Data)
	plan := Decide(material, o.DNSNames, now)
	if plan.Empty() {
		return material, nil
	}
	if material, err = Execute(material, plan, o.DNSNames, now); err != nil {
		return Material{}, err
	}
	if err := m.fill(secret, material); err != nil {
		return Material{}, err
	}
	if exists {
		if err := o.Client.Update(ctx, secret, fieldManager); err != nil {
			return Material{}, fmt.Errorf("updating Secret %s: %w", key, err)
		}
	} else if err := o.Client.Create(ctx, secret, fieldManager); err != nil {
		return Material{}, fmt.Errorf("creating Secret %s: %w", key, err)
	}
	ctrl.LoggerFrom(ctx).Info("Issued webhook certificates", "secret", key.String(), "newAuthority", plan.Authority,
		"newServingCertificate", plan.Serving, "droppedAuthorities", len(plan.Drop), "expires", material.Serving.Leaf.NotAfter)
	return material, nil
}

func (m *Manager) fill(secret *corev1.Secret, material Material) error {
	data, err := material.Data()
	if err != nil {
		return err
	}
	if secret.Name == "" {
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: m.options.Namespace, Name: m.options.SecretName}
		secret.Type = corev1.SecretTypeTLS
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, data)
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	maps.Copy(secret.Labels, m.options.WebhookSelector)
	secret.Labels[corev1beta1.ManagedLabel] = "true"
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[ExpireTimeAnnotation] = material.Serving.Leaf.NotAfter.UTC().Format(time.RFC3339)
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
