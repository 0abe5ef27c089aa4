package authenticate

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// handshake carries what the steps learn.
type handshake struct {
	pair     *target.Pair
	proxyURL *string
	observer progress.Observer
	// changed by every step that wrote something.
	changed bool
	// nonceData filled by nonce, and whether the provider gives rights to the certificates of one peering.
	nonceData     []byte
	peeringGroups bool
	// answer filled by sign: the Secret with signature, public key and CSR.
	answer *corev1.Secret
	// accepted filled by inPlace or tenant: the Tenant with its certificate.
	accepted *authv1beta1.Tenant
	// renewed says that identity keeps the certificate that it has, filled by inPlace.
	keepCertificate bool
}

func (h *handshake) note(change target.Change) { h.changed = h.changed || change != target.Unchanged }

// namespaces makes both tenant namespaces.
func (h *handshake) namespaces(ctx context.Context) error {
	for _, side := range []struct {
		cluster      *target.Cluster
		name, peerID string
	}{
		{h.pair.Consumer, h.pair.ConsumerNamespace(), h.pair.ProviderID},
		{h.pair.Provider, h.pair.ProviderNamespace(), h.pair.ConsumerID},
	} {
		err := progress.Run(ctx, h.observer, side.cluster.Name, "Preparing tenant namespace "+side.name,
			func(ctx context.Context, task progress.Task) (string, error) {
				change, err := EnsureNamespace(ctx, task, side.cluster, side.peerID)
				h.note(change)
				return fmt.Sprintf("Tenant namespace %s %s", side.name, change), err
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// EnsureNamespace makes the tenant namespace for a peer; one that is being deleted is waited for first.
func EnsureNamespace(ctx context.Context, task progress.Task, cluster *target.Cluster, peerID string) (target.Change, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1beta1.TenantNamespacePrefix + peerID}}
	err := await.Until(ctx, task, "an earlier "+cluster.Describe(namespace)+" to be gone", func(ctx context.Context) (bool, string, error) {
		found, err := cluster.Get(ctx, namespace)
		return !found || namespace.DeletionTimestamp.IsZero(), "it is being deleted", err
	})
	if err != nil {
		return "", err
	}
	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name}}
	return cluster.Ensure(ctx, namespace, func() error {
		if owner := namespace.Labels[corev1beta1.RemoteClusterIDLabel]; owner != "" && owner != peerID {
			return failure.Unmet("remove the label or the namespace", "the namespace belongs to cluster %s by its label %s",
				owner, corev1beta1.RemoteClusterIDLabel)
		}
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, corev1beta1.TenantNamespaceLabel, "true")
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, corev1beta1.RemoteClusterIDLabel, peerID)
		return nil
	})
}

// inPlace tells whether an earlier run got through, so that no new handshake is needed.
func (h *handshake) inPlace(ctx context.Context) (bool, error) {
	object, tenant := h.newIdentity(), h.newTenant()
	for _, read := range []func() (bool, error){
		func() (bool, error) { return h.pair.Consumer.Get(ctx, object) },
		func() (bool, error) { return h.pair.Provider.Get(ctx, tenant) },
	} {
		if found, err := read(); err != nil || !found {
			return false, err
		}
	}
	if !h.proxied(tenant) {
		return false, nil
	}
	if !tenantAccepted(tenant) || !identityUsable(object) {
		return false, nil
	}
	h.accepted, h.keepCertificate = tenant, true
	return true, nil
}

// proxied tells whether the Tenant has the proxy that is asked for.
func (h *handshake) proxied(tenant *authv1beta1.Tenant) bool {
	return h.proxyURL == nil || ptr.Deref(tenant.Spec.ProxyURL, "") == *h.proxyURL
}

func (h *handshake) newTenant() *authv1beta1.Tenant {
	return &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: h.pair.ProviderNamespace(), Name: h.pair.ConsumerID}}
}

func (h *handshake) newIdentity() *authv1beta1.Identity {
	return &authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{
		Namespace: h.pair.ConsumerNamespace(), Name: authv1beta1.ControlPlaneIdentityPrefix + h.pair.ProviderID,
	}}
}

