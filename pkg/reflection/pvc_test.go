package reflection

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func sized(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func claimOf(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u1", Labels: map[string]string{"app": "db"}, Annotations: map[string]string{
			"team": "db", StorageProvisionerAnnotation: offloadingv1beta1.StorageProvisioner, SelectedNodeAnnotation: "milan",
			"pv.kubernetes.io/bind-completed": "yes", "volume.beta.kubernetes.io/storage-provisioner": "x", "volume.beta.kubernetes.io/storage-class": "y",
			"cdi.kubevirt.io/storage.clone.source": "payroll/books", "k8s.io/CloneRequest": "payroll/books", "meta.helm.sh/release-name": "db",
		}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("liqo"), VolumeName: "pvc-u1",
			VolumeMode: ptr.To(corev1.PersistentVolumeBlock), Resources: corev1.VolumeResourceRequirements{Requests: sized("1Gi")},
		},
	}
	if change != nil {
		change(claim)
	}
	return claim
}

func claimInput(change func(*ClaimInput)) ClaimInput {
	in := ClaimInput{
		Local: claimOf(nil), Home: "rome", Remote: "milan", Namespace: "shop-rome", Name: "data", Volume: "pvc-u1", Reclaim: "Delete",
		Offered: []authv1beta1.StorageType{{StorageClassName: "fast"}, {StorageClassName: "slow", Default: true}},
	}
	if change != nil {
		change(&in)
	}
	return in
}

func TestRemoteClaim(t *testing.T) {
	result := RemoteClaim(claimInput(nil))
	if result.Skip != nil {
		t.Fatal(result.Skip.Message)
	}
	claim := result.Apply.(*corev1.PersistentVolumeClaim)
	delete(claim.Annotations, offloadingv1beta1.ReflectedKeysAnnotation)
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop-rome", Name: "data",
			Labels: map[string]string{"app": "db", offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.DestinationLabel: "milan"},
			Annotations: map[string]string{
				"team": "db", "meta.helm.sh/release-name": "db", corev1beta1.OriginUIDAnnotation: "u1", offloadingv1beta1.VirtualClaimAnnotation: "shop/data",
				offloadingv1beta1.VolumeAnnotation: "pvc-u1", offloadingv1beta1.ReclaimPolicyAnnotation: "Delete",
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("slow"),
			VolumeMode: ptr.To(corev1.PersistentVolumeBlock), Resources: corev1.VolumeResourceRequirements{Requests: sized("1Gi")},
		},
	}
	if diff := cmp.Diff(want, claim); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClassAndModesAtTheProvider(t *testing.T) {
	annotated := func(key, value string) func(*ClaimInput) {
		return func(in *ClaimInput) { in.Local.Annotations[key] = value }
	}
	for name, tc := range map[string]struct {
		change func(*ClaimInput)
		class  string
		modes  []corev1.PersistentVolumeAccessMode
		why    string
	}{
		"the provider's default":       {nil, "slow", []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, ""},
		"the class of the annotation":  {annotated(offloadingv1beta1.RemoteStorageClassAnnotation, "fast"), "fast", []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, ""},
		"a class that is not offered":  {annotated(offloadingv1beta1.RemoteStorageClassAnnotation, "gold"), "", nil, "does not offer storage class \"gold\""},
		"no class at all":              {func(in *ClaimInput) { in.Offered = nil }, "", nil, "offers no storage"},
		"no default class":             {func(in *ClaimInput) { in.Offered = in.Offered[:1] }, "", nil, "no default storage class"},
		"the class that is there":      {func(in *ClaimInput) { in.Live = claimOf(nil); in.Offered = nil }, "liqo", []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, ""},
		"modes of the annotation":      {annotated(offloadingv1beta1.RemoteAccessModesAnnotation, "ReadWriteMany, ReadOnlyMany,ReadWriteMany"), "slow", []corev1.PersistentVolumeAccessMode{"ReadWriteMany", "ReadOnlyMany"}, ""},
		"a mode that does not exist":   {annotated(offloadingv1beta1.RemoteAccessModesAnnotation, "ReadWriteSometimes"), "", nil, "is no access mode"},
		"an empty list of modes":       {annotated(offloadingv1beta1.RemoteAccessModesAnnotation, ""), "", nil, "is no access mode"},
		"a claim that selects volumes": {func(in *ClaimInput) { in.Local.Spec.Selector = &metav1.LabelSelector{} }, "", nil, "spec.selector"},
		"a clone":                      {func(in *ClaimInput) { in.Local.Spec.DataSource = &corev1.TypedLocalObjectReference{} }, "", nil, "spec.dataSource"},
	} {
		t.Run(name, func(t *testing.T) {
			result := RemoteClaim(claimInput(tc.change))
			if tc.why != "" {
				if result.Skip == nil || !result.Skip.Keep || !strings.Contains(result.Skip.Message, tc.why) {
					t.Fatalf("got %+v, want a refusal with %q", result.Skip, tc.why)
				}
				return
			}
			if result.Skip != nil {
				t.Fatal(result.Skip.Message)
			}
			spec := result.Apply.(*corev1.PersistentVolumeClaim).Spec
			if *spec.StorageClassName != tc.class || !slices.Equal(spec.AccessModes, tc.modes) {
				t.Errorf("got class %s, modes %v", *spec.StorageClassName, spec.AccessModes)
			}
		})
	}
}

