package peering

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/revoke"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// copied are what a thief copied of a consumer: certificates and keys of its control plane and of a virtual kubelet.
type copied struct {
	controlPlane, kubelet *fixture.User
	namespace, twin       string
}

// copiedFrom makes a consumer with a twin, and somebody who copied what it holds.
func copiedFrom(t *testing.T) (*world.Tenant, *copied) {
	t.Helper()
	c := env.NewTenant(t)
	slice := c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "10", "pods", "100"))
	thief := &copied{controlPlane: c.User, namespace: c.Namespace, twin: c.Twin(t),
		kubelet: env.Milan.Holding(t, "the copied virtual kubelet", slice.Status.AuthParams.SignedCRT, c.Key)}
	for what, err := range thief.tries(t.Context()) {
		fixture.Must(t, "before anything happened: "+what, err)
	}
	return c, thief
}

// tries are what the thief tries, and what came of it.
func (s *copied) tries(ctx context.Context) map[string]error {
	return map[string]error{
		"reading slices":         s.controlPlane.List(ctx, &authv1beta1.ResourceSliceList{}, client.InNamespace(s.namespace)),
		"reading namespace maps": s.controlPlane.List(ctx, &offloadingv1beta1.NamespaceMapList{}, client.InNamespace(s.namespace)),
		"reading pods":           s.kubelet.List(ctx, &offloadingv1beta1.ShadowPodList{}, client.InNamespace(s.twin)),
	}
}

// loses waits until the thief may do nothing any more.
func (s *copied) loses(t *testing.T, what string) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "the thief to have no rights "+what, func(ctx context.Context) (bool, string) {
		for what, err := range s.tries(ctx) {
			if !apierrors.IsForbidden(err) {
				return false, fmt.Sprintf("%s: %v", what, err)
			}
		}
		return true, ""
	})
}

// S16: certificates cannot be called back. Who copied those of a consumer has no rights once the consumer is peered anew, whether the Tenant
// is made again or gets the new key in its place; the consumer goes on with what it had.
func TestTheThiefDoesNotSurviveTheNextPeering(t *testing.T) {
	t.Parallel()
	t.Run("with another Tenant", func(t *testing.T) {
		t.Parallel()
		c, thief := copiedFrom(t)
		object := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: c.ID, Namespace: c.Namespace}}
		fixture.Must(t, "ending the peering", env.Milan.Client.Delete(t.Context(), object))
		thief.loses(t, "after the peering")
		again := &authv1beta1.Tenant{ObjectMeta: object.ObjectMeta, Spec: c.Introduction(t)}
		again.ResourceVersion = ""
		fixture.Await(t, fixture.Patience, "the consumer to be peered again with a new key", func(ctx context.Context) (bool, string) {
			err := env.Milan.Client.Create(ctx, again)
			return err == nil, fmt.Sprint(err)
		})
		c.Accepted(t)
		thief.loses(t, "in the next peering")
		renew := &authv1beta1.Renew{ObjectMeta: c.Marks("thief"), Spec: renewal(t, c, again.Spec)}
		if err := thief.controlPlane.Create(t.Context(), renew); !apierrors.IsForbidden(err) {
			t.Errorf("asking for a certificate of the thief's own: %v", err)
		}
	})
	t.Run("in place", func(t *testing.T) {
		t.Parallel()
		c, thief := copiedFrom(t)
		object := &authv1beta1.Tenant{}
		fixture.Must(t, "reading the Tenant", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.ID}, object))
		peered := object.DeepCopy()
		peered.Spec = c.Introduction(t)
		fixture.Must(t, "peering with a new key", env.Milan.Client.Patch(t.Context(), peered, client.MergeFrom(object)))
		c.Accepted(t)
		thief.loses(t, "in the next peering")
		// The slice waits for its consumer's next request, and is not denied meanwhile.
		slice := &authv1beta1.ResourceSlice{}
		fixture.Must(t, "reading the slice", c.User.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: world.GrantedSlice}, slice))
		if got := world.Status(slice, authv1beta1.AuthenticationCondition).Status; got != authv1beta1.Accepted {
			t.Errorf("the slice is %s", got)
		}
		next := slice.DeepCopy()
		var err error
		next.Spec.CSR, err = identity.NewCSR(c.Key.Signer(), identity.SliceSubject(c.ID, world.GrantedSlice).InPeering(c.Peering))
		fixture.Must(t, "making a CSR", err)
		fixture.Must(t, "asking for the slice's certificate", c.User.Patch(t.Context(), next, client.MergeFrom(slice)))
		fixture.Await(t, fixture.Patience, "the virtual kubelet to go on where it was", func(ctx context.Context) (bool, string) {
			if err := c.User.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil || slice.Status.AuthParams == nil {
				return false, fmt.Sprint(err, slice.Status.Conditions)
			}
			subject := identity.SliceSubject(c.ID, world.GrantedSlice).InPeering(c.Peering)
			if err := identity.CheckCertificate(slice.Status.AuthParams.SignedCRT, c.Key.Public(), subject, time.Now()); err != nil {
				return false, err.Error()
			}
			kubelet := env.Milan.Holding(t, "the next virtual kubelet", slice.Status.AuthParams.SignedCRT, c.Key)
			err := kubelet.List(ctx, &offloadingv1beta1.ShadowPodList{}, client.InNamespace(thief.twin))
			return err == nil, fmt.Sprint(err)
		})
		thief.loses(t, "beside the next virtual kubelet")
	})
}

