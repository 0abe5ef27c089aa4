package namespacemap

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// say changes what the consumer says in its map.
func (w *world) say(peering string, desired, uids map[string]string) {
	w.Helper()
	nm := w.nm()
	metav1.SetMetaDataAnnotation(&nm.ObjectMeta, corev1beta1.OriginPeeringAnnotation, peering)
	nm.Spec = offloadingv1beta1.NamespaceMapSpec{DesiredMapping: desired, OriginUIDs: uids}
	if err := w.Client.Update(context.Background(), nm); err != nil {
		w.Fatal(err)
	}
	w.pass()
}

// What a consumer left here goes only if it is known to be given up: a new peering takes up the twins of the very namespaces, and neither
// removes nor uses others that hold data.
func TestTwinsOfAnEarlierPeering(t *testing.T) {
	shop := map[string]string{"shop": "shop-rome"}
	uid := func(uid string) map[string]string { return map[string]string{"shop": uid} }
	for name, tc := range map[string]struct {
		claims, deleted bool
		// before and after are the peerings and the UIDs of the namespace; wanted says that it is offloaded in the second.
		before, after string
		was, is       map[string]string
		wanted        bool
		want          string
		kept          bool
	}{
		"it is taken up": {claims: true, before: "p0", after: "p1", was: uid("a"), is: uid("a"), wanted: true, want: "shop-rome Accepted", kept: true},
		"not offloaded yet, or any more, and has data":  {claims: true, before: "p0", after: "p1", was: uid("a"), want: "shop-rome CreationLoopBackOff TwinHoldsData", kept: true},
		"of another namespace, and has data":            {claims: true, before: "p0", after: "p1", was: uid("a"), is: uid("b"), wanted: true, want: "shop-rome CreationLoopBackOff TwinHoldsData", kept: true},
		"of another namespace in the same peering":      {claims: true, before: "p1", after: "p1", was: uid("a"), is: uid("b"), wanted: true, want: "shop-rome CreationLoopBackOff TwinHoldsData", kept: true},
		"nobody knows of which namespace":               {claims: true, before: "p0", after: "p1", is: uid("b"), wanted: true, want: "shop-rome CreationLoopBackOff TwinHoldsData", kept: true},
		"the same peering learns to say it":             {claims: true, before: "p1", after: "p1", is: uid("b"), wanted: true, want: "shop-rome Accepted", kept: true},
		"not offloaded, and its claim is being deleted": {claims: true, deleted: true, before: "p0", after: "p1", was: uid("a")},
		"not offloaded, and without data":               {before: "p0", after: "p1", was: uid("a")},
		"of another namespace, and without data":        {before: "p0", after: "p1", was: uid("a"), is: uid("b"), wanted: true, want: "shop-rome Accepted"},
		"given up in the same peering":                  {claims: true, before: "p1", after: "p1", was: uid("a")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mapOf(nil), tenantNamespace(), tenant("Active"))
			w.say(tc.before, shop, tc.was)
			made := w.namespace("shop-rome")
			if made == nil {
				t.Fatal("there is no twin")
			}
			metav1.SetMetaDataLabel(&made.ObjectMeta, "test", "first")
			if err := w.Client.Update(context.Background(), made); err != nil {
				t.Fatal(err)
			}
			if tc.claims {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "data", Finalizers: []string{"kubernetes.io/pvc-protection"}}}
				if err := w.Client.Create(context.Background(), claim); err != nil {
					t.Fatal(err)
				}
				if tc.deleted {
					if err := w.Client.Delete(context.Background(), claim); err != nil {
						t.Fatal(err)
					}
				}
			}
			desired := shop
			if !tc.wanted {
				desired = nil
			}
			for range 2 {
				w.say(tc.after, desired, tc.is)
			}
			if got := w.answers()["shop"]; got != tc.want {
				t.Errorf("the answer is %q, want %q", got, tc.want)
			}
			now := w.namespace("shop-rome")
			if kept := now != nil && now.Labels["test"] == "first"; kept != tc.kept {
				t.Errorf("the twin is kept: %t", kept)
			}
			way := map[bool]string{true: "liqoctl peer --delete-volumes", false: "offload that namespace again"}[tc.wanted]
			if answer := w.nm().Status.CurrentMapping["shop"]; answer.Reason == offloadingv1beta1.ReasonTwinHoldsData &&
				(!strings.Contains(answer.Message, "1 claim (data)") || !strings.Contains(answer.Message, way)) {
				t.Errorf("it says %q", answer.Message)
			}
			if strings.HasSuffix(tc.want, "Accepted") && now.Annotations[corev1beta1.OriginPeeringAnnotation] != tc.after {
				t.Errorf("its marks are %v", now.Annotations)
			}
		})
	}
}
