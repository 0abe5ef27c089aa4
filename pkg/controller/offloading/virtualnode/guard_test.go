package virtualnode

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// H4: a provider's last virtual node stays, with its pods, while volumes there hold data.
func TestVolumesHoldTheLastVirtualNode(t *testing.T) {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: "milan/shop-rome/data/r1"}},
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"},
		},
	}
	w := ready(t, volume.DeepCopy(), podOn("a"))
	w.begone()
	w.pass()
	if got := w.condition("Ready"); !strings.Contains(got, offloadingv1beta1.ReasonVolumesHoldData) || !strings.Contains(got, "shop/data") || len(w.evicted) > 0 {
		t.Fatalf("evicted %v, ready %s", w.evicted, got)
	}
	if err := w.Delete(context.Background(), volume); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if len(w.evicted) != 1 {
		t.Errorf("the node is not drained after its volumes are gone: %s", w.condition("Ready"))
	}
}
