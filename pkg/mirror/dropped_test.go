package mirror

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// zoned is a Service with a field that older providers do not know.
func zoned(port int32) *corev1.Service {
	s := service("shop")
	s.Spec.Ports = []corev1.ServicePort{{Port: port, AppProtocol: ptr.To("h2c")}}
	s.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferSameZone)
	return s
}

// older makes the provider drop fields that it does not know from all that is written.
func (w *world) older(drop func(*corev1.Service)) {
	w.remote.mu.Lock()
	defer w.remote.mu.Unlock()
	w.remote.admit = func(o reflection.Object) {
		if s, is := o.(*corev1.Service); is {
			drop(s)
		}
	}
}

func noZones(s *corev1.Service) { s.Spec.TrafficDistribution = nil }

func servicesOnly(o *Options) {
	kind, _ := reflection.Lookup("service")
	o.Kinds = []reflection.Kind{kind}
}

// notedAs is the note on the copy.
func (w *world) notedAs() string {
	return reflection.NoteOf(w.remote.find(at(zoned(0))))
}

// toldInPart are the Events that tell of dropped fields.
func (w *world) toldInPart() int {
	return len(slices.DeleteFunc(w.events.took(), func(e string) bool { return e != "shop Warning "+offloadingv1beta1.ReasonPartiallyReflected }))
}

// D10: a provider that does not know a field drops it from all that is written. The user is told once which one, all else
// crosses, and nothing is written for it any more: not in time, not when others touch the copy, and not after a restart.
func TestD10AnOlderProviderDropsAField(t *testing.T) {
	const key = "Service/" + there + "/shop"
	inBubble(t, func(w *world) {
		w.older(noZones)
		w.local.put(zoned(80))
		w.start(servicesOnly)
		w.pass(time.Minute)
		w.wrote("a create, a look, and the note", "create "+key, "probe "+key, "patch "+key)
		w.equal("note", "spec.trafficDistribution", w.notedAs())
		w.equal("Events", 1, w.toldInPart())
		w.equal("problems", []string(nil), reasons(w.engine))
		w.pass(time.Hour)
		edit(w.remote, at(zoned(0)), func(s *corev1.Service) { s.Labels["theirs"] = "1" })
		w.wrote("an hour, and another's change")

		w.stop()
		w.start(servicesOnly)
		w.pass(time.Hour)
		w.wrote("a restart looks, and writes nothing", "probe "+key)
		w.equal("Events of a restart", 0, w.toldInPart())

		edit(w.local, zoned(0), func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		w.pass(time.Hour)
		w.wrote("a change", "patch "+key, "probe "+key)
		w.equal("Events of a change", 0, w.toldInPart())
		w.equal("port", int32(81), w.remote.find(at(zoned(0))).(*corev1.Service).Spec.Ports[0].Port)

		edit(w.remote, at(zoned(0)), func(s *corev1.Service) { s.Spec.Ports[0].Port = 82 })
		w.rest()
		w.wrote("another's change of a field that is kept", "patch "+key)
		w.equal("Events", []string{"shop Warning " + offloadingv1beta1.ReasonRemoteChangeReverted}, w.events.took())
	})
}

// D10: a new version of the provider is tried again.
func TestD10AnUpgradedProviderKeepsTheField(t *testing.T) {
	inBubble(t, func(w *world) {
		w.older(noZones)
		w.local.put(zoned(80))
		w.start(servicesOnly)
		w.pass(time.Minute)
		w.remote.took(true)
		w.older(func(*corev1.Service) {})
		w.pass(time.Hour)
		w.wrote("the version is the same")
		w.peer.set(func(p *fakePeer) { p.version = "v1.31.0" })
		w.pass(time.Minute)
		live := w.remote.find(at(zoned(0))).(*corev1.Service)
		if live.Spec.TrafficDistribution == nil {
			t.Error("the field did not cross")
		}
		w.equal("note", "", w.notedAs())
		w.events.took()
		// And back: it is told again.
		w.older(noZones)
		edit(w.remote, live, noZones)
		w.peer.set(func(p *fakePeer) { p.version = "v1.30.0" })
		w.pass(time.Hour)
		w.equal("note", "spec.trafficDistribution", w.notedAs())
		w.equal("problems", []string(nil), reasons(w.engine))
	})
}

// D10: fields inside of lists are named, too, and what is not only dropped is a fight as before.
func TestWhatIsDropped(t *testing.T) {
	for name, tc := range map[string]struct {
		admit    func(*corev1.Service)
		note     string
		problems []string
	}{
		"two fields": {func(s *corev1.Service) {
			noZones(s)
			s.Spec.Ports[0].AppProtocol = nil
		}, "spec.ports[].appProtocol, spec.trafficDistribution", nil},
		"another value":      {func(s *corev1.Service) { s.Spec.TrafficDistribution = ptr.To("PreferClose") }, "", []string{offloadingv1beta1.ReasonContended}},
		"an entry of a list": {func(s *corev1.Service) { s.Spec.Ports = nil }, "spec.ports", nil},
		"a label":            {func(s *corev1.Service) { delete(s.Labels, "app") }, "", []string{offloadingv1beta1.ReasonContended}},
		"one dropped, one changed": {func(s *corev1.Service) {
			noZones(s)
			s.Spec.PublishNotReadyAddresses = true
		}, "", []string{offloadingv1beta1.ReasonContended}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.older(tc.admit)
				shop := zoned(80)
				shop.Labels = map[string]string{"app": "shop"}
				w.local.put(shop)
				w.start(servicesOnly)
				const minutes = 10
				w.pass(minutes*time.Minute + 30*time.Second)
				if writes := slices.DeleteFunc(w.remote.took(false), func(c string) bool { return strings.HasPrefix(c, "probe") }); len(writes) > 2*(minutes+1) {
					t.Errorf("%d writes in %d minutes", len(writes), minutes)
				}
				w.equal("note", tc.note, w.notedAs())
				w.equal("problems", tc.problems, reasons(w.engine))
			})
		})
	}
}

