package token

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// TestTokensOfAPod: one write brings all tokens, each asked for as the pod did, bound to the pod and no longer than an hour.
func TestTokensOfAPod(t *testing.T) {
	inBubble(t, func(w *world) {
		w.put("p", nil)
		w.equal("writes", "create", w.written())
		if len(w.asked) != 2 {
			t.Fatalf("asked for %d tokens", len(w.asked))
		}
		for i, audiences := range [][]string{nil, {"vault"}} {
			spec := w.asked[i]
			w.equal("audiences", audiences, spec.Audiences)
			w.equal("seconds", 3600, *spec.ExpirationSeconds)
			w.equal("bound to", authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p"}, *spec.BoundObjectRef)
		}
		s := w.secret("p")
		w.equal("keys", []string{"kube-api-access-x-3c469e", "kube-api-access-x-e6f0a1", "namespace"}, keysOf(s))
		w.equal("owner", "ShadowPod p shadow-p", fmt.Sprintf("%s %s %s", s.OwnerReferences[0].Kind, s.OwnerReferences[0].Name, s.OwnerReferences[0].UID))
		w.equal("end", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), s.Annotations[offloadingv1beta1.TokenExpirationAnnotation])
		w.equal("Events", []string{}, w.told())
	})
}

// TestTokensAreRenewed: after four fifths of their life, and not before.
func TestTokensAreRenewed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.put("p", nil)
		w.publish()
		first := string(w.secret("p").Data["kube-api-access-x-3c469e"])
		w.pass(47*time.Minute + 50*time.Second)
		w.equal("writes before", "create", w.written())
		w.pass(10 * time.Second)
		w.equal("writes after 48 minutes", "patch", w.written())
		if string(w.secret("p").Data["kube-api-access-x-3c469e"]) == first {
			t.Error("the token is still the first")
		}
		w.publish()
		w.pass(48 * time.Minute)
		w.equal("writes after 96 minutes", "patch", w.written())
		w.equal("Events", []string{}, w.told())
	})
}

// TestRestart: with everything in place, a restart asks for nothing and writes nothing, and renews in time.
func TestRestart(t *testing.T) {
	inBubble(t, func(w *world) {
		for i := range 20 {
			w.put(fmt.Sprintf("p%d", i), nil)
		}
		w.publish()
		w.written()
		requests := w.requests()
		w.pass(10 * time.Minute)
		w.stop()
		w.start()
		w.pass(30 * time.Minute)
		w.equal("writes", "", w.written())
		w.equal("tokens asked for", requests, w.requests())
		w.pass(9 * time.Minute)
		w.equal("writes when it was time", strings.TrimSpace(strings.Repeat("patch ", 20)), w.written())
	})
}

// TestWhatTheLedgerMayMean: after a restart, only tokens of this very pod and ShadowPod that end in time count as there.
func TestWhatTheLedgerMayMean(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*reflection.TokenEntry)
		write  bool
	}{
		"ours":                        {func(*reflection.TokenEntry) {}, false},
		"of an earlier pod":           {func(e *reflection.TokenEntry) { e.PodUID = "other" }, true},
		"of another shape":            {func(e *reflection.TokenEntry) { e.Shape = "other" }, true},
		"nearly over":                 {func(e *reflection.TokenEntry) { e.Expiration = e.Expiration.Add(-50 * time.Minute) }, true},
		"ending later than any could": {func(e *reflection.TokenEntry) { e.Expiration = e.Expiration.Add(24 * time.Hour) }, true},
		"over since long":             {func(e *reflection.TokenEntry) { e.Expiration = e.Expiration.Add(-24 * time.Hour) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.put("p", nil)
				w.written()
				w.stop()
				entry, _ := reflection.TokenEntryOf(w.secret("p"))
				tc.change(&entry)
				if err := w.provider.Tracker().Create(configMaps, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: offloadingv1beta1.SecretLedger}, Data: map[string]string{"p.token.liqo.io": entry.String()}}, twin); err != nil {
					t.Fatal(err)
				}
				w.start()
				w.equal("written", tc.write, w.written() != "")
				// A ledger that goes on saying so does not cause another write.
				w.pass(20 * time.Second)
				w.equal("writes later", "", w.written())
			})
		})
	}
}

