package storage

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqo.io/liqo/pkg/kube/massremoval"
)

// A12: where an old backup was restored, a claim and its volume may be missing here while the provider has the data. Not even one claim
// goes for that, before it is confirmed; one whose volume was given back goes as ever.
func TestAClaimOfWhichNothingIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		// known says that the claim and the volume are here at first, and the claim is deleted then.
		known, confirm, gone bool
	}{
		"nothing is known":                {},
		"nothing is known, and confirmed": {confirm: true, gone: true},
		"given back":                      {known: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard := massremoval.New(massremoval.Options{Share: massremoval.DefaultShare})
				claim := local("data", "u1", "pvc-u1")
				remote, volume := provided(claim, "r1")
				var home []runtime.Object
				if tc.known {
					volume.Status.Phase, volume.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete
					home = append(home, volume)
				}
				w := startWith(t, home, []runtime.Object{remote}, func(_ *world, o *Options) { o.Removals = guard })
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				confirm, said := guard.Held()
				if held := said == "1 of kind persistentvolumeclaim in namespace shop"; held == tc.known {
					t.Errorf("it says %q", said)
				}
				if tc.confirm {
					guard.Confirm(confirm)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				_, err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Get(t.Context(), "data", metav1.GetOptions{})
				if gone := apierrors.IsNotFound(err); gone != tc.gone {
					t.Errorf("the claim at the provider is gone: %t, want %t", gone, tc.gone)
				}
				if _, said := guard.Held(); tc.gone && said != "" {
					t.Errorf("in the end it says %q", said)
				}
			})
		})
	}
}
