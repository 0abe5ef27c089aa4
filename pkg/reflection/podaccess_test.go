package reflection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a pod is told of itself is what its own cluster says, unless it is to talk to the provider's API server.
func TestAPodIsToldOfItselfByItsOwnCluster(t *testing.T) {
	want := map[string]string{
		"metadata.uid": "local-uid", "metadata.namespace": "shop", "spec.nodeName": "milan", "status.hostIP": "10.10.0.5", "status.hostIPs": "10.10.0.5",
		"spec.serviceAccountName": "seller", "metadata.labels['tier']": "front", "metadata.annotations['shop.example/price']": "5$$(X)", "metadata.labels['none']": "",
		"metadata.name": "<left>", "status.podIP": "<left>",
	}
	for mode, own := range map[string]bool{"": true, "disabled": true, "remote": false} {
		for _, api := range []HomeAPI{{}, {Enabled: true, Host: "api.rome.example", Port: "6443"}} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mirror", UID: "local-uid", Labels: map[string]string{"tier": "front"},
				Annotations: map[string]string{"shop.example/price": "5$(X)"}}, Spec: corev1.PodSpec{ServiceAccountName: "seller", Containers: []corev1.Container{{Name: "c"}}}}
			if mode != "" {
				pod.Annotations["liqo.io/api-server-support"] = mode
			}
			for path := range want {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: path, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
			}
			uid := []corev1.DownwardAPIVolumeFile{{Path: "uid", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}
			pod.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: uid}}},
				{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: uid}}}}}}}
			before := pod.DeepCopy()
			shadow, refusal := ShadowPod(pod, PodInput{Home: "rome", Remote: "milan", Node: "milan", NodeIP: "10.10.0.5", Namespace: "shop-rome", API: api})
			if refusal != nil {
				t.Fatal(refusal)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("mode %q: the local pod was changed: %s", mode, diff)
			}
			got := map[string]string{}
			for _, v := range shadow.Spec.Pod.Containers[0].Env {
				switch _, asked := want[v.Name]; {
				case !asked:
				case v.ValueFrom != nil:
					got[v.Name] = "<left>"
				default:
					got[v.Name] = v.Value
				}
			}
			expected, path := want, "metadata.annotations['liqo.io/origin-uid']"
			if !own {
				expected, path = map[string]string{}, "metadata.uid"
				for name := range want {
					expected[name] = "<left>"
				}
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("mode %q: %s", mode, diff)
			}
			volumes := shadow.Spec.Pod.Volumes
			if a, b := volumes[0].DownwardAPI.Items[0].FieldRef.FieldPath, volumes[1].Projected.Sources[0].DownwardAPI.Items[0].FieldRef.FieldPath; a != path || b != path {
				t.Errorf("mode %q: files are made of %q and %q, want %q", mode, a, b, path)
			}
			if shadow.Annotations["liqo.io/origin-uid"] != "local-uid" {
				t.Error("the UID is no annotation")
			}
		}
	}
}
