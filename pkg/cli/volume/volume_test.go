package volume_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/volume"
	"liqo.io/liqo/pkg/controller/storage/hold"
	"liqo.io/liqo/pkg/reflection"
)

// What counts as data that would be lost: not a volume that goes because its claim was deleted, and each one that is kept by its name.
func TestVolumesThatHoldData(t *testing.T) {
	at := func(uid, phase string, reclaim corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + uid, Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: reclaim,
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: "milan/shop-rome/data/r-" + uid}},
				ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: types.UID(uid)},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.PersistentVolumePhase(phase)},
		}
	}
	ending := at("u0", "Bound", corev1.PersistentVolumeReclaimRetain)
	now := metav1.Now()
	ending.DeletionTimestamp, ending.Finalizers = &now, []string{offloadingv1beta1.VolumeFinalizer}
	present := at("u1", "Bound", corev1.PersistentVolumeReclaimDelete)
	const left = "shop/data in milan (volume pvc-u0, whose claim is gone)"
	cases := map[string]struct {
		volumes []client.Object
		// counted by commands, and what controllers say that they wait for.
		counted, waited []string
	}{
		"one that is used":                {[]client.Object{present}, []string{"shop/data in milan"}, []string{"shop/data"}},
		"one that has not been bound yet": {[]client.Object{at("u1", "", "Delete")}, []string{"shop/data in milan"}, []string{"shop/data"}},
		"its claim was deleted":           {[]client.Object{at("u0", "Released", "Delete")}, nil, []string{"shop/data is deleted, and its volume going"}},
		"and could not be given back":     {[]client.Object{at("u0", "Failed", "Delete")}, nil, []string{"shop/data is deleted, and its volume going"}},
		"its claim was made anew": {[]client.Object{at("u0", "Released", "Delete"), present}, []string{"shop/data in milan"},
			[]string{"shop/data", "shop/data is deleted, and its volume going"}},
		"two earlier ones of one name": {[]client.Object{at("u0", "Released", "Delete"), at("u2", "Released", "Delete")}, nil,
			[]string{"shop/data is deleted, and its volume going"}},
		"it is to be kept":                {[]client.Object{at("u0", "Released", "Retain"), present}, []string{"shop/data in milan", left}, []string{"shop/data", "shop/data is deleted, and its volume pvc-u0 kept"}},
		"it was kept, and is deleted now": {[]client.Object{ending}, nil, []string{"shop/data is deleted, and its volume going"}},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: test.volumes})
			volumes, err := volume.At(t.Context(), cluster.Cluster, "milan", "")
			if err != nil {
				t.Fatal(err)
			}
			var counted []string
			for _, v := range volumes {
				counted = append(counted, v.String())
			}
			if diff := cmp.Diff(test.counted, counted); diff != "" {
				t.Error(diff)
			}
			waited, err := hold.Volumes(t.Context(), cluster.Client, cluster.Client, &corev1.Namespace{}, "milan", "")
			if diff := cmp.Diff(test.waited, waited); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	if err := volume.Refuse([]volume.Volume{{Cluster: "milan", Claim: corev1.ObjectReference{Namespace: "shop", Name: "data"}, Left: "pvc-u0"}}, "x"); !strings.Contains(err.Error(), left) {
		t.Error(err)
	}
}