// D5: whatever changes at home, a claim at the provider changes its metadata or grows; it is never made anew and never shrinks.
func TestClaimsOnlyGrow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []string{"1Gi", "2Gi", "512Mi", "10Gi", "1"}
	for range 500 {
		in := claimInput(nil)
		in.Local.Spec.Resources.Requests = sized(sizes[random.IntN(len(sizes))])
		in.Local.Labels["n"] = sizes[random.IntN(len(sizes))]
		live := RemoteClaim(in).Apply.(*corev1.PersistentVolumeClaim)
		if changes := RemoteClaimChanges(live, live); len(changes) != 0 {
			t.Fatalf("what is there already is changed: %v", changes)
		}
		before := *live.Spec.Resources.Requests.Storage()
		in.Local.Spec.Resources.Requests = sized(sizes[random.IntN(len(sizes))])
		in.Local.Spec.AccessModes, in.Live = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, live
		wanted := RemoteClaim(in).Apply.(*corev1.PersistentVolumeClaim)
		for _, change := range RemoteClaimChanges(live, wanted) {
			switch path := strings.Join(change.Path, "."); {
			case path == "spec.resources.requests.storage":
				if size := resource.MustParse(change.Value.(string)); size.Cmp(before) <= 0 {
					t.Fatalf("shrinks from %s to %s", before.String(), size.String())
				}
			case !strings.HasPrefix(path, "metadata."):
				t.Fatalf("changes %s", path)
			}
		}
	}
}

func TestVolumesOnPhysicalNodes(t *testing.T) {
	behind := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs", VolumeHandle: "v"}},
		Capacity:               sized("3Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		MountOptions: []string{"noatime"}, VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem), PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}, {},
		}}},
	}}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}, ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimRetain), MountOptions: []string{"ro"}}
	got := PhysicalVolume(claimOf(nil), class, behind).Spec
	physical := corev1.NodeSelectorRequirement{Key: "liqo.io/type", Operator: corev1.NodeSelectorOpDoesNotExist}
	want := corev1.PersistentVolumeSpec{
		PersistentVolumeSource: behind.Spec.PersistentVolumeSource, Capacity: sized("3Gi"), AccessModes: behind.Spec.AccessModes,
		MountOptions: []string{"ro", "noatime"}, VolumeMode: behind.Spec.VolumeMode, StorageClassName: "liqo",
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "u1"},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}, physical}}, {},
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlaceholders(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}}
	remote := claimOf(func(c *corev1.PersistentVolumeClaim) {
		c.Namespace, c.UID = "shop-rome", "r1"
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: sized("5Gi")}
	})
	volume := PlaceholderVolume(claimOf(nil), class, "milan", remote)
	handle, ok := HandleOf(volume)
	if want := (VolumeHandle{Cluster: "milan", Namespace: "shop-rome", Name: "data", UID: "r1"}); !ok || handle != want {
		t.Errorf("handle %+v, want %+v", handle, want)
	}
	if volume.Spec.CSI.Driver != offloadingv1beta1.PlaceholderDriver || volume.Spec.Capacity.Storage().String() != "5Gi" {
		t.Errorf("source %+v, capacity %v", volume.Spec.CSI, volume.Spec.Capacity)
	}
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"a handle with parts missing": func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "milan//data/r1" },
		"another driver":              func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "ebs" },
		"a volume that is not ours":   func(v *corev1.PersistentVolume) { v.Annotations = nil },
	} {
		other := volume.DeepCopy()
		change(other)
		if handle, ok := HandleOf(other); ok {
			t.Errorf("%s: read as %+v", name, handle)
		}
	}
	remote.Status.Capacity = sized("4Gi")
	if size, changed := Capacity(volume, remote); changed {
		t.Errorf("shrinks to %s", size.String())
	}
}

// D4: any name makes a label's value, and two never the same.
func FuzzBoundedLabel(f *testing.F) {
	f.Add("data", strings.Repeat("a", 70))
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(validation.IsDNS1123Subdomain(a)) > 0 || len(validation.IsDNS1123Subdomain(b)) > 0 {
			t.Skip()
		}
		if errs := validation.IsValidLabelValue(BoundedLabel(a)); len(errs) > 0 {
			t.Errorf("%q: %v", BoundedLabel(a), errs)
		}
		if a != b && BoundedLabel(a) == BoundedLabel(b) {
			t.Errorf("%q and %q are the same", a, b)
		}
	})
}
