package peer_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/failure"
)

// A new peering does not begin while the provider has data of an earlier one that nobody could reach any more.
func TestPeeringIsRefusedWhileDataOfAnEarlierOneIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		// made and now are the UIDs of the namespace that the twin was made for, and of the one that is there; empty for none.
		made, now types.UID
		claims    []string
		lose      bool
		refused   string
		gone      bool
	}{
		"the same namespace":                 {made: "a", now: "a", claims: []string{"data"}},
		"it is gone":                         {made: "a", claims: []string{"data"}, refused: "milan still has the data of 1 volume of an earlier peering, for namespaces that are gone or were made anew here: shop-rome (of shop)"},
		"it was made anew":                   {made: "a", now: "b", claims: []string{"data", "logs"}, refused: "the data of 2 volumes"},
		"without claims":                     {made: "a", now: "b"},
		"its claims are being deleted":       {made: "a", now: "b", claims: []string{"-data"}},
		"one of its claims is":               {made: "a", now: "b", claims: []string{"-data", "logs"}, refused: "the data of 1 volume"},
		"an earlier version did not say":     {now: "b", claims: []string{"data"}},
		"it is given up":                     {made: "a", now: "b", claims: []string{"data"}, lose: true, gone: true},
		"nothing else is given up with that": {made: "a", now: "a", claims: []string{"data"}, lose: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, &controllers{}, nil)
			make := func(c client.Client, object client.Object) {
				t.Helper()
				if err := c.Create(context.Background(), object); err != nil {
					t.Fatal(err)
				}
			}
			twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-rome", Labels: map[string]string{
				"liqo.io/managed": "true", "liqo.io/remote-cluster-id": "rome"}, Annotations: map[string]string{"liqo.io/original-name": "shop"}}}
			if tc.made != "" {
				twin.Annotations["liqo.io/origin-namespace-uid"] = string(tc.made)
			}
			make(p.provider.Client, twin)
			for _, claim := range tc.claims {
				name, deleted := strings.CutPrefix(claim, "-")
				object := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: name}}
				if object.Finalizers = []string{"kubernetes.io/pvc-protection"}; deleted {
					make(p.provider.Client, object)
					if err := p.provider.Client.Delete(context.Background(), object); err != nil {
						t.Fatal(err)
					}
					continue
				}
				make(p.provider.Client, object)
			}
			if tc.now != "" {
				make(p.consumer.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: tc.now}})
			}
			before := len(p.consumer.Writes()) + len(p.provider.Writes())
			o := p.options()
			o.DeleteVolumes = tc.lose
			_, err := peer.Run(context.Background(), o)
			if tc.refused == "" && err != nil || tc.refused != "" && (failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), tc.refused) ||
				!strings.Contains(err.Error(), "--delete-volumes")) {
				t.Errorf("error %v", err)
			}
			if after := len(p.consumer.Writes()) + len(p.provider.Writes()); tc.refused != "" && after != before {
				t.Errorf("%d writes of a command that is refused", after-before)
			}
			err = p.provider.Client.Get(context.Background(), client.ObjectKeyFromObject(twin), &corev1.Namespace{})
			if (err != nil) != tc.gone {
				t.Errorf("the twin: %v", err)
			}
		})
	}
}