// TestALostSecretIsPutBack when the ledger says that it is gone; a ledger that lags or overflowed says nothing.
func TestALostSecretIsPutBack(t *testing.T) {
	inBubble(t, func(w *world) {
		w.publish()
		w.put("p", nil)
		w.pass(5 * time.Minute)
		w.equal("writes while the ledger lags", "create", w.written())
		w.publish()
		w.equal("writes once it shows", "", w.written())
		if err := w.provider.Tracker().Delete(secrets, twin, "p.token.liqo.io"); err != nil {
			t.Fatal(err)
		}
		w.publish()
		w.equal("writes after the loss", "patch create", w.written())
		w.pass(ledgerGrace - time.Second)
		w.equal("writes while the ledger may lag", "", w.written())
		if err := w.provider.Tracker().Delete(configMaps, twin, offloadingv1beta1.SecretLedger); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Minute)
		w.equal("writes without a ledger", "", w.written())
	})
}

// TestANewShadowPodTakesTheTokensOver: the Secret belongs to the ShadowPod that there is, also if the pod is another.
func TestANewShadowPodTakesTheTokensOver(t *testing.T) {
	inBubble(t, func(w *world) {
		w.put("p", nil)
		w.publish()
		w.put("p", func(p *Place) { p.UID = "second" })
		w.equal("writes", "create patch", w.written())
		w.equal("owner", "second", w.secret("p").OwnerReferences[0].UID)
		w.put("p", func(p *Place) { p.Local = nil })
		w.put("p", func(p *Place) { p.Local.UID, p.UID = "again", "third" })
		w.equal("writes for the next pod", "create patch", w.written())
		w.equal("owner", "third", w.secret("p").OwnerReferences[0].UID)
		w.equal("pod", "again", w.secret("p").Annotations[offloadingv1beta1.TokenPodUIDAnnotation])
	})
}

// TestOthersSecretsStay: a Secret of that name that holds no tokens is left alone, and the user is told, not too often.
func TestOthersSecretsStay(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"the provider's": nil,
		"reflected":      {offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.DestinationLabel: "milan"},
		"reflected, with a label that token Secrets have": {offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.DestinationLabel: "milan",
			offloadingv1beta1.ServiceAccountNameLabel: "seller"},
		"of another consumer": {offloadingv1beta1.OriginLabel: "naples", offloadingv1beta1.DestinationLabel: "milan",
			offloadingv1beta1.ServiceAccountNameLabel: "seller"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				if err := w.provider.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: "p.token.liqo.io", Labels: labels,
					Annotations: map[string]string{corev1beta1.OriginUIDAnnotation: "of-the-user"}}, Data: map[string][]byte{"a": []byte("b")}}); err != nil {
					t.Fatal(err)
				}
				w.put("p", nil)
				w.pass(12 * time.Minute)
				w.equal("content", "map[a:[98]]", w.secret("p").Data)
				told := w.told()
				if len(told) != 3 || !strings.Contains(told[0], "exists and is not ours") {
					t.Errorf("in 12 minutes it was told: %q", told)
				}
				if err := w.provider.Tracker().Delete(secrets, twin, "p.token.liqo.io"); err != nil {
					t.Fatal(err)
				}
				w.pass(2 * time.Minute)
				if told := w.told(); len(told) != 1 || !strings.HasPrefix(told[0], offloadingv1beta1.ReasonTokensRecovered) || w.secret("p").Annotations[offloadingv1beta1.TokenPodNameAnnotation] != "p" {
					t.Errorf("once it was gone: %q", told)
				}
			})
		})
	}
}

// G4: while the provider does not answer, the pod keeps its last token, and an Event tells before it ends.
func TestProviderAway(t *testing.T) {
	inBubble(t, func(w *world) {
		w.put("p", nil)
		w.publish()
		w.written()
		lost := func(p *Place) { *p = Place{Local: p.Local, Lost: true} }
		w.put("p", lost)
		w.pass(47 * time.Minute)
		w.equal("Events while the tokens are good", []string{}, w.told())
		w.pass(time.Hour)
		told := w.told()
		if len(told) != 1 || !strings.HasPrefix(told[0], offloadingv1beta1.ReasonTokensFailed) || !strings.Contains(told[0], "end at") {
			t.Errorf("told %q", told)
		}
		w.equal("writes", "", w.written())
		w.put("p", func(p *Place) {
			*p = Place{Local: p.Local, UID: "shadow-p", Namespace: twin, Provider: w.provider, Epoch: 2}
		})
		w.equal("writes once it is back", "patch", w.written())
		if told := w.told(); len(told) != 1 || !strings.HasPrefix(told[0], offloadingv1beta1.ReasonTokensRecovered) {
			t.Errorf("once it is back: %q", told)
		}
	})
}

