package storage

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// outcome is the claim at the provider, or the reason of the refusal, or that the pod waits.
func (w *world) outcome(t *testing.T, name string, owner types.UID) string {
	t.Helper()
	remote, refused, err := w.reconciler.Resolve(t.Context(), "shop", name, owner)
	switch {
	case err != nil:
		return "waits"
	case refused != nil:
		return refused.Reason
	}
	return remote
}

func TestResolve(t *testing.T) {
	atMilan := local("data", "u1", "pvc-u1")
	remote, volume := provided(atMilan, "r1")
	here := local("here", "u2", "real")
	gone := local("gone", "u4", "pvc-u4")
	_, goneVolume := provided(gone, "r4")
	remade := local("remade", "u5", "pvc-u5")
	other, remadeVolume := provided(remade, "r5")
	other.UID = "r6"
	foreign := local("foreign", "u7", "pvc-u7")
	_, foreignVolume := provided(foreign, "r7")
	stranger := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "foreign", UID: "r8"}}
	moved := local("moved", "u9", "pvc-u9")
	movedRemote, movedVolume := provided(moved, "r9")
	movedVolume.Spec.CSI.VolumeHandle = strings.Replace(movedVolume.Spec.CSI.VolumeHandle, "shop-rome", "shop-before", 1)
	scratch := local("p-scratch", "u10", "pvc-u10")
	yes := true
	scratch.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p1", Controller: &yes}}
	scratchRemote, scratchVolume := provided(scratch, "r10")
	w := start(t, []runtime.Object{atMilan, volume, here, local("unbound", "u3", ""), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "real"}},
		gone, goneVolume, remade, remadeVolume, foreign, foreignVolume, moved, movedVolume, scratch, scratchVolume},
		[]runtime.Object{remote, other, stranger, movedRemote, scratchRemote})
	w.settled(t)
	for name, tc := range map[string]struct {
		claim string
		owner types.UID
		want  string
	}{
		"at the provider":                     {"data", "", "data"},
		"in this cluster":                     {"here", "", offloadingv1beta1.ReasonVolumeNotAtProvider},
		"not bound":                           {"unbound", "", "waits"},
		"not there":                           {"missing", "", "waits"},
		"gone from the provider":              {"gone", "", offloadingv1beta1.ReasonVolumeLost},
		"made again at the provider":          {"remade", "", offloadingv1beta1.ReasonClaimConflict},
		"taken by somebody at the provider":   {"foreign", "", offloadingv1beta1.ReasonClaimConflict},
		"in the former twin":                  {"moved", "", offloadingv1beta1.ReasonVolumeNotAtProvider},
		"of an ephemeral volume":              {"p-scratch", "p1", "p-scratch"},
		"of an earlier pod's ephemeral one":   {"p-scratch", "p2", offloadingv1beta1.ReasonClaimConflict},
		"not made for an ephemeral volume":    {"data", "p1", offloadingv1beta1.ReasonClaimConflict},
		"of an ephemeral volume, not there":   {"p-other", "p1", "waits"},
		"of an ephemeral volume, by its name": {"p-scratch", "", "p-scratch"},
	} {
		if got := w.outcome(t, tc.claim, tc.owner); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	for _, told := range []string{"gone: " + offloadingv1beta1.ReasonVolumeLost, "remade: " + offloadingv1beta1.ReasonClaimConflict,
		"moved: " + offloadingv1beta1.ReasonVolumeNotAtProvider} {
		await(t, told, func(context.Context) bool { return w.told(told) })
	}
}
