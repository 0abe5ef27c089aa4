package reflection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What the admission policy refuses of a consumer's claim (selector, data source, annotations of binding) does not pass inside a
// pod either, where Kubernetes makes the claim; nor do inline volumes by which a driver reaches storage or secrets of the provider.
func TestEphemeralVolumesPassNoMoreThanClaims(t *testing.T) {
	base := func(v corev1.VolumeSource) *corev1.PodSpec {
		return &corev1.PodSpec{AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "a", Image: "b"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: v}}}
	}
	ephemeral := func(change func(*corev1.PersistentVolumeClaimTemplate)) *corev1.PodSpec {
		template := &corev1.PersistentVolumeClaimTemplate{}
		change(template)
		return base(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}})
	}
	driver := func(name string, attributes map[string]string) *corev1.PodSpec {
		return base(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: name, VolumeAttributes: attributes}})
	}
	for name, tc := range map[string]struct {
		spec *corev1.PodSpec
		// open is a configuration that lets it pass; nil if none does.
		open *Rules
	}{
		"selector": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"owner": "payroll"}}
		}), nil},
		"selector of everything": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.Selector = &metav1.LabelSelector{} }), nil},
		"dataSource": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "providers-claim"}
		}), nil},
		"dataSourceRef": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "providers-snapshot"}
		}), nil},
		"dataSourceRef of another namespace": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "books", Namespace: ptr.To("payroll")}
		}), nil},
		"volumeName":                {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.VolumeName = "payroll" }), nil},
		"volumeAttributesClassName": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.VolumeAttributesClassName = ptr.To("gold") }), nil},
		"the empty class":           {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.StorageClassName = ptr.To("") }), nil},
		"annotation of binding": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes", "volume.beta.kubernetes.io/storage-class": "x"}
		}), nil},
		"annotation of a clone": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": "payroll/books"}
		}), nil},
		"label of another consumer": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) {
			c.Labels = map[string]string{"offloading.liqo.io/origin": "turin"}
		}), nil},
		"finalizer": {ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) { c.Finalizers = []string{"rome.it/never"} }), nil},
		"csi inline: an NFS export of the provider's network": {driver("nfs.csi.k8s.io", map[string]string{"server": "10.0.0.5", "share": "/exports/payroll"}),
			&Rules{CSIDrivers: []string{"nfs.csi.k8s.io"}}},
		"csi inline: a share":                         {driver("smb.csi.k8s.io", map[string]string{"source": "//10.0.0.5/payroll"}), &Rules{CSIDrivers: []string{"*"}}},
		"csi inline: secrets of the provider's vault": {driver("secrets-store.csi.k8s.io", map[string]string{"secretProviderClass": "provider"}), &Rules{CSIDrivers: []string{"*"}}},
		"csi inline: a workload identity":             {driver("csi.spiffe.io", nil), &Rules{CSIDrivers: []string{"csi.spiffe.io"}}},
		"control: nfs":                                {base(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.5", Path: "/exports/payroll"}}), &Rules{VolumeSources: []string{"nfs"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if errs := CheckShadowPod(tc.spec, Rules{}); len(errs) == 0 {
				t.Errorf("the provider takes a pod with %s", name)
			}
			open := mostOpen
			if tc.open != nil {
				open = *tc.open
			}
			if errs := CheckShadowPod(tc.spec, open); (len(errs) == 0) != (tc.open != nil) {
				t.Errorf("with %+v: %v", open, errs)
			}
		})
	}
	if errs := CheckShadowPod(ephemeral(func(c *corev1.PersistentVolumeClaimTemplate) { c.Spec.StorageClassName = ptr.To("fast") }), Rules{}); len(errs) > 0 {
		t.Errorf("an ordinary ephemeral volume is refused: %v", errs)
	}
}

// What a user writes into the template of an ephemeral volume for people and tools at home stays at home: it is no reason for a
// provider to refuse the pod.
func TestMetadataOfEphemeralVolumesStaysAtHome(t *testing.T) {
	local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"note": "scratch"}}}}}}}}}
	shadow, refusal := ShadowPod(local, PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome"})
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	if errs := CheckShadowPod(&shadow.Spec.Pod, Rules{}); len(errs) > 0 {
		t.Errorf("the provider refuses it: %v", errs)
	}
	if local.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Labels["team"] != "shop" {
		t.Error("the local pod was changed")
	}
}

// A mount of a volume that the pod does not have stands for one that the provider's admission may put in.
func TestEachMountIsOfAVolumeOfThePod(t *testing.T) {
	debugged := func(c corev1.EphemeralContainerCommon) func(*corev1.PodSpec) {
		c.Name, c.Image = "d", "b"
		return func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: c}}
		}
	}
	mounts := func(name string) []corev1.VolumeMount {
		return []corev1.VolumeMount{{Name: name, MountPath: "/stolen"}}
	}
	for what, tc := range map[string]struct {
		set  func(*corev1.PodSpec)
		want string
	}{
		"a container": {func(s *corev1.PodSpec) { s.Containers[0].VolumeMounts = mounts("istio-token") }, "spec.containers[0].volumeMounts[0].name"},
		"an init container": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "b", VolumeMounts: mounts("vault-secrets")}}
		}, "spec.initContainers[0].volumeMounts[0].name"},
		"a sidecar": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "b", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), VolumeMounts: mounts("vault-secrets")}}
		}, "spec.initContainers[0].volumeMounts[0].name"},
		"an ephemeral container": {debugged(corev1.EphemeralContainerCommon{VolumeMounts: mounts("kube-api-access-xyz12")}), "spec.ephemeralContainers[0].volumeMounts[0].name"},
		"a device": {func(s *corev1.PodSpec) {
			s.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}
		}, "spec.containers[0].volumeDevices[0].name"},
		"a device of an ephemeral container": {debugged(corev1.EphemeralContainerCommon{VolumeDevices: []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}}),
			"spec.ephemeralContainers[0].volumeDevices[0].name"},
		"a variable": {func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "vault-secrets", Path: "a", Key: "b"}}}}
		}, "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName"},
		"the processes of a sidecar": {func(s *corev1.PodSpec) {
			debugged(corev1.EphemeralContainerCommon{})(s)
			s.EphemeralContainers[0].TargetContainerName = "istio-proxy"
		}, "spec.ephemeralContainers[0].targetContainerName"},
		"one mount of two": {func(s *corev1.PodSpec) {
			s.Containers[0].VolumeMounts = append(mounts("own"), mounts("aws-iam-token")...)
		}, "spec.containers[0].volumeMounts[1].name"},
		"the pod's own": {func(s *corev1.PodSpec) {
			s.Containers[0].VolumeMounts = mounts("own")
			s.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "own", Path: "a", Key: "b"}}}}
			debugged(corev1.EphemeralContainerCommon{VolumeMounts: mounts("own")})(s)
			s.EphemeralContainers[0].TargetContainerName = "a"
		}, ""},
	} {
		spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}, AutomountServiceAccountToken: ptr.To(false),
			Volumes: []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}
		tc.set(spec)
		for which, rules := range map[string]Rules{"strict": {}, "open": mostOpen} {
			errs := CheckShadowPod(spec, rules)
			if tc.want == "" && len(errs) > 0 || tc.want != "" && (len(errs) != 1 || errs[0].Field != tc.want) {
				t.Errorf("%s mounts a volume that the pod does not have, where rules are %s: %v", what, which, errs)
			}
		}
	}
}
