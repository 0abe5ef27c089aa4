package world

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// Cut takes milan's API server away from rome until mend, or the end of the test, and waits until rome shows it and no pod is put on
// the virtual node any more.
func (w *World) Cut(t *testing.T) (mend func()) {
	t.Helper()
	w.Milan.Link.Cut()
	t.Cleanup(w.Milan.Link.Mend)
	w.AwaitNode(t, false)
	return func() {
		w.Milan.Link.Mend()
		w.AwaitNode(t, true)
	}
}

// AwaitNode waits until the virtual node is ready, or is not, and the scheduler knows.
func (w *World) AwaitNode(t *testing.T, want bool) {
	t.Helper()
	what := fmt.Sprintf("the virtual node's readiness to be %t, and its taints to say so", want)
	fixture.Await(t, 3*fixture.Patience, what, func(ctx context.Context) (bool, string) {
		node := &corev1.Node{}
		err := w.Rome.Client.Get(ctx, client.ObjectKey{Name: w.Peered(t).Node}, node)
		return err == nil && fixture.NodeReady(node) == want && Tainted(node) != want, fmt.Sprint(node.Status.Conditions, node.Spec.Taints, err)
	})
}

// Tainted tells whether the scheduler knows that the node is not ready: Kubernetes' node controller tells it by a taint, some time after
// the condition has changed. A pod made in between is still bound to the node.
func Tainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady && t.Effect == corev1.TaintEffectNoSchedule
	})
}
