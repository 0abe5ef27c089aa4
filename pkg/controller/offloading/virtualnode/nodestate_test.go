package virtualnode

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

func TestTheConditionNodeSaysWhatTheNodeIs(t *testing.T) {
	notReady := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Unreachable", Message: "no answer"}
	for name, tc := range map[string]struct {
		node    []corev1.NodeCondition
		kubelet int32
		want    string
	}{
		"it never reported": {nil, 1, "Creating NodeNotReady: waiting for the virtual kubelet to report the state of Node milan"},
		"it is ready":       {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, 1, "Running VirtualNodeReady: "},
		"it is ready, its virtual kubelet is updated": {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, 0, "Running VirtualNodeReady: "},
		"its provider does not answer":                {[]corev1.NodeCondition{notReady}, 1, "NotReady NodeNotReady: Node milan is not ready: Unreachable: no answer"},
		"and its virtual kubelet does not run either": {[]corev1.NodeCondition{notReady}, 0, "NotReady NodeNotReady: Node milan is not ready: Unreachable: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			node, deployment := &corev1.Node{}, &appsv1.Deployment{}
			if !w.is(node, "") || !w.is(deployment, "") {
				t.Fatal("there is no Node or no virtual kubelet")
			}
			node.Status.Conditions, deployment.Status.AvailableReplicas = tc.node, tc.kubelet
			if err := errors.Join(w.Status().Update(context.Background(), node), w.Status().Update(context.Background(), deployment)); err != nil {
				t.Fatal(err)
			}
			w.pass()
			vn := virtualNode()
			if err := w.Get(context.Background(), key, vn); err != nil {
				t.Fatal(err)
			}
			c := conditions.Find(vn.Status.Conditions, offloadingv1beta1.NodeCondition)
			if got := c.Status + " " + c.Reason + ": " + c.Message; got != tc.want {
				t.Errorf("the condition is %q, want %q", got, tc.want)
			}
		})
	}
}