// TestNoTokenLivesLongerThanAsked, whatever the API server says of it.
func TestNoTokenLivesLongerThanAsked(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set(func() { w.lengthen = 24 * time.Hour })
		w.put("p", nil)
		w.equal("writes", "", w.written())
		if told := w.told(); len(told) != 1 || !strings.Contains(told[0], "it stays in this cluster") {
			t.Errorf("told %q", told)
		}
		w.set(func() { w.lengthen = 0 })
		w.pass(2 * time.Minute)
		w.equal("writes", "create", w.written())
	})
}

func TestFailuresAreToldSeldom(t *testing.T) {
	account := corev1.SchemeGroupVersion.WithResource("serviceaccounts").GroupResource()
	for name, tc := range map[string]struct {
		fail func(w *world)
		want string
	}{
		"the home refuses": {func(w *world) { w.refusal = apierrors.NewForbidden(account, "seller", errors.New("not yours")) }, "not yours"},
		"the home is busy": {func(w *world) { w.refusal = apierrors.NewInternalError(errors.New("out of order")) }, "out of order"},
		"the provider refuses": {func(w *world) {
			w.broken = apierrors.NewForbidden(secrets.GroupResource(), "p.token.liqo.io", errors.New("exceeded quota"))
		}, "exceeded quota"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.set(func() { tc.fail(w) })
				w.put("p", nil)
				w.pass(11 * time.Minute)
				told := w.told()
				if len(told) < 2 || len(told) > 3 || !strings.Contains(told[0], tc.want) {
					t.Errorf("in 11 minutes it was told: %q", told)
				}
				w.set(func() { w.refusal, w.broken = nil, nil })
				w.pass(2 * time.Minute)
				if told := w.told(); len(told) != 1 || w.secret("p") == nil {
					t.Errorf("after the failure: %q", told)
				}
			})
		})
	}
	// What is gone at the next try is nobody's business. An API server that does not know yet where the pod runs forbids it.
	for _, refusal := range []*apierrors.StatusError{
		apierrors.NewInternalError(errors.New("out of order")),
		apierrors.NewForbidden(account, "seller", errors.New("node requested token bound to a pod scheduled on a different node")),
	} {
		inBubble(t, func(w *world) {
			w.set(func() { w.refusal = refusal })
			w.put("p", nil)
			w.set(func() { w.refusal = nil })
			w.pass(time.Second)
			w.equal("Events", []string{}, w.told())
			w.equal("writes", "create", w.written())
		})
	}
}

// TestPodsThatGetNothing: no request, no write, no watch.
func TestPodsThatGetNothing(t *testing.T) {
	for name, change := range map[string]func(*Place){
		"without tokens":    func(p *Place) { p.Local.Spec.Volumes = nil },
		"that ended":        func(p *Place) { p.Local.Status.Phase = corev1.PodSucceeded },
		"without ShadowPod": func(p *Place) { p.UID, p.Namespace, p.Provider = "", "", nil },
		"that turned it off": func(p *Place) {
			p.Local.Annotations = map[string]string{offloadingv1beta1.APIServerSupportAnnotation: "disabled"}
		},
		"made when support was off": func(p *Place) {
			p.Shadow = &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.put("p", change)
				w.pass(3 * time.Hour)
				w.equal("writes", "", w.written())
				w.equal("tokens asked for", 0, w.requests())
				w.equal("requests to the provider", 0, len(w.provider.Actions()))
			})
		})
	}
}

func TestANamespaceThatIsNotThereYet(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set(func() {
			w.broken = apierrors.NewNotFound(corev1.SchemeGroupVersion.WithResource("namespaces").GroupResource(), twin)
		})
		w.put("p", nil)
		w.set(func() { w.broken = nil })
		w.pass(namespaceRetry)
		w.equal("writes", "create create", w.written())
		w.equal("Events", []string{}, w.told())
	})
}

