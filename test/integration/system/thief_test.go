package system

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// copied are what a thief copied of a consumer: certificates and keys of its control plane and of a virtual kubelet.
type copied struct {
	controlPlane, kubelet *fixture.User
	namespace, twin       string
}

// copiedFrom makes a consumer with a twin, and somebody who copied what it holds.
func copiedFrom(t *testing.T) (*tenant, *copied) {
	t.Helper()
	c := newTenant(t)
	slice := c.granted(t, grantedSlice, quantities("cpu", "10", "pods", "100"))
	thief := &copied{controlPlane: c.user, namespace: c.namespace, twin: c.twin(t),
		kubelet: env.Milan.Holding(t, "the copied virtual kubelet", slice.Status.AuthParams.SignedCRT, c.key)}
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
	t.Run("with another Tenant", func(t *testing.T) {
		c, thief := copiedFrom(t)
		object := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: c.id, Namespace: c.namespace}}
		fixture.Must(t, "ending the peering", env.Milan.Client.Delete(t.Context(), object))
		thief.loses(t, "after the peering")
		again := &authv1beta1.Tenant{ObjectMeta: object.ObjectMeta, Spec: c.introduction(t)}
		again.ResourceVersion = ""
		fixture.Await(t, fixture.Patience, "the consumer to be peered again with a new key", func(ctx context.Context) (bool, string) {
			err := env.Milan.Client.Create(ctx, again)
			return err == nil, fmt.Sprint(err)
		})
		c.accepted(t)
		thief.loses(t, "in the next peering")
		renew := &authv1beta1.Renew{ObjectMeta: c.marks("thief"), Spec: renewal(t, c, again.Spec)}
		if err := thief.controlPlane.Create(t.Context(), renew); !apierrors.IsForbidden(err) {
			t.Errorf("asking for a certificate of the thief's own: %v", err)
		}
	})
	t.Run("in place", func(t *testing.T) {
		c, thief := copiedFrom(t)
		object := &authv1beta1.Tenant{}
		fixture.Must(t, "reading the Tenant", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: c.id}, object))
		peered := object.DeepCopy()
		peered.Spec = c.introduction(t)
		fixture.Must(t, "peering with a new key", env.Milan.Client.Patch(t.Context(), peered, client.MergeFrom(object)))
		c.accepted(t)
		thief.loses(t, "in the next peering")
		// The slice waits for its consumer's next request, and is not denied meanwhile.
		slice := &authv1beta1.ResourceSlice{}
		fixture.Must(t, "reading the slice", c.user.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: grantedSlice}, slice))
		if got := status(slice, authv1beta1.AuthenticationCondition).Status; got != authv1beta1.Accepted {
			t.Errorf("the slice is %s", got)
		}
		next := slice.DeepCopy()
		var err error
		next.Spec.CSR, err = identity.NewCSR(c.key.Signer(), identity.SliceSubject(c.id, grantedSlice).InPeering(c.peering))
		fixture.Must(t, "making a CSR", err)
		fixture.Must(t, "asking for the slice's certificate", c.user.Patch(t.Context(), next, client.MergeFrom(slice)))
		fixture.Await(t, fixture.Patience, "the virtual kubelet to go on where it was", func(ctx context.Context) (bool, string) {
			if err := c.user.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil || slice.Status.AuthParams == nil {
				return false, fmt.Sprint(err, slice.Status.Conditions)
			}
			kubelet := env.Milan.Holding(t, "the next virtual kubelet", slice.Status.AuthParams.SignedCRT, c.key)
			err := kubelet.List(ctx, &offloadingv1beta1.ShadowPodList{}, client.InNamespace(thief.twin))
			return err == nil, fmt.Sprint(err)
		})
		thief.loses(t, "beside the next virtual kubelet")
	})
}

// renewal asks for a control plane certificate with a key of one's own.
func renewal(t *testing.T, c *tenant, introduced authv1beta1.TenantSpec) authv1beta1.RenewSpec {
	t.Helper()
	return authv1beta1.RenewSpec{ConsumerClusterID: corev1beta1.ClusterID(c.id), PublicKey: introduced.PublicKey, CSR: introduced.CSR,
		IdentityType: authv1beta1.ControlPlaneIdentityType}
}
