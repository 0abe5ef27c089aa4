package storage

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Mount options do not travel: a claim cannot carry them. The user learns of it, once.
func TestMountOptionsAreToldOf(t *testing.T) {
	tuned := class.DeepCopy()
	tuned.Name, tuned.MountOptions = "tuned", []string{"noatime", "hard"}
	options := local("data", "u1", "")
	options.Spec.StorageClassName = ptr.To("tuned")
	w := start(t, []runtime.Object{tuned, options, local("plain", "u2", "")}, nil)
	for _, name := range []string{"data", "plain"} {
		await(t, "the volume of "+name, func(context.Context) bool { return w.told(name + ": " + offloadingv1beta1.ReasonVolumeProvisioned) })
	}
	w.settled(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.events, "\n")
	if strings.Count(all, offloadingv1beta1.ReasonMountOptionsIgnored) != 1 ||
		!strings.Contains(all, "data: MountOptionsIgnored: the mount options of StorageClass tuned (noatime,hard) do not apply in cluster \"milan\"") {
		t.Errorf("told:\n%s", all)
	}
}

// What was told is remembered as long as the claim is there.
func TestWhatWasToldIsForgottenWithTheClaim(t *testing.T) {
	w := start(t, nil, nil)
	w.settled(t)
	if err := w.home.CoreV1().PersistentVolumeClaims("shop").Delete(t.Context(), "marker", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "what was told to be forgotten", func(context.Context) bool {
		none := true
		w.reconciler.told.Range(func(_, _ any) bool { none = false; return false })
		return none
	})
}
