package api

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// Pods of offloaded namespaces get their label in the write that binds them to a virtual node; those on other nodes do not. The controller manager is
// asked about those that may be too large for it.
func TestPodsOnVirtualNodesAreLabelled(t *testing.T) {
	t.Parallel()
	virtual, crowded, plain := fixture.Unique("virtual"), fixture.Unique("crowded"), fixture.Unique("plain")
	offloaded, large, other := fixture.Unique("local"), fixture.Unique("large"), fixture.Unique("other")
	create := func(node string, labels, annotations map[string]string) {
		fixture.Must(t, "creating a Node", env.Milan.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: labels, Annotations: annotations}}))
	}
	create(virtual, map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}, nil)
	create(crowded, map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}, map[string]string{offloadingv1beta1.CrowdedAnnotation: "true"})
	create(plain, nil, nil)
	scheduled := map[string]string{offloadingv1beta1.SchedulingLabel: "true"}
	for namespace, labels := range map[string]map[string]string{offloaded: scheduled, other: nil,
		large: {offloadingv1beta1.SchedulingLabel: "true", offloadingv1beta1.LargePodsLabel: "true"}} {
		fixture.Must(t, "creating a namespace", env.Milan.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}))
		env.Milan.AwaitServiceAccount(t, namespace)
	}
	place := func(namespace, node, name string, labels map[string]string, bind bool) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec: corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
		if !bind {
			pod.Spec.NodeName = node
		}
		pods := env.Milan.Kube.CoreV1().Pods(namespace)
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		fixture.Must(t, "creating a pod", err)
		if bind {
			fixture.Must(t, "binding a pod", pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{}))
		}
		live, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		fixture.Must(t, "reading a pod", err)
		return live
	}
	marked := func(p *corev1.Pod) bool { return p.Labels[offloadingv1beta1.LocalPodLabel] == "true" }
	// The API server learns of policies and nodes in the background.
	fixture.Await(t, fixture.Patience, "policy liqo-local-pods to be effective", func(context.Context) (bool, string) {
		pod, another := place(offloaded, virtual, fixture.Unique("probe"), nil, true), place(offloaded, crowded, fixture.Unique("probe"), nil, true)
		return marked(pod) && marked(another), fmt.Sprint(pod.Labels, another.Labels)
	})
	for name, tc := range map[string]struct {
		namespace, node string
		labels          map[string]string
		bind            bool
		want, asked     bool
	}{
		"a bound pod with labels":                    {offloaded, virtual, map[string]string{"app": "web"}, true, true, false},
		"a bound pod without labels":                 {offloaded, virtual, nil, true, true, false},
		"a pod that names its node is the webhook's": {offloaded, virtual, map[string]string{"app": "web"}, false, false, false},
		"a bound pod of another node":                {offloaded, plain, map[string]string{"app": "web"}, true, false, false},
		"a pod that names another node":              {offloaded, plain, nil, false, false, false},
		"a bound pod of another namespace":           {other, virtual, nil, true, false, false},
		"a bound pod where one was large":            {large, virtual, nil, true, true, true},
		"a bound pod of a crowded node":              {offloaded, crowded, map[string]string{"app": "web"}, true, true, true},
		"a bound pod of another node, if one was":    {large, plain, nil, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := place(tc.namespace, tc.node, fixture.Unique("pod"), tc.labels, tc.bind)
			if marked(pod) != tc.want || pod.Labels["app"] != tc.labels["app"] {
				t.Errorf("labels are %v, want the mark: %v", pod.Labels, tc.want)
			}
			if asked := pod.Labels[offloadingv1beta1.SizeCheckedLabel] == "true"; asked != tc.asked {
				t.Errorf("labels are %v, want the controller manager asked: %v", pod.Labels, tc.asked)
			}
		})
	}
}
