package settings

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
)

// S19 (W5, W1): a provider that calls itself what a selector looks for does not get the namespace, until that is approved here.
func TestAProviderSelectsNotItself(t *testing.T) {
	w := env.Peered(t)
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
	w.Milan.Reconfigure(t, honest, lying)
	defer w.Milan.Reconfigure(t, lying, honest)
	vn := &offloadingv1beta1.VirtualNode{}
	fixture.Await(t, 2*fixture.Patience, "the VirtualNode to say that the provider's labels changed", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + "milan", Name: w.Node}, vn)
		return err == nil && conditions.Find(vn.Status.All(), offloadingv1beta1.LabelsChangedCondition) != nil, fmt.Sprint(vn.Annotations, vn.Status, err)
	})
	node := &corev1.Node{}
	fixture.Must(t, "reading the Node", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: w.Node}, node))
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
