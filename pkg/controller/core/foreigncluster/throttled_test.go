package foreigncluster

import (
	"testing"
	"time"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// A7: a provider that asks for fewer requests works, and its ForeignCluster says that it is slow, and why.
func TestA7AThrottledProviderIsShown(t *testing.T) {
	facts := Facts{
		Identities: []authv1beta1.Identity{controlPlane(true)},
		Probe:      Probe{Known: true, Connected: true, Reason: corev1beta1.ReasonRemoteThrottled, Message: "fewer requests"},
	}
	status := Observe(corev1beta1.ForeignClusterStatus{}, 1, facts, time.Unix(100, 0))
	api := conditions.Find(status.Conditions, corev1beta1.APIServerStatus)
	if api == nil || api.Status != corev1beta1.StatusEstablished || api.Reason != corev1beta1.ReasonRemoteThrottled || api.Message != "fewer requests" {
		t.Errorf("the condition is %+v", api)
	}
}