// D10: what somebody takes out of the copy later is put back.
func TestAFieldThatSomebodyRemovesIsPutBack(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(zoned(80))
		w.start(servicesOnly)
		w.pass(time.Minute)
		for range 5 {
			edit(w.remote, at(zoned(0)), noZones)
			w.pass(time.Second)
		}
		w.equal("problems", []string{offloadingv1beta1.ReasonContended}, reasons(w.engine))
		events := fmt.Sprint(w.events.took())
		for _, reason := range []string{offloadingv1beta1.ReasonContended, offloadingv1beta1.ReasonRemoteChangeReverted} {
			if !strings.Contains(events, reason) {
				t.Errorf("no Event %s in %s", reason, events)
			}
		}
		// A note that somebody forges silences nothing.
		edit(w.remote, at(zoned(0)), func(s *corev1.Service) {
			s.Annotations[offloadingv1beta1.DroppedFieldsAnnotation] = "spec.trafficDistribution"
		})
		w.stop()
		w.start(servicesOnly)
		w.pass(2 * time.Minute)
		if w.remote.find(at(zoned(0))).(*corev1.Service).Spec.TrafficDistribution == nil || w.notedAs() != "" {
			t.Error("the field was not put back")
		}
	})
}

// D10: where dry runs are not served, the write itself is made.
func TestWithoutDryRuns(t *testing.T) {
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: "no dry runs"}}
	for name, err := range map[string]error{"refused": refused, "a lost answer": apierrors.NewServiceUnavailable("restarting")} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.remote.after = once("probe", err)
				plain := zoned(80)
				plain.Spec.TrafficDistribution = nil
				w.local.put(plain)
				w.start(servicesOnly)
				edit(w.local, plain, func(s *corev1.Service) { s.Spec.TrafficDistribution = zoned(0).Spec.TrafficDistribution })
				w.pass(time.Minute)
				if w.remote.find(at(plain)).(*corev1.Service).Spec.TrafficDistribution == nil {
					t.Error("the field did not cross")
				}
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}
