package pod

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/reflection"
)

// The claim of an ephemeral volume is looked for like any other one, and has to be the pod's own.
func TestClaimsOfAPod(t *testing.T) {
	asked := map[string]types.UID{}
	r := &Reconciler{options: Options{Claims: func(_ context.Context, namespace, name string, owner types.UID) (string, *reflection.Skip, error) {
		asked[namespace+"/"+name] = owner
		return name + "-there", nil, nil
	}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "p1"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}}}
	var in reflection.PodInput
	if ready, err := r.claims(t.Context(), pod, &in); !ready || err != nil {
		t.Fatal(ready, err)
	}
	if diff := cmp.Diff(map[string]types.UID{"shop/data": "", "shop/p-scratch": "p1"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"data": "data-there", "p-scratch": "p-scratch-there"}, in.Claims); diff != "" {
		t.Error(diff)
	}
}
