package gateway

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// lost is a gateway that is Connected, as far as it is seen when it has no ready pod.
type lost struct {
	deployment appsv1.Deployment
	connection networkingv1beta1.Connection
	pod        corev1.Pod
}

// What a Connection says once its gateway has no ready pod, and when the gateway is looked at again.
func TestTheWordOfALostGatewayIsTakenBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	for name, tc := range map[string]struct {
		since  time.Duration
		change func(*lost)
		taken  bool
		again  time.Duration
	}{
		"a ready pod":             {time.Minute, func(l *lost) { l.deployment.Status.ReadyReplicas = 1 }, false, 0},
		"a pod that starts again": {4 * time.Second, nil, false, 16 * time.Second},
		"no ready pod":            {20 * time.Second, nil, true, 30 * time.Second},
		"there never was one":     {time.Second, func(l *lost) { l.deployment.Status.Conditions = nil }, true, 30 * time.Second},
		"it contradicted":         {time.Minute, func(l *lost) { l.connection.Status.Conditions[0].LastTransitionTime = ago(30 * time.Second) }, false, 30 * time.Second},
		"it contradicted, and another pod was made in its place": {time.Minute, func(l *lost) {
			l.connection.Status.Conditions[0].LastTransitionTime = ago(30 * time.Second)
			l.pod.CreationTimestamp = ago(10 * time.Second)
		}, true, 30 * time.Second},
		"the tunnel of another gateway": {time.Minute, func(l *lost) { l.connection.Spec.GatewayRef.Kind = "WgGatewayClient" }, false, 30 * time.Second},
		"a Deployment of nobody":        {time.Minute, func(l *lost) { l.deployment.OwnerReferences = nil }, false, 30 * time.Second},
		"no answer anyway": {time.Minute, func(l *lost) {
			l.connection.Status.Value = networkingv1beta1.ConnectionError
			l.connection.Status.Conditions[0].Status, l.connection.Status.Conditions[0].Reason = metav1.ConditionFalse, networkingv1beta1.ReasonNoHandshake
		}, true, 30 * time.Second},
		"it had not said how it is": {time.Minute, func(l *lost) {
			l.connection.Status.Value, l.connection.Status.Conditions = networkingv1beta1.Connecting, nil
		}, true, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := &lost{pod: *gatewayPod("p", "10.244.1.7")}
			o.pod.CreationTimestamp = ago(time.Hour)
			o.deployment.ObjectMeta = metav1.ObjectMeta{
				Namespace: home, Name: parts.Name, CreationTimestamp: ago(time.Hour),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gatewayServer(nil), networkingv1beta1.GroupVersion.WithKind("WgGatewayServer"))},
			}
			o.deployment.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, LastTransitionTime: ago(tc.since)},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Second)},
			}
			o.connection.ObjectMeta = metav1.ObjectMeta{Namespace: home, Name: of.Name, Generation: 3}
			o.connection.Spec.GatewayRef = corev1.ObjectReference{Kind: "WgGatewayServer", Namespace: home, Name: of.Name}
			o.connection.Status = networkingv1beta1.ConnectionStatus{Value: networkingv1beta1.Connected, MTU: 1440, Conditions: []metav1.Condition{{
				Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: networkingv1beta1.ReasonConnected, LastTransitionTime: ago(time.Hour),
			}}}
			if tc.change != nil {
				tc.change(o)
			}
			l := newLab(t, &o.deployment, &o.connection, &o.pod)
			want := o.connection.DeepCopy()
			if tc.taken {
				want.Status.Value = networkingv1beta1.ConnectionError
				want.Status.Conditions = []metav1.Condition{{
					Type: corev1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: networkingv1beta1.ReasonGatewayPodPending,
					ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(now),
					Message: "No pod of this cluster's gateway is ready, so nobody asks the other end. Condition Ready of the gateway says why.",
				}}
			}
			r := &losses{l.Client, l.Client, testclock.NewFakePassiveClock(now)}
			for range 2 {
				result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: of})
				if err != nil || result.RequeueAfter != tc.again {
					t.Errorf("again after %v, want %v; %v", result.RequeueAfter, tc.again, err)
				}
				l.get(of, &o.connection)
				if diff := cmp.Diff(want, &o.connection, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Without a Connection, or a Deployment, there is nothing to take back.
func TestAGatewayThatNeverSpokeIsLost(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: parts.Name}}
	for again, objects := range map[time.Duration][]client.Object{0: nil, partRetry: {deployment}} {
		l := newLab(t, objects...)
		r := &losses{l.Client, l.Client, testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))}
		if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: of}); err != nil || result.RequeueAfter != again {
			t.Errorf("again after %v, want %v; %v", result.RequeueAfter, again, err)
		}
	}
}
