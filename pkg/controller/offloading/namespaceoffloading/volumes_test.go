package namespaceoffloading

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// volumeAt is a volume of the namespace's claim data at a provider.
func volumeAt(cluster string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: cluster + "/shop-rome/data/r1"}},
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"},
		},
	}
}

// H4: what is offloaded stays at a provider where volumes hold its data, until the user decides or the volumes are gone.
func TestVolumesHoldTheNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		decided bool
		held    bool
	}{
		"no volume":                      {nil, false, false},
		"a volume there":                 {[]client.Object{volumeAt("milan")}, false, true},
		"a volume at another provider":   {[]client.Object{volumeAt("paris")}, false, false},
		"a volume that the user gave up": {[]client.Object{volumeAt("milan")}, true, false},
		"a volume at a dead provider": {[]client.Object{volumeAt("milan"), &corev1beta1.ForeignCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "milan", Annotations: map[string]string{corev1beta1.PermanentlyUnreachableAnnotation: "true"}},
		}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}), tc.objects...)
			w.pass()
			if tc.decided {
				nso := w.nso()
				metav1.SetMetaDataAnnotation(&nso.ObjectMeta, offloadingv1beta1.DeleteVolumesAnnotation, "true")
				if err := w.Update(context.Background(), nso); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Delete(context.Background(), w.nso()); err != nil {
				t.Fatal(err)
			}
			w.pass()
			_, mapped := w.state()["map milan"]
			if nso := w.nso(); (nso != nil) != tc.held || mapped != tc.held {
				t.Fatalf("held %v, mapped %v, want %v", nso != nil, mapped, tc.held)
			}
			if _, mapped := w.state()["map naples"]; mapped {
				t.Error("a provider without volumes keeps its twin")
			}
			if !tc.held {
				return
			}
			ready := w.nso().Status.Conditions[0]
			if ready.Reason != offloadingv1beta1.ReasonVolumesHoldData || !strings.Contains(ready.Message, "shop/data") || !strings.Contains(ready.Message, "--delete-volumes") {
				t.Errorf("got %+v", ready)
			}
			if err := w.Delete(context.Background(), volumeAt("milan")); err != nil {
				t.Fatal(err)
			}
			w.pass()
			if w.nso() != nil {
				t.Error("it stays although the volume is gone")
			}
		})
	}
}

// A decision about volumes lets those go that it names. One about everything is for an object that is being deleted: left behind
// on one that stays, it does not take volumes with it when the selector is narrowed.
func TestADecisionIsAboutItsVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		decision string
		held     bool
	}{
		"nothing decided":   {"", true},
		"this volume":       {"u0,u1", false},
		"another volume":    {"u0", true},
		"everything, early": {"true", true},
	} {
		t.Run(name, func(t *testing.T) {
			nso := offloading(offloadingv1beta1.NamespaceOffloadingSpec{})
			nso.Annotations = map[string]string{offloadingv1beta1.DeleteVolumesAnnotation: tc.decision}
			w := newWorld(t, nso, volumeAt("milan"))
			w.pass()
			if _, mapped := w.state()["map milan"]; !mapped {
				t.Fatal("it is not offloaded to begin with")
			}
			narrowed := w.nso()
			narrowed.Spec.ClusterSelector = south()
			if err := w.Update(context.Background(), narrowed); err != nil {
				t.Fatal(err)
			}
			w.pass()
			if _, mapped := w.state()["map milan"]; mapped != tc.held {
				t.Errorf("mapped %v, want %v", mapped, tc.held)
			}
		})
	}
}
