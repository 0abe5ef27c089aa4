package tenant

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/identity"
)

func TestSilentFrom(t *testing.T) {
	asked := time.Unix(1_000_000, 0)
	for name, tc := range map[string]struct {
		last  certificate.Demand
		after time.Duration
		want  time.Time
	}{
		"nothing is known of it":                               {certificate.Demand{}, time.Hour, time.Time{}},
		"its certificate lives as long":                        {certificate.Demand{At: asked, Until: asked.Add(24 * time.Hour)}, 24 * time.Hour, asked.Add(24 * time.Hour)},
		"its certificate lives longer: it need not ask before": {certificate.Demand{At: asked, Until: asked.Add(240 * time.Hour)}, 24 * time.Hour, asked.Add(240 * time.Hour)},
		"its certificate lives for minutes":                    {certificate.Demand{At: asked, Until: asked.Add(10 * time.Minute)}, 24 * time.Hour, asked.Add(24 * time.Hour)},
		"nobody wants to wait for longer":                      {certificate.Demand{At: asked, Until: asked.Add(10 * time.Minute)}, 0, asked.Add(10 * time.Minute)},
	} {
		if got := SilentFrom(tc.last, tc.after); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestAsks(t *testing.T) {
	renew := func(generation int64, status metav1.ConditionStatus, reason string) authv1beta1.Renew {
		r := authv1beta1.Renew{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
		if status != "" {
			r.Status.Conditions = []metav1.Condition{{Type: corev1beta1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: 2}}
		}
		return r
	}
	gone := renew(2, "", "")
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		renews []authv1beta1.Renew
		want   bool
	}{
		"nothing":                       {nil, false},
		"it was answered":               {[]authv1beta1.Renew{renew(2, metav1.ConditionTrue, authv1beta1.ReasonCertificateRenewed)}, false},
		"it was not looked at":          {[]authv1beta1.Renew{renew(1, "", "")}, true},
		"it asked again since":          {[]authv1beta1.Renew{renew(3, metav1.ConditionTrue, authv1beta1.ReasonCertificateRenewed)}, true},
		"our signer does not sign":      {[]authv1beta1.Renew{renew(2, metav1.ConditionFalse, authv1beta1.ReasonCertificatePending)}, true},
		"it was refused":                {[]authv1beta1.Renew{renew(2, metav1.ConditionFalse, authv1beta1.ReasonRenewalNotSigned)}, false},
		"one of two waits":              {[]authv1beta1.Renew{renew(2, metav1.ConditionTrue, authv1beta1.ReasonCertificateRenewed), renew(1, "", "")}, true},
		"what is being deleted is gone": {[]authv1beta1.Renew{gone}, false},
	} {
		if got := Asks(tc.renews); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// C9: a consumer of which nothing is heard for long is named, once, by the clock of this cluster alone; and who was away itself, does not know,
// or is of a release that is heard of elsewhere, says nothing.
func TestAConsumerThatFallsSilent(t *testing.T) {
	const silentAfter = 24 * time.Hour
	// When a certificate of a day is replaced that the consumer does not replace itself.
	const renewed = 21*time.Hour + 36*time.Minute
	waiting := &authv1beta1.Renew{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "controlplane-milan", Generation: 1,
		Labels: map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "rome"}}}
	for name, tc := range map[string]struct {
		// heard is how long ago the consumer asked; it got a certificate for a day. 0: a record that knows nothing.
		heard time.Duration
		// before is what was said of it.
		before metav1.ConditionStatus
		older  bool
		renews []client.Object
		want   string
		told   []string
		again  time.Duration
	}{
		"it asked 20 hours ago":                         {heard: 20 * time.Hour, before: metav1.ConditionTrue, want: "True ConsumerSeen", again: 4 * time.Hour},
		"it asked a minute ago, for the first time":     {heard: time.Minute, want: "True ConsumerSeen", again: renewed},
		"our clock was set back":                        {heard: -time.Hour, before: metav1.ConditionTrue, want: "True ConsumerSeen", again: renewed},
		"it asked a day ago":                            {heard: silentAfter, before: metav1.ConditionTrue, want: "False ConsumerSilent", told: []string{"Warning ConsumerSilent"}, again: renewed},
		"it is silent still":                            {heard: 9 * silentAfter, before: metav1.ConditionFalse, want: "False ConsumerSilent", again: renewed},
		"it is back":                                    {heard: time.Minute, before: metav1.ConditionFalse, want: "True ConsumerSeen", told: []string{"Normal ConsumerSeen"}, again: renewed},
		"nothing is known of it":                        {again: renewed},
		"it is of a release that is recorded elsewhere": {heard: 9 * silentAfter, older: true, again: 16 * time.Hour},
		"we were away, and did not answer yet":          {heard: 9 * silentAfter, before: metav1.ConditionTrue, renews: []client.Object{waiting}, want: "True ConsumerSeen", again: unanswered},
		"we were away, and it was silent before":        {heard: 9 * silentAfter, before: metav1.ConditionFalse, renews: []client.Object{waiting}, want: "False ConsumerSilent", again: unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			recorder := events.NewFakeRecorder(10)
			b.peeringGroups, b.r.events, b.r.options.SilentAfter = !tc.older, recorder, silentAfter
			tenant := b.tenant(nil)
			b.record(tenant.Spec.CSR)
			if tc.heard != 0 {
				b.heard(b.clock.Now().Add(-tc.heard), silentAfter)
			}
			for _, renew := range tc.renews {
				if err := b.client.Create(t.Context(), renew.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			if tc.before != "" {
				reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: authv1beta1.ReasonConsumerSeen, metav1.ConditionFalse: authv1beta1.ReasonConsumerSilent}[tc.before]
				tenant.Status.Conditions = []metav1.Condition{{Type: authv1beta1.ConsumerSeenCondition, Status: tc.before, Reason: reason}}
				if err := b.client.Status().Update(t.Context(), tenant); err != nil {
					t.Fatal(err)
				}
			}
			result, live := b.reconcile(tenant)
			if got := saidOf(live); got != tc.want || result.RequeueAfter != tc.again {
				t.Errorf("%q, looked at again after %s; want %q, after %s", got, result.RequeueAfter, tc.want, tc.again)
			}
			var told []string
			for len(recorder.Events) > 0 {
				var kind, reason string
				if _, err := fmt.Sscan(<-recorder.Events, &kind, &reason); err != nil {
					t.Fatal(err)
				}
				if reason != authv1beta1.ReasonReady {
					told = append(told, kind+" "+reason)
				}
			}
			if diff := cmp.Diff(tc.told, told); diff != "" {
				t.Errorf("told: %s", diff)
			}
			if _, again := b.reconcile(tenant); again.ResourceVersion != live.ResourceVersion {
				t.Error("looking again writes")
			}
		})
	}
}

// heard plays that the consumer asked at a time for the certificate that is recorded.
func (b *bench) heard(at time.Time, life time.Duration) {
	b.t.Helper()
	record := &corev1.Secret{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: tn, Name: certificate.TenantRecord()}, record); err != nil {
		b.t.Fatal(err)
	}
	record.Data[authv1beta1.RequestedAtKey] = []byte(at.UTC().Format(time.RFC3339))
	record.Data[authv1beta1.ExpiresAtKey] = []byte(at.Add(life).UTC().Format(time.RFC3339))
	if err := b.client.Update(b.t.Context(), record); err != nil {
		b.t.Fatal(err)
	}
}

func saidOf(tenant *authv1beta1.Tenant) string {
	c := meta.FindStatusCondition(tenant.Status.Conditions, authv1beta1.ConsumerSeenCondition)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// Nothing is expected of a consumer whose rights were taken.
func TestNothingIsSaidOfWhoMayNotAsk(t *testing.T) {
	for name, end := range map[string]func(*authv1beta1.Tenant){
		"revoked": func(tenant *authv1beta1.Tenant) { tenant.Spec.RevokedPeering = identity.AccessOf(&tenant.Spec).Peering },
		"drained": func(tenant *authv1beta1.Tenant) { tenant.Spec.TenantCondition = authv1beta1.TenantDrained },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.peeringGroups, b.r.options.SilentAfter = true, time.Hour
			tenant := b.tenant(nil)
			b.record(tenant.Spec.CSR)
			b.heard(b.clock.Now(), time.Hour)
			_, live := b.reconcile(tenant)
			if saidOf(live) != "True ConsumerSeen" {
				t.Fatalf("it says %q", saidOf(live))
			}
			end(live)
			if err := b.client.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			if _, live = b.reconcile(tenant); saidOf(live) != "" {
				t.Errorf("it says %q", saidOf(live))
			}
		})
	}
}
