package system

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	peered(t)
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
		c := conditions.Find(vn.Status.Conditions, corev1beta1.ConditionReady)
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

// S19 (W5, W1): a provider that calls itself what a selector looks for does not get the namespace, until that is approved here.
func TestAProviderSelectsNotItself(t *testing.T) {
	w := peered(t)
	namespace := fixture.Unique("gdpr")
	offloading := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "offloading"},
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType,
			PodOffloadingStrategy: offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType,
			ClusterSelector: corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "gdpr", Operator: corev1.NodeSelectorOpIn, Values: []string{"certified"}}}}}}}}
	jewel := client.ObjectKey{Namespace: namespace, Name: "jewel"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "jewel"}, StringData: map[string]string{"a": "b"}}, offloading,
	} {
		fixture.Must(t, "preparing rome", env.Rome.Client.Create(t.Context(), o))
	}
	honest := map[string]any{}
	lying := map[string]any{"discovery": map[string]any{"config": map[string]any{"clusterID": "milan", "clusterLabels": map[string]any{"gdpr": "certified"}}}}
	w.milan.Reconfigure(t, honest, lying)
	defer w.milan.Reconfigure(t, lying, honest)
	vn := &offloadingv1beta1.VirtualNode{}
	fixture.Await(t, 2*fixture.Patience, "the VirtualNode to say that the provider's labels changed", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + "milan", Name: w.node}, vn)
		return err == nil && conditions.Find(vn.Status.Conditions, offloadingv1beta1.LabelsChangedCondition) != nil, fmt.Sprint(vn.Annotations, vn.Status, err)
	})
	node := &corev1.Node{}
	fixture.Must(t, "reading the Node", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: w.node}, node))
	if node.Labels["gdpr"] != "" || vn.Spec.Labels["gdpr"] != "" {
		t.Errorf("the provider's label was taken: Node %v", node.Labels)
	}
	if err := env.Milan.Client.Get(t.Context(), jewel, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret at milan: %v", err)
	}
	approval := []byte(`{"metadata":{"annotations":{"` + offloadingv1beta1.ApprovedLabelsAnnotation + `":"gdpr=certified"}}}`)
	fixture.Must(t, "approving the label", env.Rome.Client.Patch(t.Context(), vn, client.RawPatch(types.MergePatchType, approval)))
	fixture.Await(t, 2*fixture.Patience, "the approved label to take effect", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, jewel, &corev1.Secret{})
		return err == nil, fmt.Sprint(err)
	})
	fixture.Must(t, "ending the offloading", env.Rome.Client.Delete(t.Context(), offloading))
}
