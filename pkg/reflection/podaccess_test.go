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
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mirror", UID: "local-uid", Labels: map[string]string{"tier": "front", "app": `we"b`},
				Annotations: map[string]string{"shop.example/price": "5$(X)"}}, Spec: corev1.PodSpec{ServiceAccountName: "seller", Containers: []corev1.Container{{Name: "c"}}}}
			if mode != "" {
				pod.Annotations["liqo.io/api-server-support"] = mode
			}
			for path := range want {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: path, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
			}
			file := func(name string) corev1.DownwardAPIVolumeFile {
				return corev1.DownwardAPIVolumeFile{Path: name, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata." + name}}
			}
			uid := []corev1.DownwardAPIVolumeFile{file("uid"), file("namespace"), file("labels"), file("name")}
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
			annotation := func(key string) string { return "metadata.annotations['" + key + "']" }
			expected, paths := want, []string{annotation("liqo.io/origin-uid"), annotation("offloading.liqo.io/origin-namespace"),
				annotation("offloading.liqo.io/origin-labels"), "metadata.name"}
			told := [2]string{"shop", "app=\"we\\\"b\"\ntier=\"front\""}
			if !own {
				expected, paths, told = map[string]string{}, []string{"metadata.uid", "metadata.namespace", "metadata.labels", "metadata.name"}, [2]string{}
				for name := range want {
					expected[name] = "<left>"
				}
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("mode %q: %s", mode, diff)
			}
			volumes := shadow.Spec.Pod.Volumes
			for _, items := range [][]corev1.DownwardAPIVolumeFile{volumes[0].DownwardAPI.Items, volumes[1].Projected.Sources[0].DownwardAPI.Items} {
				for i, want := range paths {
					if items[i].FieldRef.FieldPath != want {
						t.Errorf("mode %q: file %s is made of %q, want %q", mode, items[i].Path, items[i].FieldRef.FieldPath, want)
					}
				}
			}
			if got := [2]string{shadow.Annotations["offloading.liqo.io/origin-namespace"], shadow.Annotations["offloading.liqo.io/origin-labels"]}; got != told {
				t.Errorf("mode %q: files say %q, want %q", mode, got, told)
			}
			if shadow.Annotations["liqo.io/origin-uid"] != "local-uid" {
				t.Error("the UID is no annotation")
			}
		}
	}
}
