package shadowendpointslice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

// A consumer names pods of its own that its Service does not select here. Where they are is what this cluster knows, whatever the consumer says;
// pods of others, and those that the Service selects, get no endpoint by that.
func TestPodsThatTheConsumerNames(t *testing.T) {
	pod := func(namespace, name, origin, ip string, labels map[string]string) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1", Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "fd00::7"}, {IP: ip}},
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		if origin != "" {
			p.Labels[offloadingv1beta1.ManagedByLabel], p.Labels[offloadingv1beta1.OriginLabel] = offloadingv1beta1.ManagedByShadowPod, origin
		}
		for key, value := range labels {
			p.Labels[key] = value
		}
		return p
	}
	ended := func(o client.Object) client.Object {
		o.(*corev1.Pod).Status.Phase = corev1.PodSucceeded
		return o
	}
	given := map[string]string{"dapr.io/app-id": "web"}
	for name, tc := range map[string]struct {
		pod  client.Object
		want []string
	}{
		"its own":                           {pod(key.Namespace, "web-0", "rome", "10.1.0.7", nil), []string{"10.10.0.1", "10.1.0.7"}},
		"its own that the Service selects":  {pod(key.Namespace, "web-0", "rome", "10.1.0.7", given), []string{"10.10.0.1"}},
		"its own that ended":                {ended(pod(key.Namespace, "web-0", "rome", "10.1.0.7", nil)), []string{"10.10.0.1"}},
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

// How a pod of this cluster is, this cluster knows itself, as Kubernetes' own controller does: the consumer, whose tunnel is down, calls it not
// ready, and only the consumer's own pods are out of reach here.
func TestPodsOfThisClusterStayReadyWhileTheTunnelIsDown(t *testing.T) {
	condition := func(ready, serving, terminating bool) discoveryv1.EndpointConditions {
		return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
	}
	for name, tc := range map[string]struct {
		ready       corev1.ConditionStatus
		ends        bool
		publish     bool
		tunnel      string
		home, there discoveryv1.EndpointConditions
	}{
		"the tunnel is down": {corev1.ConditionTrue, false, false, corev1beta1.StatusError, condition(false, false, true), condition(true, true, false)},
		"the tunnel is up": {corev1.ConditionTrue, false, false, corev1beta1.StatusEstablished, condition(true, true, true),
			condition(true, true, false)},
		"the pod is not ready": {corev1.ConditionFalse, false, false, corev1beta1.StatusError, condition(false, false, true),
			condition(false, false, false)},
		"the pod ends and serves": {corev1.ConditionTrue, true, false, corev1beta1.StatusError, condition(false, false, true), condition(false, true, true)},
		"not ready, for a Service that wants it": {corev1.ConditionFalse, false, true, corev1beta1.StatusError, condition(false, false, true),
			condition(true, false, false)},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "web-9", UID: "uid-1", Finalizers: []string{"test/held"},
				Labels: map[string]string{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod, offloadingv1beta1.OriginLabel: "rome"}},
				Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.1.0.7"}},
					Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: tc.ready}}}}
			peer := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "rome"}}
			peer.Status.Modules.Networking.Enabled = true
			peer.Status.Modules.Networking.Conditions = []corev1beta1.Condition{{Type: corev1beta1.NetworkConnectionStatus, Status: tc.tunnel}}
			s := shadow("10.10.0.1")
			s.Labels[offloadingv1beta1.DestinationLabel] = "milan"
			s.Spec.Template.Endpoints = append(s.Spec.Template.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0.66"}, NodeName: ptr.To("milan"),
				Conditions: condition(false, false, false), TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod.Name}})
			service := serviceOf("rome")
			service.Spec = corev1.ServiceSpec{Selector: map[string]string{"dapr.io/app-id": "web"}, PublishNotReadyAddresses: tc.publish}
			w := newWorld(t, s, announcing("a", "rome", "10.10.0.0/16"), service, pod, peer)
			if tc.ends {
				if err := w.Client.Delete(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			var got []discoveryv1.EndpointConditions
			for _, e := range w.slice().Endpoints {
				got = append(got, e.Conditions)
			}
			if diff := cmp.Diff([]discoveryv1.EndpointConditions{tc.home, tc.there}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A pod of this cluster that changes is looked at again for those that name it, and its endpoint follows, which is no contest.
func TestEndpointsFollowPodsOfThisCluster(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "web-9",
		Labels: map[string]string{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod, offloadingv1beta1.OriginLabel: "rome"}},
		Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.1.0.7"}}}}
	s := shadow()
	s.Labels[offloadingv1beta1.DestinationLabel] = "milan"
	s.Spec.Template.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.66"}, NodeName: ptr.To("milan"),
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod.Name}}}
	w := newWorld(t, s, serviceOf("rome"), pod)
	asked := func(pod *corev1.Pod) []ctrl.Request {
		return watch.Requests(t.Context(), w.Client, known(), w.reconciler.namers(pod)...)
	}
	if got := asked(pod); len(got) > 0 {
		t.Errorf("before anything is known, %v are asked for", got)
	}
	for i := range 10 {
		before := pod.DeepCopy()
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		if i%2 == 0 {
			pod.Status.Conditions[0].Status = corev1.ConditionTrue
		}
		if i > 0 && !pods().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: pod}) {
			t.Error("a change of its readiness is not passed")
		}
		if pods().Update(event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}) {
			t.Error("no change is passed")
		}
		if err := w.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if writes, err := w.pass(); writes != 1 || err != nil {
			t.Fatalf("change %d: %d writes, %v", i, writes, err)
		}
		if got := *w.slice().Endpoints[0].Conditions.Ready; got != (i%2 == 0) {
			t.Errorf("change %d: ready is %t", i, got)
		}
	}
	if diff := cmp.Diff([]ctrl.Request{{NamespacedName: key}}, asked(pod)); diff != "" {
		t.Error(diff)
	}
	other := pod.DeepCopy()
	other.Name = "web-8"
	if got := asked(other); len(got) > 0 {
		t.Errorf("for a pod that nobody names, %v are asked for", got)
	}
	if said := w.said(); len(said) > 0 {
		t.Errorf("said %v", said)
	}
}
