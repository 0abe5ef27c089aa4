package system

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// held is what a consumer holds of one identity.
type held struct {
	identity *authv1beta1.Identity
	key      identity.KeyPair
	renewing bool
	// kubeconfig is the whole file.
	kubeconfig []byte
}

func holding(ctx context.Context, name string) (held, error) {
	h := held{identity: &authv1beta1.Identity{}}
	if err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: consumerNamespace, Name: name}, h.identity); err != nil {
		return h, err
	}
	secret := &corev1.Secret{}
	if err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: consumerNamespace, Name: authv1beta1.KeySecretPrefix + name}, secret); err != nil {
		return h, err
	}
	h.renewing = len(secret.Data[authv1beta1.NextPrivateKeyKey]) > 0
	var err error
	if h.key, err = identity.KeyPairFromData(secret.Data); err != nil {
		return h, err
	}
	config := &corev1.Secret{}
	if err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: consumerNamespace, Name: authv1beta1.KubeconfigSecretPrefix + name}, config); err != nil {
		return h, err
	}
	h.kubeconfig = config.Data[authv1beta1.KubeconfigKey]
	return h, nil
}

// credential names a certificate as the API server does in its audit log.
func credential(certificate []byte) string {
	block, _ := pem.Decode(certificate)
	return fmt.Sprintf("X509SHA256=%x", sha256.Sum256(block.Bytes))
}

// G1: before a certificate expires the consumer asks, by a Renew, for one with a new key, and everything that used the old one
// goes on with the new one without a restart.
func TestKeysAreRotated(t *testing.T) {
	w := peered(t)
	namespace := offloaded(t)
	for name, tc := range map[string]struct {
		identity string
		subject  identity.Subject
		// use makes a component write at milan with the identity.
		use func(t *testing.T)
	}{
		"of the control plane": {authv1beta1.ControlPlaneIdentityPrefix + "milan", identity.TenantSubject("rome"), func(t *testing.T) { _ = offloaded(t) }},
		"of a slice": {authv1beta1.ResourceSliceIdentityPrefix + w.node, identity.SliceSubject("rome", w.node), func(t *testing.T) {
			fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod(namespace, fixture.Unique("pod"))))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := holding(t.Context(), tc.identity)
			fixture.Must(t, "reading the identity", err)
			peering := identity.CertificatePeering(before.identity.Spec.AuthParams.SignedCRT)
			if peering == "" {
				t.Error("the certificate names no peering")
			}
			tc.subject = tc.subject.InPeering(peering)
			expire(t, before, tc.subject)
			after := held{}
			fixture.Await(t, 2*fixture.Patience, "a certificate with a new key", func(ctx context.Context) (bool, string) {
				if after, err = holding(ctx, tc.identity); err != nil {
					return false, err.Error()
				}
				certified := identity.CheckCertificate(after.identity.Spec.AuthParams.SignedCRT, after.key.Public(), tc.subject, time.Now())
				return !after.renewing && !identity.SamePublicKey(before.key.Public(), after.key.Public()) && certified == nil, fmt.Sprint(certified)
			})
			encoded := []byte(base64.StdEncoding.EncodeToString(after.identity.Spec.AuthParams.SignedCRT))
			fixture.Await(t, fixture.Patience, "the kubeconfig to hold the certificate", func(ctx context.Context) (bool, string) {
				after, err = holding(ctx, tc.identity)
				return err == nil && bytes.Contains(after.kubeconfig, encoded), fmt.Sprint(err)
			})
			if due, _, err := identity.NeedsRenewal(after.identity.Spec.AuthParams.SignedCRT, time.Now()); err != nil || due {
				t.Errorf("the new certificate is due at once: %v, %v", due, err)
			}
			fixture.Await(t, 5*fixture.Patience, "the running components to show the new certificate", func(ctx context.Context) (bool, string) {
				// A slice's key is certified by the answer to the Renew, and then once more by the slice's own status.
				if after, err = holding(ctx, tc.identity); err != nil {
					return false, err.Error()
				}
				want := credential(after.identity.Spec.AuthParams.SignedCRT)
				start := env.Milan.Recorder.Now(t)
				tc.use(t)
				var shown []string
				fixture.Await(t, fixture.Patience, "a write at milan as "+tc.subject.CommonName, func(context.Context) (bool, string) {
					for _, write := range env.Milan.Recorder.Since(t, start, func(user string) bool { return user == tc.subject.CommonName }) {
						shown = append(shown, write.Credential)
					}
					return len(shown) > 0, "none"
				})
				for _, one := range shown {
					if one != want {
						return false, fmt.Sprintf("%v, want %s", shown, want)
					}
				}
				return true, ""
			})
		})
	}
	onlyExpectedSubjects(t)
}

// expire gives an Identity a certificate that is as good as its own and due for renewal, until the renewal has begun. The
// slice's own certificate, which is younger, comes back as long as it fits the key.
func expire(t *testing.T, h held, subject identity.Subject) {
	t.Helper()
	due := env.Issue(t, env.Milan, subject, h.key.Public(), time.Now().Add(-time.Hour), time.Now().Add(15*time.Minute))
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"authParams": map[string]any{"signedCRT": due}}})
	fixture.Must(t, "encoding a patch", err)
	fixture.Await(t, fixture.Patience, "the renewal to begin", func(ctx context.Context) (bool, string) {
		now, err := holding(ctx, h.identity.Name)
		if err != nil {
			return false, err.Error()
		}
		if now.renewing || !identity.SamePublicKey(now.key.Public(), h.key.Public()) {
			return true, ""
		}
		err = env.Rome.Client.Patch(ctx, now.identity, client.RawPatch(types.MergePatchType, patch))
		return false, fmt.Sprintf("the Identity has a certificate that is due; error %v", err)
	})
}
