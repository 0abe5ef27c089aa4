package foreigncluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// A peer that was revoked says so, who did it and how it is taken back, and nobody is told to connect with it again.
func TestAPeerThatWasRevokedIsShownAsCutOff(t *testing.T) {
	by := map[string]string{corev1beta1.CutOffByAnnotation: "alice at 2026-11-27T03:00:00Z"}
	marked := map[string]string{corev1beta1.CutOffAnnotation: "true", corev1beta1.CutOffByAnnotation: by[corev1beta1.CutOffByAnnotation]}
	revoked, anew := tenant(true), tenant(true)
	revoked.Spec.RevokedPeering = "stolen"
	for sentence, test := range map[string]struct {
		annotations map[string]string
		tenants     []authv1beta1.Tenant
		want        string
	}{
		"a provider": {marked, nil, "milan was revoked in rome by alice at 2026-11-27T03:00:00Z and is not talked to; this is taken back with 'liqoctl peer', " +
			"or for the network alone with 'kubectl annotate foreigncluster milan liqo.io/foreign-cluster-cut-off-' in rome"},
		"a consumer": {by, []authv1beta1.Tenant{revoked}, "milan was revoked in rome by alice at 2026-11-27T03:00:00Z: its certificates have no rights in rome; " +
			"this is taken back with 'liqoctl peer' in milan, which gives it a new key"},
		"a consumer that was peered again": {by, []authv1beta1.Tenant{anew}, ""},
		"nobody":                           {nil, nil, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := Facts{Tenants: test.tenants, Network: Network{Configurations: []networkingv1beta1.Configuration{configuration(told(""))}}}
			peer := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan", Annotations: test.annotations}}
			facts.CutOff = peer.Revoked("rome", facts.revoked())
			peer.Status = Observe(peer.Status, 1, facts, time.Unix(100, 0))
			said := ""
			if c := conditions.Find(peer.Status.Summary, corev1beta1.CutOffCondition); c != nil {
				said = c.Message
			}
			ready := conditions.Find(peer.Status.Summary, corev1beta1.ConditionReady)
			if said != test.want || peer.WhyCutOff() != test.want || ready.Status != "False" {
				t.Errorf("said %q, Ready %s %s", said, ready.Status, ready.Message)
			}
			if advised := strings.Contains(ready.Message, "network connect"); advised != (test.want == "") {
				t.Errorf("Ready says %q", ready.Message)
			}
			facts.CutOff = ""
			if back := Observe(peer.Status, 1, facts, time.Unix(200, 0)); conditions.Find(back.Summary, corev1beta1.CutOffCondition) != nil {
				t.Error("the condition stays after it was taken back")
			}
		})
	}
}
