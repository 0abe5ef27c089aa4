package shadowendpointslice

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/restraint"
)

// meddle has a controller of the provider change the EndpointSlice, in a write of its own.
func (w *world) meddle(change func(*discoveryv1.EndpointSlice)) {
	w.Helper()
	slice := w.slice()
	change(slice)
	if err := w.Update(w.Context(), slice, client.FieldOwner("fighter")); err != nil {
		w.Fatal(err)
	}
}

// round is one pass; again is when the next one is asked for.
func (w *world) round() (again time.Duration) {
	w.Helper()
	result, err := w.reconciler.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		w.Fatal(err)
	}
	return result.RequeueAfter
}

// A controller of the provider that does not stop is put right twice a minute at most and told of by name, once; what the
// consumer asks for meanwhile does not wait.
func TestAFightIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		meddle func(*world)
		field  string
		// by is who did it, as far as the record of managed fields tells; empty if it is not told that it was put back.
		by string
	}{
		"endpoints": {func(w *world) {
			w.meddle(func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr.To(false) })
		}, "endpoints", `field manager "fighter"`},
		"ports": {func(w *world) {
			w.meddle(func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = ptr.To[int32](81) })
		}, "ports", `field manager "fighter"`},
		"a label": {func(w *world) {
			w.meddle(func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "theirs" })
		}, "metadata.labels.kubernetes.io/service-name", `field manager "fighter"`},
		"an annotation that goes": {func(w *world) {
			w.meddle(func(s *discoveryv1.EndpointSlice) { delete(s.Annotations, "note") })
		}, "metadata.annotations.note", "somebody"},
		"all of it": {func(w *world) {
			if slice := w.slice(); slice != nil {
				// It is no write of ours.
				defer func(writes int) { w.writes = writes }(w.writes)
				if err := w.Delete(w.Context(), slice); err != nil {
					w.Fatal(err)
				}
			}
		}, "it is removed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16"))
			w.round()
			if again := w.round(); again != 0 || w.writes != 1 {
				t.Fatalf("%d writes, again in %s", w.writes, again)
			}
			w.clock.SetTime(w.clock.Now().Add(time.Hour))
			fight := func(rounds int) (writes int, again time.Duration) {
				before := w.writes
				for range rounds {
					tc.meddle(w)
					again = w.round()
				}
				return w.writes - before, again
			}
			if writes, again := fight(10); writes != restraint.Most || again <= 0 || again > restraint.Within {
				t.Errorf("%d writes in a minute, again in %s", writes, again)
			}
			w.clock.SetTime(w.clock.Now().Add(restraint.Within))
			if writes, _ := fight(10); writes != restraint.Most {
				t.Errorf("%d writes in the next minute", writes)
			}
			said := w.said()
			want := []string{"Warning " + offloadingv1beta1.ReasonContended}
			if tc.by != "" {
				want = []string{"Warning " + offloadingv1beta1.ReasonRemoteChangeReverted, "Warning " + offloadingv1beta1.ReasonContended}
				if !strings.Contains(said[0], "was changed by "+tc.by+";") {
					t.Errorf("who did it is not told: %s", said[0])
				}
			}
			var reasons []string
			for _, text := range said {
				if !strings.Contains(text, tc.field) {
					t.Errorf("it is not told what is changed: %s", text)
				}
				reasons = append(reasons, strings.Join(strings.Fields(text)[:2], " "))
			}
			if diff := cmp.Diff(want, reasons); diff != "" {
				t.Error(diff)
			}

			var asked offloadingv1beta1.ShadowEndpointSlice
			if err := w.Get(t.Context(), key, &asked); err != nil {
				t.Fatal(err)
			}
			asked.Spec.Template.Endpoints[0].Addresses[0] = "10.10.0.2"
			if err := w.Update(t.Context(), &asked); err != nil {
				t.Fatal(err)
			}
			if again := w.round(); again != 0 || w.addresses()[0] != "10.10.0.2" {
				t.Errorf("what the consumer asks for waits %s", again)
			}
			if again := w.round(); again != 0 || len(w.said()) != 0 {
				t.Errorf("at rest it looks again in %s, or says something", again)
			}
		})
	}
}

// An hour later the same manager is told again, and a ShadowEndpointSlice that is gone is forgotten.
func TestWhatIsRememberedOfAFight(t *testing.T) {
	w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16"))
	for range 2 {
		w.round()
		w.round()
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.meddle(func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })
		w.round()
		if said := w.said(); len(said) != 1 || !strings.Contains(said[0], offloadingv1beta1.ReasonRemoteChangeReverted) {
			t.Errorf("events: %q", said)
		}
	}
	if err := w.Delete(t.Context(), shadow()); err != nil {
		t.Fatal(err)
	}
	w.round()
	if _, known := w.reconciler.contests.Load(key); known {
		t.Error("a ShadowEndpointSlice that is gone is remembered")
	}
}
