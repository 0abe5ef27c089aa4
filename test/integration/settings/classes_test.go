package settings

import (
	"context"
	"fmt"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// What comes with a grant follows the provider: classes of storage that come and go, and, with other values of its chart, classes of Ingresses
// and load balancers and the labels that it suggests.
func TestClassesAndLabelsOfTheProviderFollow(t *testing.T) {
	w := env.Peered(t)
	vn := &offloadingv1beta1.VirtualNode{}
	shows := func(what string, done func() bool) {
		t.Helper()
		fixture.Await(t, fixture.Patience, "the VirtualNode to show "+what, func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}, vn)
			return err == nil && done(), fmt.Sprintf("%+v, %v, error %v", vn.Spec, vn.Annotations, err)
		})
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("fast")}, Provisioner: "example.org/fast"}
	stored := func() bool {
		return slices.ContainsFunc(vn.Spec.StorageClasses, func(s authv1beta1.StorageType) bool { return s.StorageClassName == class.Name })
	}
	fixture.Must(t, "creating a StorageClass", env.Milan.Client.Create(t.Context(), class))
	defer func() { _ = env.Milan.Client.Delete(context.Background(), class) }()
	shows("a class of storage that came", stored)
	fixture.Must(t, "deleting a StorageClass", env.Milan.Client.Delete(t.Context(), class))
	shows("no class of storage that went", func() bool { return !stored() })

	other := map[string]any{
		"discovery": map[string]any{"config": map[string]any{"clusterID": "milan", "clusterLabels": map[string]any{"example.org/tier": "other"}}},
		"offloading": map[string]any{"reflection": map[string]any{
			"ingress": map[string]any{"ingressClasses": []any{map[string]any{"name": "haproxy"}}},
			"service": map[string]any{"loadBalancerClasses": []any{map[string]any{"name": "metallb"}}}}},
	}
	w.Milan.Reconfigure(t, nil, other)
	defer w.Milan.Reconfigure(t, other, nil)
	shows("other classes, and that other labels are suggested", func() bool {
		return slices.Equal(vn.Spec.IngressClasses, []authv1beta1.IngressType{{IngressClassName: "haproxy"}}) &&
			slices.Equal(vn.Spec.LoadBalancerClasses, []authv1beta1.LoadBalancerType{{LoadBalancerClassName: "metallb"}}) &&
			vn.Annotations[offloadingv1beta1.SuggestedLabelsAnnotation] == "example.org/tier=other"
	})
}
