package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// placeholder is a volume that stands for a claim at a provider, as the provider's virtual kubelet makes it.
func placeholder(provider string) *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: types.UID(fixture.Unique("uid"))},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
	remote := claim.DeepCopy()
	remote.UID = "remote"
	return reflection.PlaceholderVolume(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}}, provider, remote)
}

// realVolume is a volume with data on a node of this cluster.
func realVolume(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	volume := placeholder("turin")
	volume.Name, volume.Annotations, volume.Spec.NodeAffinity = fixture.Unique("real"), nil, nil
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}
	if change != nil {
		change(volume)
	}
	return volume
}

// Whoever steals the account of a provider's virtual kubelet changes and deletes volumes: only the placeholders of that provider, and
// of those not whose they are, nor what becomes of them.
func TestVolumesOfStolenVirtualKubelets(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:liqo-tenant-turin:turin"
	rights := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("stolen")},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "liqo-virtual-kubelet"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account}}}
	fixture.Must(t, "giving the account its rights", env.Rome.Client.Create(t.Context(), rights))
	thief := env.Rome.As(t, account, "system:serviceaccounts", "system:serviceaccounts:liqo-tenant-turin")
	fixture.Await(t, fixture.Patience, "the rights to take effect", func(ctx context.Context) (bool, string) {
		err := thief.Get(ctx, client.ObjectKey{Name: "none"}, &corev1.PersistentVolume{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	patch := func(patch string) func(*corev1.PersistentVolume) error {
		return func(v *corev1.PersistentVolume) error { return thief.Patch(t.Context(), v, merge(patch)) }
	}
	remove := func(v *corev1.PersistentVolume) error { return thief.Delete(t.Context(), v) }
	own, others := placeholder("turin"), placeholder("turin-2")
	ofDriver := realVolume(func(v *corev1.PersistentVolume) {
		v.Annotations = map[string]string{reflection.ProvisionedByAnnotation: "liqo.io/storage"}
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "turin/a"}}
	})
	const policy = "NotYourObject"
	for name, tc := range map[string]struct {
		volume *corev1.PersistentVolume
		try    func(*corev1.PersistentVolume) error
		// refused by these words; by the policy, but for what no API server changes in any volume.
		refused string
	}{
		"its own grows":                      {own, patch(`{"spec":{"capacity":{"storage":"2Gi"}}}`), ""},
		"its own is deleted":                 {own, remove, ""},
		"its own goes to another claim":      {own, patch(`{"spec":{"claimRef":{"namespace":"kube-system","name":"loot","uid":"loot"}}}`), policy},
		"its own goes to any claim":          {own, patch(`{"spec":{"claimRef":null}}`), policy},
		"its own goes to a claim to be made": {own, patch(`{"spec":{"claimRef":{"uid":null}}}`), policy},
		"its own is of another class":        {own, patch(`{"spec":{"storageClassName":"fast"}}`), policy},
		"its own is kept for ever":           {own, patch(`{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`), policy},
		"its own is nobody's":                {own, patch(`{"metadata":{"annotations":{"` + reflection.ProvisionedByAnnotation + `":null}}}`), policy},
		"its own becomes a folder of a node": {own, patch(`{"spec":{"csi":null,"hostPath":{"path":"/"}}}`), "is immutable after creation"},
		"its own becomes another provider's": {own, patch(`{"spec":{"csi":{"volumeHandle":"turin-2/a/b/c"}}}`), "is immutable after creation"},
		"its own is for physical nodes":      {own, patch(`{"spec":{"nodeAffinity":null}}`), "immutable"},
		"another provider's changes":         {others, patch(`{"metadata":{"labels":{"a":"b"}}}`), policy},
		"another provider's is deleted":      {others, remove, policy},
		"a real one changes":                 {realVolume(nil), patch(`{"metadata":{"labels":{"a":"b"}}}`), policy},
		"a real one is taken for its own":    {realVolume(nil), patch(`{"metadata":{"annotations":{"` + reflection.ProvisionedByAnnotation + `":"liqo.io/storage"}}}`), policy},
		"a real one goes to another claim":   {realVolume(nil), patch(`{"spec":{"claimRef":{"namespace":"shop","name":"loot","uid":"loot"}}}`), policy},
		"a real one loses what protects it":  {realVolume(func(v *corev1.PersistentVolume) { v.Finalizers = []string{"test.liqo.io/keeps"} }), patch(`{"metadata":{"finalizers":null}}`), policy},
		"a real one is deleted":              {realVolume(nil), remove, policy},
		"one of a real driver is deleted":    {ofDriver, remove, policy},
		"one of a real driver changes":       {ofDriver, patch(`{"metadata":{"labels":{"a":"b"}}}`), policy},
		"all are deleted at once": {own, func(*corev1.PersistentVolume) error {
			return thief.DeleteAllOf(t.Context(), &corev1.PersistentVolume{})
		}, "cannot deletecollection"},
		"its own has been bound": {own, func(v *corev1.PersistentVolume) error {
			return thief.Status().Patch(t.Context(), v, merge(`{"status":{"phase":"Bound"}}`))
		}, "cannot patch"},
		"its own is replaced as a whole": {own, func(v *corev1.PersistentVolume) error { return thief.Update(t.Context(), v) }, "cannot update"},
		"one for physical nodes under a new name": {others, func(v *corev1.PersistentVolume) error {
			made := placeholder("turin")
			made.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = corev1beta1.TypeLabel
			return thief.Create(t.Context(), made)
		}, policy},
	} {
		t.Run(name, func(t *testing.T) {
			volume := tc.volume.DeepCopy()
			volume.Name = fixture.Unique("pv")
			fixture.Must(t, "making the volume", env.Rome.Client.Create(t.Context(), volume))
			before := volume.DeepCopy()
			err := tc.try(volume.DeepCopy())
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("an honest request was refused: %v", err)
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("answered with %v, want a refusal with %q", err, tc.refused)
			case tc.refused != "":
				fixture.Must(t, "reading the volume", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(volume), volume))
				if diff := cmp.Diff(before.Spec, volume.Spec); diff != "" || volume.DeletionTimestamp != nil {
					t.Errorf("the volume is being deleted: %t, or has changed: %s", volume.DeletionTimestamp != nil, diff)
				}
			}
		})
	}
}
