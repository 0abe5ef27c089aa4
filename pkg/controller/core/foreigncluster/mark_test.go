package foreigncluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// provider is one whose last answer was at a time.
type provider struct {
	Probe
	answered time.Time
}

func (p *provider) State(string) (bool, string, string, bool) {
	return p.Connected, p.Reason, p.Message, p.Known
}

func (p *provider) AnsweredSince(_ string, since time.Time) bool { return p.answered.After(since) }

// The word that a peer will not come back holds as long as nothing is heard of it, and no longer: one that is left behind by a command
// that was interrupted would give up, with the next outage, what was stored there since.
func TestTheMarkGoesWhenThePeerAnswers(t *testing.T) {
	start := time.Unix(1000, 0)
	silent := Probe{Known: true, Reason: corev1beta1.ReasonAPIServerUnreachable, Message: "no answer"}
	answers := Probe{Known: true, Connected: true}
	for name, tc := range map[string]struct {
		probe    Probe
		answered time.Time
		marked   bool
		again    bool
	}{
		"it does not answer":                               {silent, start.Add(-time.Second), true, false},
		"nobody asked it yet":                              {Probe{}, time.Time{}, true, false},
		"it answered before it was marked, and since died": {answers, start.Add(-time.Second), true, true},
		"it answers":                                       {answers, start.Add(time.Second), false, false},
		"it answers and asks for fewer requests": {Probe{Known: true, Connected: true, Reason: corev1beta1.ReasonRemoteThrottled},
			start.Add(time.Second), false, false},
		"it answers and took our rights back": {Probe{Known: true, Connected: true, Reason: corev1beta1.ReasonRightsRevoked, Message: "gone"},
			start.Add(time.Second), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			id := controlPlane(true)
			fc := &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}, ObjectMeta: metav1.ObjectMeta{Name: "milan", UID: "f1",
				Annotations: map[string]string{corev1beta1.PermanentlyUnreachableAnnotation: "true", "users": "own"}}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&id, fc).WithStatusSubresource(fc).Build()
			r := &reconciler{Client: c, marks: map[types.UID]time.Time{}, Options: Options{ClusterID: "rome",
				Prober: &provider{Probe: tc.probe, answered: tc.answered}, Clock: testclock.NewFakePassiveClock(start)}}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fc)})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(fc), fc); err != nil {
				t.Fatal(err)
			}
			if fc.IsMarkedDead() != tc.marked || result.RequeueAfter > 0 != tc.again || fc.Annotations["users"] != "own" {
				t.Errorf("marked %v, looked at again after %s, annotations %v", fc.IsMarkedDead(), result.RequeueAfter, fc.Annotations)
			}
			if tc.marked && tc.probe.Known && !tc.again && !fc.IsDead() {
				t.Error("a peer that is marked and lost is not given up")
			}
		})
	}
}
