package slicerequest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func TestAnnounced(t *testing.T) {
	asking := func(provider string, cidrs ...string) authv1beta1.ResourceSlice {
		return authv1beta1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: provider}},
			Spec:       authv1beta1.ResourceSliceSpec{ProviderClusterID: ptr.To(corev1beta1.ClusterID(provider))},
			Status:     authv1beta1.ResourceSliceStatus{PodCIDRs: cidrs},
		}
	}
	copied := asking("milan", "10.99.0.0/16")
	copied.Labels[corev1beta1.ReplicatedLabel] = "true"
	all := []authv1beta1.ResourceSlice{
		asking("milan", "10.20.0.0/16"), asking("turin", "10.30.0.0/16", "0.0.0.0/0", "nonsense"), asking("turin", "10.30.0.0/16"), copied,
	}
	for provider, want := range map[string][]string{
		"milan": {"10.10.0.0/16", "10.30.0.0/16"}, "turin": {"10.10.0.0/16", "10.20.0.0/16"},
	} {
		if diff := cmp.Diff(want, Announced([]string{"10.10.0.0/16"}, all, provider)); diff != "" {
			t.Errorf("cluster %s: %s", provider, diff)
		}
	}
}
