package peering

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
)

// S14: the peer's NamespaceMap, made before this cluster has one, stays the peer's.
func TestThePeersMapStaysThePeers(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	id := fixture.Unique("turin")
	namespace := corev1beta1.TenantNamespacePrefix + id
	private := fixture.Unique("payroll")
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: id}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: private}},
	} {
		fixture.Must(t, "preparing rome", env.Rome.Client.Create(t.Context(), o))
	}
	key := tenantAt(t, env.Rome, id, namespace)
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: namespace, Labels: map[string]string{
		corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: id, corev1beta1.RemoteClusterIDLabel: id, corev1beta1.ReplicationLabel: "false"}},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{private: private + "-loot"}}}
	if err := key.Create(t.Context(), m.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("the peer makes a NamespaceMap of the name of ours: %v", err)
	}
	// One from before there was the policy.
	fixture.Must(t, "making the peer's NamespaceMap at rome", env.Rome.Client.Create(t.Context(), m))
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id},
		Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID(id), KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig-x"}}}
	fixture.Must(t, "rome gets a VirtualNode of the peer", env.Rome.Client.Create(t.Context(), vn))
	fixture.Await(t, fixture.Patience, "the VirtualNode to say that the map is the peer's", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(vn), vn)
		c := conditions.Find(vn.Status.All(), corev1beta1.ConditionReady)
		return err == nil && c != nil && c.Reason == offloadingv1beta1.ReasonNameConflict, fmt.Sprint(c, err)
	})
	live := &offloadingv1beta1.NamespaceMap{}
	fixture.Must(t, "reading the map", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(m), live))
	if live.Labels[corev1beta1.ReplicationLabel] == "true" || live.Labels[corev1beta1.RemoteIDLabel] != "" {
		t.Errorf("the map became ours: %v", live.Labels)
	}
	fixture.Must(t, "removing the VirtualNode", env.Rome.Client.Delete(t.Context(), vn))
	fixture.Must(t, "removing the map", env.Rome.Client.Delete(t.Context(), live))
}

// tenantAt accepts a consumer at a cluster.
func tenantAt(t *testing.T, at *fixture.Cluster, id, namespace string) *fixture.User {
	t.Helper()
	pair, err := identity.NewKeyPair(identity.AlgorithmEd25519)
	fixture.Must(t, "making a key", err)
	csr, err := identity.NewCSR(pair.Signer(), identity.TenantSubject(id))
	fixture.Must(t, "making a CSR", err)
	public, err := pair.PublicPEM()
	fixture.Must(t, "encoding the key", err)
	object := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: namespace},
		Spec: authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(id), CSR: csr, PublicKey: public, AuthzPolicy: authv1beta1.TolerateNoHandshake}}
	fixture.Must(t, "creating the Tenant", at.Client.Create(t.Context(), object))
	user := at.Tenant(t, id)
	fixture.Await(t, fixture.Patience, "the rights of Tenant "+id, func(ctx context.Context) (bool, string) {
		err := user.List(ctx, &authv1beta1.ResourceSliceList{}, client.InNamespace(namespace))
		return err == nil, fmt.Sprint(err)
	})
	return user
}
