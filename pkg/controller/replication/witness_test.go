package replication

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func virtualNode(name, cluster string, ready corev1.ConditionStatus) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: cluster,
	}}}
	if ready != "" {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	return node
}

func TestVirtualNodesVouchForTheirProvider(t *testing.T) {
	plain := virtualNode("worker", "milan", corev1.ConditionTrue)
	delete(plain.Labels, corev1beta1.TypeLabel)
	for name, tc := range map[string]struct {
		nodes []client.Object
		fail  error
		want  bool
	}{
		"none":                           {nil, nil, false},
		"one that is ready":              {[]client.Object{virtualNode("a", "milan", corev1.ConditionTrue)}, nil, true},
		"one that is not":                {[]client.Object{virtualNode("a", "milan", corev1.ConditionFalse)}, nil, false},
		"one whose kubelet stopped":      {[]client.Object{virtualNode("a", "milan", corev1.ConditionUnknown)}, nil, false},
		"one that says nothing yet":      {[]client.Object{virtualNode("a", "milan", "")}, nil, false},
		"one of two":                     {[]client.Object{virtualNode("a", "milan", corev1.ConditionFalse), virtualNode("b", "milan", corev1.ConditionTrue)}, nil, true},
		"one of another provider":        {[]client.Object{virtualNode("a", "turin", corev1.ConditionTrue)}, nil, false},
		"a node that is not virtual":     {[]client.Object{plain}, nil, false},
		"nodes that cannot be listed":    {[]client.Object{virtualNode("a", "milan", corev1.ConditionTrue)}, errors.New("no answer"), false},
		"ready, and another one unknown": {[]client.Object{virtualNode("a", "milan", corev1.ConditionTrue), virtualNode("b", "turin", corev1.ConditionUnknown)}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.nodes...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if tc.fail != nil {
						return tc.fail
					}
					return c.List(ctx, list, opts...)
				},
			}).Build()
			if got := vouched(t.Context(), c, "milan"); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestLostNodesAreNoticed(t *testing.T) {
	ready, not := virtualNode("a", "milan", corev1.ConditionTrue), virtualNode("a", "milan", corev1.ConditionFalse)
	for name, tc := range map[string]struct {
		before, now any
		want        bool
	}{
		"it was lost":        {ready, not, true},
		"it stays lost":      {not, not, false},
		"it is back":         {not, ready, false},
		"another provider's": {virtualNode("a", "turin", corev1.ConditionTrue), virtualNode("a", "turin", corev1.ConditionUnknown), false},
		"something else":     {&corev1.Pod{}, &corev1.Pod{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nodeLost(tc.before, tc.now, "milan"); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
