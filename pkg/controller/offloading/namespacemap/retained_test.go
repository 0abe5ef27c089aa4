package namespacemap

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/counting"
)

// volumeOf is one of 4Ti, whose claim is or was in a namespace.
func volumeOf(namespace, name, class string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeStatus{Phase: phase},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: class, Capacity: corev1.ResourceList{"storage": resource.MustParse("4Ti")}}}
	if namespace != "" {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: "claim-uid"}
	}
	return volume
}

// T33: the quota of a twin leaves to claims what volumes without claims do not take.
func TestVolumesWithoutClaimsAreTakenOffTheQuota(t *testing.T) {
	for name, tc := range map[string]struct {
		volumes              []client.Object
		wantAll, wantOfClass string
	}{
		"nothing is there":             {nil, "10Ti", "6Ti"},
		"a volume is bound":            {[]client.Object{volumeOf("shop-rome", "a", "fast", corev1.VolumeBound)}, "10Ti", "6Ti"},
		"a volume waits for its claim": {[]client.Object{volumeOf("shop-rome", "a", "fast", corev1.VolumeAvailable)}, "10Ti", "6Ti"},
		"a volume was retained":        {[]client.Object{volumeOf("shop-rome", "a", "fast", corev1.VolumeReleased)}, "6Ti", "2Ti"},
		"a volume could not be deleted, one is of another class": {[]client.Object{
			volumeOf("shop-rome", "a", "fast", corev1.VolumeFailed), volumeOf("shop-rome", "b", "slow", corev1.VolumeReleased)}, "2Ti", "2Ti"},
		"more was retained than there may be": {[]client.Object{volumeOf("shop-rome", "a", "fast", corev1.VolumeReleased),
			volumeOf("shop-rome", "b", "fast", corev1.VolumeReleased), volumeOf("shop-rome", "c", "", corev1.VolumeReleased)}, "0", "0"},
		"a volume was another namespace's": {[]client.Object{volumeOf("shop-paris", "a", "fast", corev1.VolumeReleased)}, "10Ti", "6Ti"},
		"the administrator took it back":   {[]client.Object{volumeOf("", "a", "fast", corev1.VolumeReleased)}, "10Ti", "6Ti"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.volumes, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))...)
			w.r.Hard = corev1.ResourceList{"requests.storage": resource.MustParse("10Ti"), "persistentvolumeclaims": resource.MustParse("5"),
				"fast.storageclass.storage.k8s.io/requests.storage": resource.MustParse("6Ti")}
			w.pass()
			quota := &corev1.ResourceQuota{}
			if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop-rome", Name: counting.QuotaName}, quota); err != nil {
				t.Fatal(err)
			}
			for key, want := range map[corev1.ResourceName]string{"requests.storage": tc.wantAll, "persistentvolumeclaims": "5",
				"fast.storageclass.storage.k8s.io/requests.storage": tc.wantOfClass} {
				if got := quota.Spec.Hard[key]; got.Cmp(resource.MustParse(want)) != 0 {
					t.Errorf("%s is %s, want %s", key, got.String(), want)
				}
			}
		})
	}
}

// T33: a twin that is gone and whose volumes are not is one of those that the tenant may have.
func TestTwinsThatVolumesOutliveAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		volumes []client.Object
		// anyName says that names do not tell whose a twin is.
		anyName bool
		want    string
	}{
		"none is left": {nil, false, "shop-rome Accepted"},
		"of a twin that is gone": {[]client.Object{volumeOf("old-rome", "a", "", corev1.VolumeReleased)}, false,
			"shop-rome CreationLoopBackOff NamespaceLimitReached"},
		"of one that anybody may have had": {[]client.Object{volumeOf("old-rome", "a", "", corev1.VolumeReleased)}, true, "shop-rome Accepted"},
		"of the twin that is wanted again": {[]client.Object{volumeOf("shop-rome", "a", "", corev1.VolumeReleased)}, false, "shop-rome Accepted"},
		"of somebody else":                 {[]client.Object{volumeOf("old-paris", "a", "", corev1.VolumeReleased)}, false, "shop-rome Accepted"},
		"of a namespace of the provider's own": {[]client.Object{volumeOf("own-rome", "a", "", corev1.VolumeReleased),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own-rome"}}}, false, "shop-rome Accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.volumes, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))...)
			w.r.Rules.MaxNamespaces, w.r.Rules.RequireTenantSuffix = 1, !tc.anyName
			w.pass()
			if got := w.answers()["shop"]; got != tc.want {
				t.Errorf("the answer is %q, want %q", got, tc.want)
			}
		})
	}
}
