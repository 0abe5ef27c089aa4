package authenticate

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

// settled is how often the same refusal must be seen in a row before it is believed: controllers may still be working on it.
const settled = 4

// hopeless maps the reasons after which waiting is of no use to what the user can do.
var hopeless = map[string]string{
	authv1beta1.ReasonNonceReplayed:               "run the same command again, which starts a new handshake",
	authv1beta1.ReasonSignatureVerificationFailed: "run the same command again, which starts a new handshake",
	authv1beta1.ReasonInvalidCSR:                  "run the same version of Liqo in both clusters",
	authv1beta1.ReasonInvalidTenant:               "correct or delete the object, and run the same command again",
	authv1beta1.ReasonAPIServerUnknown:            "tell the provider its address: liqoctl install --set apiServer.address=https://ADDRESS:PORT",
	authv1beta1.ReasonCSRMissing:                  "delete the object, and run the same command again",
	authv1beta1.ReasonPeeringRevoked:              "run the same version of Liqo in both clusters, and run the same command again",
	authv1beta1.ReasonTenantDrained:               "ask the provider to activate the tenant again",
	authv1beta1.ReasonCertificateMismatch:         "delete the object, and run the same command again",
	authv1beta1.ReasonKeyMissing:                  "delete the object, and run the same command again",
	authv1beta1.ReasonInvalidEndpoint: "tell the provider an address that this cluster can use: " +
		"liqoctl install --set apiServer.address=https://ADDRESS:PORT",
}

// Judge turns the Ready condition of an object into what a wait needs: done, what is missing, or a refusal once it was seen
// settled times in a row.
type Judge struct {
	object string
	reason string
	seen   int
}

// Look judges the condition that an object of the given generation has now.
func (j *Judge) Look(conditions []metav1.Condition, generation int64) (done bool, missing string, err error) {
	ready := meta.FindStatusCondition(conditions, corev1beta1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != 0 && ready.ObservedGeneration < generation {
		j.reason, j.seen = "", 0
		return false, "the controller manager has not looked at it yet", nil
	}
	if ready.Status == metav1.ConditionTrue {
		return true, "", nil
	}
	if j.reason != ready.Reason {
		j.reason, j.seen = ready.Reason, 0
	}
	j.seen++
	if next, end := hopeless[ready.Reason]; end && j.seen >= settled {
		return false, "", failure.New(failure.Failed, next, "%s was refused: %s: %s", j.object, ready.Reason, ready.Message)
	}
	return false, fmt.Sprintf("%s: %s", ready.Reason, ready.Message), nil
}

func tenantAccepted(tenant *authv1beta1.Tenant) bool {
	done, _, _ := new(Judge).Look(tenant.Status.Conditions, tenant.Generation)
	return done && tenant.DeletionTimestamp.IsZero() && tenant.Status.TenantNamespace != "" &&
		tenant.Status.AuthParams != nil && len(tenant.Status.AuthParams.SignedCRT) > 0
}

func identityUsable(identity *authv1beta1.Identity) bool {
	done, _, _ := new(Judge).Look(identity.Status.Conditions, identity.Generation)
	return done && identity.DeletionTimestamp.IsZero() && identity.Status.KubeconfigSecretRef != nil
}

// tenant introduces the consumer to the provider, and waits for its certificate.
func (h *handshake) tenant(ctx context.Context) error {
	provider := h.pair.Provider
	return progress.Run(ctx, h.observer, provider.Name, "Introducing tenant "+h.pair.ConsumerID, func(ctx context.Context, task progress.Task) (string, error) {
		tenant := h.newTenant()
		if found, err := provider.Get(ctx, tenant); err != nil || found && h.inReserve(tenant) {
			h.accepted = tenant
			return "Tenant " + tenant.Name + " has a certificate for the present key", err
		}
		tenant = h.newTenant()
		change, err := provider.Ensure(ctx, tenant, func() error {
			metav1.SetMetaDataLabel(&tenant.ObjectMeta, corev1beta1.RemoteClusterIDLabel, h.pair.ConsumerID)
			spec := &tenant.Spec
			spec.ClusterID = corev1beta1.ClusterID(h.pair.ConsumerID)
			spec.PublicKey = h.answer.Data[authv1beta1.PublicKeyKey]
			spec.CSR = h.answer.Data[authv1beta1.CSRKey]
			spec.Signature = h.answer.Data[authv1beta1.SignedNonceKey]
			switch {
			case h.proxied(tenant):
			case *h.proxyURL == "":
				spec.ProxyURL = nil
			default:
				spec.ProxyURL = h.proxyURL
			}
			return nil
		})
		h.note(change)
		if err != nil {
			return "", err
		}
		judge := &Judge{object: provider.Describe(tenant)}
		err = await.Until(ctx, task, provider.Describe(tenant)+" to be accepted", func(ctx context.Context) (bool, string, error) {
			if found, err := provider.Get(ctx, tenant); err != nil || !found {
				return false, "it is gone", err
			}
			done, missing, err := judge.Look(tenant.Status.Conditions, tenant.Generation)
			if err != nil || !done {
				return false, missing, err
			}
			return h.certified(tenant), "the certificate does not belong to the present key yet", nil
		})
		h.accepted = tenant
		return "Tenant " + tenant.Name + " accepted", err
	})
}

// identity gives the consumer what the provider answered, and waits until it can be used.
func (h *handshake) identity(ctx context.Context) error {
	consumer, providerID := h.pair.Consumer, h.pair.ProviderID
	return progress.Run(ctx, h.observer, consumer.Name, "Storing the identity for "+providerID, func(ctx context.Context, task progress.Task) (string, error) {
		object, answer := h.newIdentity(), h.accepted.Status.AuthParams
		change, err := consumer.Ensure(ctx, object, func() error {
			metav1.SetMetaDataLabel(&object.ObjectMeta, corev1beta1.RemoteClusterIDLabel, providerID)
			spec := &object.Spec
			spec.ClusterID, spec.Type = corev1beta1.ClusterID(providerID), authv1beta1.ControlPlaneIdentityType
			spec.Namespace = ptr.To(h.accepted.Status.TenantNamespace)
			merge(&spec.AuthParams, answer, h.keepCertificate)
			return nil
		})
		h.note(change)
		if err != nil {
			return "", err
		}
		judge := &Judge{object: consumer.Describe(object)}
		err = await.Until(ctx, task, consumer.Describe(object)+" to be usable", func(ctx context.Context) (bool, string, error) {
			if found, err := consumer.Get(ctx, object); err != nil || !found {
				return false, "it is gone", err
			}
			done, missing, err := judge.Look(object.Status.Conditions, object.Generation)
			return done && identityUsable(object), missing, err
		})
		return "Identity " + object.Name + " is usable", err
	})
}

// merge takes over the provider's answer. A certificate that is in use stays: it may have been renewed since.
func merge(have, answer *authv1beta1.AuthParams, keepCertificate bool) {
	if !bytes.Equal(have.CA, answer.CA) {
		have.CA = answer.CA
	}
	have.APIServer, have.ProxyURL, have.AwsConfig = answer.APIServer, answer.ProxyURL, answer.AwsConfig
	if !keepCertificate {
		have.SignedCRT = answer.SignedCRT
	}
}
