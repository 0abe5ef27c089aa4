package reflection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestReferences(t *testing.T) {
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want []Reference
	}{
		"nothing":               {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), nil},
		"a Secret to pull with": {corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{named("pull")}}, []Reference{{"secret", "pull"}}},
		"a ConfigMap volume": {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("c")}}),
			[]Reference{{"configmap", "c"}}},
		"a Secret volume": {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}), []Reference{{"secret", "s"}}},
		"the Secret of a CSI volume": {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			[]Reference{{"secret", "s"}}},
		"a projected volume": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("c")}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: named("s")}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}}), []Reference{{"configmap", "c"}, {"secret", "s"}}},
		"the environment of every container, each object once": {corev1.PodSpec{
			InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("c")}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("s")}},
			}}},
			Containers: []corev1.Container{{Env: []corev1.EnvVar{
				{Name: "PLAIN", Value: "x"},
				{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("c")}}},
				{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("t")}}},
			}}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("u")}}}}}},
		}, []Reference{{"configmap", "c"}, {"secret", "s"}, {"secret", "t"}, {"secret", "u"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, References(&tc.spec)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
