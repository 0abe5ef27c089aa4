package storage

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// W4: what a provider says about a claim is said about the local one that the claim there was made for, and about no other.
func TestReflectedKnowsWhichClaimStandsBehind(t *testing.T) {
	mine, other := local("data", "u1", "pvc-u1"), local("other", "u2", "pvc-u2")
	remote, volume := provided(mine, "r1")
	renamed, _ := provided(other, "r2")
	renamed.Name = "other-there"
	forged, _ := provided(local("victim", "u3", ""), "r3")
	forged.Name, forged.Annotations[corev1beta1.OriginUIDAnnotation] = "forged", "another UID"
	unmarked := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "unmarked"}}
	w := start(t, []runtime.Object{mine, other, local("victim", "u3", ""), local("unmarked", "u4", ""), volume},
		[]runtime.Object{remote, renamed, forged, unmarked})
	await(t, "the claim to be known", func(context.Context) bool {
		_, known := w.reconciler.Reflected("shop", "data")
		return known
	})
	for name, want := range map[string]string{
		"data": "data", "other-there": "other", "other": "", "forged": "", "unmarked": "", "nothing": "",
	} {
		found, known := w.reconciler.Reflected("shop", name)
		if known != (want != "") || known && found.Name != want {
			t.Errorf("%s stands for %v (%v), want %q", name, found, known, want)
		}
	}
	if _, known := w.reconciler.Reflected("elsewhere", "data"); known {
		t.Error("a claim of a namespace that is not offloaded is known")
	}
	if !w.reconciler.Crossed("shop") || w.reconciler.Crossed("elsewhere") {
		t.Errorf("claims crossed from shop: %v, from elsewhere: %v", w.reconciler.Crossed("shop"), w.reconciler.Crossed("elsewhere"))
	}
	if got := offloadingv1beta1.VirtualClaimAnnotation; forged.Annotations[got] != "shop/victim" {
		t.Errorf("the forged claim stands for %q: this test shows nothing", forged.Annotations[got])
	}
}