// TestTheLedgerIsWatchedAsLongAsNeeded: one watch per twin with tokens, a new one with new credentials, none without pods.
func TestTheLedgerIsWatchedAsLongAsNeeded(t *testing.T) {
	inBubble(t, func(w *world) {
		watches := func() int {
			return len(slices.Collect(func(yield func(int) bool) {
				for i, action := range w.provider.Actions() {
					if action.GetVerb() == "watch" && !yield(i) {
						return
					}
				}
			}))
		}
		w.put("a", nil)
		w.put("b", nil)
		w.equal("watches", 1, watches())
		w.put("a", func(p *Place) { p.Epoch = 2 })
		w.equal("watches with new credentials", 2, watches())
		w.put("b", func(p *Place) { p.Epoch = 2 })
		w.put("a", func(p *Place) { p.Local = nil })
		w.equal("ledgers with a pod", 1, len(w.keeper.ledgers.open))
		w.put("b", func(p *Place) { p.Local = nil })
		w.equal("ledgers without pods", 0, len(w.keeper.ledgers.open))
	})
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{Home: "rome"}); err == nil {
		t.Error("no error without a node")
	}
	good := Options{Home: "rome", Remote: "milan", Node: "milan", Local: fake.NewClientset(), Registerer: prometheus.NewRegistry(),
		Place: func(types.NamespacedName) (Place, bool) { return Place{}, false }}
	for asked, want := range map[time.Duration]time.Duration{
		0: time.Hour, time.Minute: 10 * time.Minute, 24 * time.Hour: time.Hour, 20 * time.Minute: 20 * time.Minute,
	} {
		o := good
		o.MaxLifetime = asked
		k, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		k.queue.ShutDown()
		if k.options.MaxLifetime != want {
			t.Errorf("asked for %s: %s, want %s", asked, k.options.MaxLifetime, want)
		}
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "liqo_virtual_kubelet_token_requests_total"}))
	good.Registerer = taken
	if _, err := New(good); err == nil {
		t.Error("a metric's name that is taken is no error")
	}
}

func TestSpan(t *testing.T) {
	for name, token := range map[string]string{
		"nothing": "", "two parts": "a.b", "no base64": "a.!.c", "no JSON": "a.YQ.c", "no times": "a.e30.c",
	} {
		if _, _, ok := span(token); ok {
			t.Errorf("%s was read", name)
		}
	}
}

// TestRefusedTokensAreTriedAgain within seconds: a provider that gives rights back does so one by one.
func TestRefusedTokensAreTriedAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set(func() {
			w.broken = apierrors.NewForbidden(secrets.GroupResource(), "p.token.liqo.io", errors.New("not yet"))
		})
		w.put("p", nil)
		w.pass(2 * time.Second)
		w.set(func() { w.broken = nil })
		w.written()
		w.pass(5 * time.Second)
		w.equal("writes once it is allowed", "create", w.written())
	})
}

// TestARefusingProviderCostsNoTokens: those that it does not take are kept until they would have to be renewed.
func TestARefusingProviderCostsNoTokens(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set(func() {
			w.broken = apierrors.NewForbidden(secrets.GroupResource(), "p.token.liqo.io", errors.New("exceeded quota"))
		})
		w.put("p", nil)
		w.pass(45 * time.Minute)
		if tries := strings.Count(w.written(), "create"); tries < 3 {
			t.Fatalf("only %d tries: this shows nothing", tries)
		}
		w.equal("tokens asked for, one for each of its volumes", 2, w.requests())
		w.pass(20 * time.Minute)
		w.equal("tokens asked for, the first ones being due", 4, w.requests())
		w.set(func() { w.broken = nil })
		w.pass(15 * time.Minute)
		w.equal("tokens asked for, once they were taken", 4, w.requests())
		if w.secret("p") == nil {
			t.Fatal("the token was not written")
		}
		w.publish()
		w.pass(48 * time.Minute)
		w.equal("tokens asked for, to renew", 6, w.requests())
	})
}

// A pod whose ShadowPod was made by an earlier version finds its tokens where it looks for them.
func TestPodsOfAnEarlierVersionKeepTheirTokens(t *testing.T) {
	inBubble(t, func(w *world) {
		w.put("p", func(p *Place) {
			p.Shadow = &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "p-token"}}}}}}}}}}}
		})
		w.pass(time.Second)
		if _, err := w.provider.Tracker().Get(secrets, twin, "p-token"); err != nil {
			t.Error(err)
		}
	})
}
