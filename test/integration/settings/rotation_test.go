package settings

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

func holding(ctx context.Context, name string) (fixture.Held, error) {
	return fixture.Holding(ctx, env.Rome.Client, fixture.ConsumerNamespace, name)
}

// credential names a certificate as the API server does in its audit log.
func credential(certificate []byte) string {
	block, _ := pem.Decode(certificate)
	return fmt.Sprintf("X509SHA256=%x", sha256.Sum256(block.Bytes))
}

// G1: before a certificate expires the consumer asks, by a Renew, for one with a new key, and everything that used the old one
// goes on with the new one without a restart.
func TestKeysAreRotated(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	for name, tc := range map[string]struct {
		identity string
		subject  identity.Subject
		// use makes a component write at milan with the identity.
		use func(t *testing.T)
	}{
		"of the control plane": {authv1beta1.ControlPlaneIdentityPrefix + "milan", identity.TenantSubject("rome"), func(t *testing.T) { _ = env.Offloaded(t) }},
		"of a slice": {authv1beta1.ResourceSliceIdentityPrefix + w.Node, identity.SliceSubject("rome", w.Node), func(t *testing.T) {
			fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, fixture.Unique("pod"))))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := holding(t.Context(), tc.identity)
			fixture.Must(t, "reading the identity", err)
			peering := identity.CertificatePeering(before.Identity.Spec.AuthParams.SignedCRT)
			if peering == "" {
				t.Error("the certificate names no peering")
			}
			tc.subject = tc.subject.InPeering(peering)
			before.Expire(t, env.Rome.Client, env.Environment.PKI(t, env.Milan))
			after := before.Renewed(t, env.Rome.Client)
			if err := identity.CheckCertificate(after.Identity.Spec.AuthParams.SignedCRT, after.Key.Public(), tc.subject, time.Now()); err != nil {
				t.Errorf("the new certificate is not the identity's: %v", err)
			}
			encoded := []byte(base64.StdEncoding.EncodeToString(after.Identity.Spec.AuthParams.SignedCRT))
			fixture.Await(t, fixture.Patience, "the kubeconfig to hold the certificate", func(ctx context.Context) (bool, string) {
				after, err = holding(ctx, tc.identity)
				return err == nil && bytes.Contains(after.Kubeconfig, encoded), fmt.Sprint(err)
			})
			if due, _, err := identity.NeedsRenewal(after.Identity.Spec.AuthParams.SignedCRT, time.Now()); err != nil || due {
				t.Errorf("the new certificate is due at once: %v, %v", due, err)
			}
			fixture.Await(t, 5*fixture.Patience, "the running components to show the new certificate", func(ctx context.Context) (bool, string) {
				// A slice's key is certified by the answer to the Renew, and then once more by the slice's own status.
				if after, err = holding(ctx, tc.identity); err != nil {
					return false, err.Error()
				}
				want := credential(after.Identity.Spec.AuthParams.SignedCRT)
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
	env.OnlyExpectedSubjects(t)
}
