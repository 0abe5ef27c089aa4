package reflection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestSlimRemotePod(t *testing.T) {
	remote := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "shop-rome", UID: "1", ResourceVersion: "7", GenerateName: "p-", Finalizers: []string{"f"},
			OwnerReferences: []metav1.OwnerReference{{Name: "p"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Labels:      map[string]string{"app": "shop", offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.DestinationLabel: "milan"},
			Annotations: map[string]string{"a": "b"},
		},
		Spec: *filled(t),
	}
	for key := range RemoteAnnotations(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "home"}}, NotReflected{}) {
		remote.Annotations[key] = "home"
	}
	whole := remote.DeepCopy()
	SlimRemotePod(remote)
	if !IsOurs(remote, "rome", "milan") || OriginUID(remote) != OriginUID(whole) || Finished(&whole.Spec, remote) != Finished(&whole.Spec, whole) {
		t.Errorf("what is left does not say whose pod it is: %v", remote)
	}
	if diff := cmp.Diff(corev1.PodSpec{}, remote.Spec); diff != "" {
		t.Errorf("specification, -want +got:\n%s", diff)
	}
	if remote.UID != whole.UID || remote.ResourceVersion != whole.ResourceVersion || len(remote.Labels) != 2 || len(remote.Annotations) != 1 {
		t.Errorf("metadata is %+v", remote.ObjectMeta)
	}
}

func TestSlimShadowPodKnowsItsTokens(t *testing.T) {
	secret := func(name string) corev1.Volume {
		return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}}}}
	}
	for name, tc := range map[string]struct {
		volumes []corev1.Volume
		want    bool
	}{
		"its token Secret":  {[]corev1.Volume{{Name: "other"}, secret(TokenSecretName("p"))}, true},
		"another Secret":    {[]corev1.Volume{secret("mine")}, false},
		"no volumes at all": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{Volumes: tc.volumes}}}
			SlimShadowPod(shadow)
			if got := TokenSecretOf(shadow) != ""; got != tc.want {
				t.Errorf("uses its token Secret: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestSlimShadowPodKnowsThatItHasNoAPIServer(t *testing.T) {
	local := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}}}}
	for value, want := range map[string]bool{"": true, "10.0.0.1": false} {
		shadow := &offloadingv1beta1.ShadowPod{Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{Containers: []corev1.Container{{
			Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "KUBERNETES_SERVICE_HOST", Value: value}}}}}}}
		SlimShadowPod(shadow)
		if got := LacksAPIServer(local, shadow); got != want {
			t.Errorf("with address %q: lacks its API server: %t, want %t", value, got, want)
		}
	}
}

func TestSlimShadowPodKnowsTheSizeOfItsPod(t *testing.T) {
	amounts := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	whole := &offloadingv1beta1.ShadowPod{Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{
		Resources:  &corev1.ResourceRequirements{Requests: amounts},
		Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Limits: amounts}}}}}}
	slim := whole.DeepCopy()
	SlimShadowPod(slim)
	if changes := ShadowPodResize(slim, whole); len(changes) > 0 {
		t.Errorf("changes of a size that is as wanted: %v", changes)
	}
}