// nonce asks the provider for one.
func (h *handshake) nonce(ctx context.Context) error {
	provider := h.pair.Provider
	return progress.Run(ctx, h.observer, provider.Name, "Asking for a nonce", func(ctx context.Context, task progress.Task) (string, error) {
		if err := h.dropSpentNonce(ctx, task); err != nil {
			return "", err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.pair.ProviderNamespace(), Name: authv1beta1.NonceSecret}}
		change, err := provider.Ensure(ctx, secret, func() error {
			metav1.SetMetaDataLabel(&secret.ObjectMeta, authv1beta1.NonceLabel, "true")
			metav1.SetMetaDataLabel(&secret.ObjectMeta, corev1beta1.RemoteClusterIDLabel, h.pair.ConsumerID)
			return nil
		})
		h.note(change)
		if err != nil {
			return "", err
		}
		err = await.Until(ctx, task, "the nonce in "+provider.Describe(secret), func(ctx context.Context) (bool, string, error) {
			_, err := provider.Get(ctx, secret)
			h.nonceData = secret.Data[authv1beta1.NonceKey]
			h.peeringGroups = secret.Annotations[authv1beta1.PeeringGroupsAnnotation] == "true"
			return len(h.nonceData) > 0, "the provider's controller manager has not filled it in yet", err
		})
		return "Nonce received", err
	})
}

// dropSpentNonce removes a nonce that served a Tenant which is not there any more.
func (h *handshake) dropSpentNonce(ctx context.Context, task progress.Task) error {
	provider := h.pair.Provider
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.pair.ProviderNamespace(), Name: authv1beta1.NonceSecret}}
	found, err := provider.Get(ctx, secret)
	if err != nil || !found {
		return err
	}
	user := secret.Annotations[authv1beta1.NonceUsedByAnnotation]
	tenant := h.newTenant()
	exists, err := provider.Get(ctx, tenant)
	if err != nil || user == "" || exists && string(tenant.UID) == user {
		return err
	}
	h.changed = true
	if err := provider.Remove(ctx, secret); err != nil {
		return err
	}
	spent := secret.UID
	return await.Until(ctx, task, "the spent nonce to be gone", func(ctx context.Context) (bool, string, error) {
		found, err := provider.Get(ctx, secret)
		return !found || secret.UID != spent, "it is being deleted", err
	})
}

// sign has the consumer answer the nonce.
func (h *handshake) sign(ctx context.Context) error {
	consumer := h.pair.Consumer
	return progress.Run(ctx, h.observer, consumer.Name, "Signing the nonce", func(ctx context.Context, task progress.Task) (string, error) {
		spent, err := h.dropSpentKey(ctx, task)
		if err != nil {
			return "", err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.pair.ConsumerNamespace(), Name: authv1beta1.SignedNonceSecret}}
		change, err := consumer.Ensure(ctx, secret, func() error {
			metav1.SetMetaDataLabel(&secret.ObjectMeta, authv1beta1.SignedNonceLabel, "true")
			metav1.SetMetaDataLabel(&secret.ObjectMeta, corev1beta1.RemoteClusterIDLabel, h.pair.ProviderID)
			delete(secret.Annotations, authv1beta1.PeeringGroupsAnnotation)
			if h.peeringGroups {
				metav1.SetMetaDataAnnotation(&secret.ObjectMeta, authv1beta1.PeeringGroupsAnnotation, "true")
			}
			if spent || !bytes.Equal(secret.Data[authv1beta1.NonceKey], h.nonceData) {
				// The answer to another nonce, or with another key, must not be taken for the answer to this one.
				secret.Data = map[string][]byte{authv1beta1.NonceKey: h.nonceData}
			}
			return nil
		})
		h.note(change)
		if err != nil {
			return "", err
		}
		err = await.Until(ctx, task, "the signature in "+consumer.Describe(secret), func(ctx context.Context) (bool, string, error) {
			found, err := consumer.Get(ctx, secret)
			for _, key := range []string{authv1beta1.SignedNonceKey, authv1beta1.CSRKey, authv1beta1.PublicKeyKey} {
				if len(secret.Data[key]) == 0 {
					return false, "the consumer's controller manager has not filled it in yet", err
				}
			}
			return found, "", err
		})
		h.answer = secret
		return "Nonce signed", err
	})
}