// renewal asks for a control plane certificate with a key of one's own.
func renewal(t *testing.T, c *world.Tenant, introduced authv1beta1.TenantSpec) authv1beta1.RenewSpec {
	t.Helper()
	return authv1beta1.RenewSpec{ConsumerClusterID: corev1beta1.ClusterID(c.ID), PublicKey: introduced.PublicKey, CSR: introduced.CSR,
		IdentityType: authv1beta1.ControlPlaneIdentityType}
}

// G5: a provider revokes what it issued to a consumer while somebody works with it. Once a request was refused none is allowed any more,
// also not after the consumer was peered again.
func TestRevokedWhileRequestsRun(t *testing.T) {
	t.Parallel()
	c, thief := copiedFrom(t)
	kept := c.Shadow(thief.twin, "kept", world.Container(func(*corev1.Container) {}))
	fixture.Must(t, "creating a ShadowPod", env.Milan.Slice(t, c.ID, world.GrantedSlice).Create(t.Context(), kept))
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var mu sync.Mutex
	served, refused := map[string]int{}, map[string]int{}
	for what := range thief.tries(ctx) {
		group.Go(func() {
			for ctx.Err() == nil {
				err := thief.tries(ctx)[what]
				mu.Lock()
				switch {
				case err == nil && refused[what] > 0:
					t.Errorf("%s: allowed again after %d refusals", what, refused[what])
					refused[what] = 0
				case err == nil:
					served[what]++
				case apierrors.IsForbidden(err):
					refused[what]++
				}
				mu.Unlock()
			}
		})
	}
	defer group.Wait()
	defer stop()
	awaitAll := func(what string, counts map[string]int) {
		t.Helper()
		fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
			mu.Lock()
			defer mu.Unlock()
			for try := range thief.tries(ctx) {
				if counts[try] == 0 {
					return false, fmt.Sprintf("%s: %d", try, counts[try])
				}
			}
			return true, ""
		})
	}
	awaitAll("all requests to be served", served)
	_, err := revoke.Run(t.Context(), revoke.Options{Cluster: env.Milan.Target(t), PeerID: c.ID, Timeout: 2 * fixture.Patience})
	fixture.Must(t, "revoking", err)
	awaitAll("all requests to be refused", refused)

	object := &authv1beta1.Tenant{}
	fixture.Must(t, "reading the Tenant", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.ID}, object))
	if object.Status.AuthParams != nil {
		t.Error("the Tenant still has a certificate")
	}
	peered := object.DeepCopy()
	peered.Spec = c.Introduction(t)
	peered.Spec.RevokedPeering = object.Spec.RevokedPeering
	fixture.Must(t, "peering with a new key", env.Milan.Client.Patch(t.Context(), peered, client.MergeFrom(object)))
	c.Accepted(t)
	live := &offloadingv1beta1.ShadowPod{}
	fixture.Must(t, "reading what the consumer had", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), live))
	if live.UID != kept.UID || live.DeletionTimestamp != nil {
		t.Error("what the consumer had was taken with its certificates")
	}
	thief.loses(t, "beside the consumer that was peered again")
}

// S16: who copied the control plane's certificate and key cannot renew it once the consumer has; a thief who is first shows, because the
// consumer is refused.
func TestACopiedKeyDoesNotRenew(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	subject := identity.TenantSubject(c.ID).InPeering(c.Peering)
	renew := func(t *testing.T, name string, signer identity.KeyPair) (identity.KeyPair, *authv1beta1.Renew) {
		t.Helper()
		next, err := identity.NewKeyPair(identity.AlgorithmEd25519)
		fixture.Must(t, "making a key", err)
		public, err := next.PublicPEM()
		fixture.Must(t, "encoding a key", err)
		csr, err := identity.NewCSR(next.Signer(), subject)
		fixture.Must(t, "making a CSR", err)
		signature, err := identity.SignRenewal(signer.Signer(), csr, c.ID, "milan")
		fixture.Must(t, "signing a renewal", err)
		object := &authv1beta1.Renew{ObjectMeta: c.Marks(name), Spec: authv1beta1.RenewSpec{ConsumerClusterID: corev1beta1.ClusterID(c.ID),
			PublicKey: public, CSR: csr, Signature: signature, IdentityType: authv1beta1.ControlPlaneIdentityType}}
		// The API server counts objects of a namespace in its ResourceQuota, and gives up when others keep writing that.
		fixture.Must(t, "creating a Renew", retry.RetryOnConflict(retry.DefaultBackoff, func() error { return c.User.Create(t.Context(), object) }))
		return next, object
	}
	answer := func(t *testing.T, object *authv1beta1.Renew, reason string) {
		t.Helper()
		fixture.Await(t, fixture.Patience, "the answer "+reason, func(ctx context.Context) (bool, string) {
			err := c.User.Get(ctx, client.ObjectKeyFromObject(object), object)
			ready := meta.FindStatusCondition(object.Status.Conditions, corev1beta1.ConditionReady)
			return err == nil && ready != nil && ready.Reason == reason, fmt.Sprint(object.Status.Conditions, err)
		})
		if certified := object.Status.AuthParams != nil; certified != (reason == authv1beta1.ReasonCertificateRenewed) {
			t.Errorf("with a certificate: %t", certified)
		}
	}
	second, honest := renew(t, "honest", c.Key)
	answer(t, honest, authv1beta1.ReasonCertificateRenewed)
	_, late := renew(t, "thief", c.Key)
	answer(t, late, authv1beta1.ReasonRenewalNotSigned)
	// To delete the renewal does not make the earlier key the present one again.
	fixture.Must(t, "deleting the renewal", c.User.Delete(t.Context(), honest))
	_, later := renew(t, "thief-again", c.Key)
	answer(t, later, authv1beta1.ReasonRenewalNotSigned)
	_, next := renew(t, "honest-again", second)
	answer(t, next, authv1beta1.ReasonCertificateRenewed)
}
