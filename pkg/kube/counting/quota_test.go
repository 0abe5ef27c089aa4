package counting

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"liqo.io/liqo/pkg/kube/reconcile"
)

// What is ours is made and restored. What somebody else made is left as it is, whatever it says of itself.
func TestTheQuotaOfSomebodyElseIsLeftAlone(t *testing.T) {
	ours, none := map[string]string{"liqo.io/managed": "true"}, ""
	pods := func(n string) corev1.ResourceList { return corev1.ResourceList{"pods": resource.MustParse(n)} }
	for name, tc := range map[string]struct {
		there  corev1.ResourceList
		labels map[string]string
		want   string
		reason string
	}{
		"nothing is there":                   {nil, nil, "10", none},
		"ours, as it should be":              {pods("10"), ours, "10", none},
		"ours, with another limit":           {pods("99"), ours, "10", none},
		"without labels":                     {pods("99"), nil, "99", "ObjectNotOurs"},
		"without labels, as ours should be":  {pods("10"), nil, "10", "ObjectNotOurs"},
		"of another program":                 {pods("1"), map[string]string{"app.kubernetes.io/managed-by": "Helm"}, "1", "ObjectNotOurs"},
		"with a label that says it is not":   {pods("99"), map[string]string{"liqo.io/managed": "false"}, "99", "ObjectNotOurs"},
		"of another program, that wants all": {corev1.ResourceList{}, map[string]string{"liqo.io/webhook": "true"}, "0", "ObjectNotOurs"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.there != nil {
				builder.WithObjects(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: QuotaName, Labels: tc.labels},
					Spec: corev1.ResourceQuotaSpec{Hard: tc.there}, Status: corev1.ResourceQuotaStatus{Used: pods("0")}})
			}
			c := builder.Build()
			_, err := Quotas{Client: c, Live: c, Clock: testingclock.NewFakeClock(time.Unix(0, 0))}.Ensure(t.Context(), "shop-rome", pods("10"))
			if reason := reconcile.ReasonOf(err); err != nil && reason != tc.reason || err == nil && tc.reason != none {
				t.Errorf("reason %q, error %v; want %q", reason, err, tc.reason)
			}
			live := &corev1.ResourceQuota{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop-rome", Name: QuotaName}, live); err != nil {
				t.Fatal(err)
			}
			if got := live.Spec.Hard.Pods().String(); got != tc.want {
				t.Errorf("the limit is %s, want %s", got, tc.want)
			}
			if labels := tc.labels; tc.there != nil {
				if diff := cmp.Diff(labels, live.Labels); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
