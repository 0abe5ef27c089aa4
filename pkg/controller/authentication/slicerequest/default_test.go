package slicerequest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func TestDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*authv1beta1.ResourceSlice, *corev1.Namespace)
		want   string
	}{
		"both IDs are filled in":  {func(*authv1beta1.ResourceSlice, *corev1.Namespace) {}, ""},
		"an ordinary namespace":   {func(_ *authv1beta1.ResourceSlice, n *corev1.Namespace) { n.Labels = nil }, "must be in a tenant namespace"},
		"a namespace misnamed":    {func(_ *authv1beta1.ResourceSlice, n *corev1.Namespace) { n.Name = "x" }, "must be named liqo-tenant-milan"},
		"sent to another cluster": {func(s *authv1beta1.ResourceSlice, _ *corev1.Namespace) { s.Labels[corev1beta1.RemoteIDLabel] = "turin" }, "belongs to cluster milan"},
		"asking another provider": {func(s *authv1beta1.ResourceSlice, _ *corev1.Namespace) {
			s.Spec.ProviderClusterID = ptr.To(corev1beta1.ClusterID("turin"))
		}, "providerClusterID"},
		"in another cluster's name": {func(s *authv1beta1.ResourceSlice, _ *corev1.Namespace) {
			s.Spec.ConsumerClusterID = ptr.To(corev1beta1.ClusterID("turin"))
		}, "consumerClusterID"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-milan", Labels: map[string]string{
				corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: "milan",
			}}}
			slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan",
			}}}
			tc.change(slice, namespace)
			err := Default(slice, namespace, "rome")
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil || *slice.Spec.ProviderClusterID != "milan" || *slice.Spec.ConsumerClusterID != "rome" || slice.Labels[corev1beta1.RemoteClusterIDLabel] != "milan" {
				t.Errorf("became %+v, %v", slice, err)
			}
		})
	}
}
