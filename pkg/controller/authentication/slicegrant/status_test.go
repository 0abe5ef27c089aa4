package slicegrant

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// After each start of the controller manager the cluster is counted anew. Who holds a grant is not told, and nothing is written for it; who waits
// for a first one is.
func TestAGrantIsKeptWhileTheClusterIsCounted(t *testing.T) {
	renewal := reconcile.Wait(authv1beta1.ReasonCSRMissing, "waiting for the consumer's certificate signing request", 0)
	for sentence, test := range map[string]struct {
		granted bool
		before  corev1beta1.Condition // Ready, before the start
		other   error                 // what else is in the way
		lost    bool                  // the Quota is
		want    string                // the reason of Ready
	}{
		"a grant that is ready stays ready":          {true, corev1beta1.Condition{Status: "True", Reason: authv1beta1.ReasonReady}, nil, false, authv1beta1.ReasonReady},
		"one that is not says why as before":         {true, corev1beta1.Condition{Status: "False", Reason: authv1beta1.ReasonTenantDrained}, nil, false, authv1beta1.ReasonTenantDrained},
		"what else is in the way is told":            {true, corev1beta1.Condition{Status: "True", Reason: authv1beta1.ReasonReady}, renewal, false, authv1beta1.ReasonCSRMissing},
		"a grant whose Quota is lost is counted for": {true, corev1beta1.Condition{Status: "True", Reason: authv1beta1.ReasonReady}, nil, true, authv1beta1.ReasonCountingResources},
		"a first grant is waited for":                {false, corev1beta1.Condition{Status: "False", Reason: authv1beta1.ReasonWaitingForProvider}, nil, false, authv1beta1.ReasonCountingResources},
	} {
		t.Run(sentence, func(t *testing.T) {
			p, tenant := newProvider(t), tenantOf(plain)
			p.r.options.Clock = clock.RealClock{}
			there := slice()
			if test.granted {
				p.asks(tenant, there.Name, list("cpu", "2"))
				conditions.Set(&there.Status.Conditions, corev1beta1.Condition{
					Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted, Reason: authv1beta1.ReasonResourcesAccepted}, p.r.options.Clock.Now())
			}
			test.before.Type = corev1beta1.ConditionReady
			conditions.Set(&there.Status.Summary, test.before, p.r.options.Clock.Now())
			s := &scope{tenant: tenant, slice: there.DeepCopy(), quota: p.quota(there.Name)}
			if test.lost {
				s.quota = nil
			}

			p.r.options.Supply = supply.New(supply.Options{}) // that of a process that has just started
			counting := p.r.grant(t.Context(), s)
			p.r.summarize(s, errors.Join(test.other, counting))
			if after := reconcile.ReasonOf(counting); after != authv1beta1.ReasonCountingResources {
				t.Fatalf("the cluster is not counted, and the grant says %q", after)
			}
			if got := conditions.Find(s.slice.Status.Summary, corev1beta1.ConditionReady).Reason; got != test.want {
				t.Errorf("Ready says %s, want %s", got, test.want)
			}
			if diff := cmp.Diff(there.Status, s.slice.Status); test.want == test.before.Reason && diff != "" {
				t.Errorf("the status changed: %s", diff)
			}
		})
	}
}
