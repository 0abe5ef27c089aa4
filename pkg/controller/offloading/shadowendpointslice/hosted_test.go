package shadowendpointslice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// A consumer names pods of its own that its Service does not select here. Where they are is what this cluster knows, whatever the consumer says;
// pods of others, and those that the Service selects, get no endpoint by that.
func TestPodsThatTheConsumerNames(t *testing.T) {
	pod := func(namespace, name, origin, ip string, labels map[string]string) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1", Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "fd00::7"}, {IP: ip}}}}
		if origin != "" {
			p.Labels[offloadingv1beta1.ManagedByLabel], p.Labels[offloadingv1beta1.OriginLabel] = offloadingv1beta1.ManagedByShadowPod, origin
		}
		for key, value := range labels {
			p.Labels[key] = value
		}
		return p
	}
	given := map[string]string{"dapr.io/app-id": "web"}
	for name, tc := range map[string]struct {
		pod  client.Object
		want []string
	}{
		"its own":                           {pod(key.Namespace, "web-0", "rome", "10.1.0.7", nil), []string{"10.10.0.1", "10.1.0.7"}},
		"its own that the Service selects":  {pod(key.Namespace, "web-0", "rome", "10.1.0.7", given), []string{"10.10.0.1"}},
		"another consumer's":                {pod(key.Namespace, "web-0", "naples", "10.1.0.7", nil), []string{"10.10.0.1"}},
		"the provider's":                    {pod(key.Namespace, "web-0", "", "10.1.0.7", nil), []string{"10.10.0.1"}},
		"one of that name elsewhere":        {pod("elsewhere", "web-0", "rome", "10.1.0.7", nil), []string{"10.10.0.1"}},
		"one that has only another address": {pod(key.Namespace, "web-0", "rome", "fd00::8", nil), []string{"10.10.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := shadow("10.10.0.1")
			s.Labels[offloadingv1beta1.DestinationLabel] = "milan"
			s.Spec.Template.Endpoints = append(s.Spec.Template.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0.66"}, NodeName: ptr.To("milan"),
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web-0"}})
			service := serviceOf("rome")
			service.Spec.Selector = map[string]string{"app": "web", "dapr.io/app-id": "web"}
			w := newWorld(t, s, announcing("a", "rome", "10.10.0.0/16"), service, tc.pod)
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, w.addresses()); diff != "" {
				t.Error(diff)
			}
			if said := w.said(); len(said) > 0 {
				t.Errorf("said %v", said)
			}
			for _, e := range w.slice().Endpoints[1:] {
				if *e.NodeName != "n1" || e.TargetRef.UID != "uid-1" || !*e.Conditions.Ready {
					t.Errorf("the endpoint is %+v", e)
				}
			}
			if writes, _ := w.pass(); writes != 0 {
				t.Errorf("%d more writes", writes)
			}
		})
	}
}
