package virtualnode

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// heldVolume is a volume at the provider.
func heldVolume() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: "milan/shop-rome/data/r1"}},
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"},
		},
	}
}

// H4: a provider's last virtual node stays, with its pods, while volumes there hold data.
func TestVolumesHoldTheLastVirtualNode(t *testing.T) {
	w := ready(t, heldVolume(), podOn("a"))
	w.begone()
	w.pass()
	if got := w.condition("Ready"); !strings.Contains(got, offloadingv1beta1.ReasonVolumesHoldData) || !strings.Contains(got, "shop/data") || len(w.evicted) > 0 {
		t.Fatalf("evicted %v, ready %s", w.evicted, got)
	}
	decide := func(decision string) {
		t.Helper()
		vn := virtualNode()
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(vn), vn); err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&vn.ObjectMeta, offloadingv1beta1.DeleteVolumesAnnotation, decision)
		if err := w.Update(context.Background(), vn); err != nil {
			t.Fatal(err)
		}
		w.pass()
	}
	if decide("u0"); len(w.evicted) > 0 {
		t.Fatal("drained with a decision about another volume")
	}
	if decide("u1"); len(w.evicted) != 1 {
		t.Errorf("the node is not drained although its volume is given up: %s", w.condition("Ready"))
	}
}

func TestTheLastVirtualNodeGoesOnceItsVolumesAreGone(t *testing.T) {
	w := ready(t, heldVolume(), podOn("a"))
	w.begone()
	w.pass()
	if err := w.Delete(context.Background(), heldVolume()); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if len(w.evicted) != 1 {
		t.Errorf("the node is not drained after its volumes are gone: %s", w.condition("Ready"))
	}
}
