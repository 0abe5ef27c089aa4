package virtualnode

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// What the virtual kubelet says on the Node of removals that are held is shown on the VirtualNode, and the confirmation stays until they
// are not held any more.
func TestHeldRemovals(t *testing.T) {
	w := ready(t)
	says := func(message string) (before, after *corev1.Node) {
		t.Helper()
		node := &corev1.Node{}
		w.is(node, "")
		before = node.DeepCopy()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if message != "" {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: offloadingv1beta1.RemovalsHeldCondition,
				Status: corev1.ConditionTrue, Reason: offloadingv1beta1.ReasonManyAtOnce, Message: message})
		}
		if err := w.Status().Update(context.Background(), node); err != nil {
			t.Fatal(err)
		}
		return before, node
	}
	shows := func(what, condition string, confirmed bool) {
		t.Helper()
		w.pass()
		vn := &offloadingv1beta1.VirtualNode{}
		w.is(vn, "")
		_, there := vn.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation]
		if got := w.condition(offloadingv1beta1.RemovalsHeldCondition); got != condition || there != confirmed {
			t.Errorf("%s: the condition is %q, want %q; confirmed: %t, want %t", what, got, condition, there, confirmed)
		}
	}
	shows("at first", "", false)
	before, after := says("12 pods")
	if !nodeChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("nobody looks when removals are held")
	}
	shows("held", "True", false)
	turned(w, &offloadingv1beta1.VirtualNode{}, func(vn *offloadingv1beta1.VirtualNode) {
		metav1.SetMetaDataAnnotation(&vn.ObjectMeta, offloadingv1beta1.ConfirmedRemovalsAnnotation, "3f0c9a51b2de")
	})
	shows("confirmed", "True", true)
	if before, after = says(""); !nodeChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("nobody looks when nothing is held any more")
	}
	shows("over", "", false)
}
