package token

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/fakeapi"
)

var errLost = errors.New("connection reset by peer")

// faulty carries out the first request and loses the answer to it; the second one fails before it has an effect.
func (w *world) faulty(does clienttesting.ReactionFunc) clienttesting.ReactionFunc {
	times := 0
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		times++
		now := times
		w.mu.Unlock()
		switch now {
		case 1:
			if _, _, err := does(action); err != nil {
				return true, nil, err
			}
			return true, nil, errLost
		case 2:
			return true, nil, apierrors.NewServiceUnavailable("flapping")
		}
		return false, nil, nil
	}
}

// A8: whether a token was asked for, or a Secret written, although the answer was lost, or the server failed: the pod has its tokens a
// little later, the same ones, and nobody hears of it.
func TestA8LostAnswersAboutTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		fail  func(*world)
		later bool
		asked int
	}{
		"creating the Secret":   {func(w *world) { fakeapi.React(&w.provider.Fake, "create", "secrets", w.faulty(w.write)) }, false, 2},
		"changing the Secret":   {func(w *world) { fakeapi.React(&w.provider.Fake, "patch", "secrets", w.faulty(w.write)) }, true, 4},
		"asking for a token":    {func(w *world) { fakeapi.React(&w.home.Fake, "create", "serviceaccounts", w.faulty(w.issue)) }, false, 3},
		"asking for a new one":  {func(w *world) { fakeapi.React(&w.home.Fake, "create", "serviceaccounts", w.faulty(w.issue)) }, true, 5},
		"reading the ledger":    {func(w *world) { fakeapi.React(&w.provider.Fake, "list", "configmaps", w.faulty(listing(w))) }, false, 2},
		"following the ledger":  {func(w *world) { w.provider.PrependWatchReactor("configmaps", w.broke()) }, false, 2},
		"nothing at all (each)": {func(*world) {}, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				if !tc.later {
					tc.fail(w)
				}
				w.put("p", nil)
				w.pass(time.Minute)
				w.publish()
				if tc.later {
					tc.fail(w)
					w.pass(49 * time.Minute)
					w.publish()
				}
				s := w.secret("p")
				if s == nil || s.Annotations[offloadingv1beta1.TokenPodUIDAnnotation] != "uid-p" {
					t.Fatalf("the Secret is %v", s)
				}
				if end, err := time.Parse(time.RFC3339, s.Annotations[offloadingv1beta1.TokenExpirationAnnotation]); err != nil || time.Until(end) < 10*time.Minute {
					t.Errorf("its tokens end at %s, it is %s (%v)", end, time.Now(), err)
				}
				w.equal("tokens asked for", tc.asked, w.requests())
				w.equal("Events", []string{}, w.told())
				w.written()
				w.pass(20 * time.Minute)
				w.equal("writes at rest", "", w.written())
			})
		})
	}
}

func listing(w *world) clienttesting.ReactionFunc {
	return clienttesting.ObjectReaction(w.provider.Tracker())
}

// broke refuses the first watches, and ends those after them, in several ways.
func (w *world) broke() clienttesting.WatchReactionFunc {
	times := 0
	return func(clienttesting.Action) (bool, watch.Interface, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		times++
		ended := watch.NewRaceFreeFake()
		switch times {
		case 1:
			return true, nil, apierrors.NewResourceExpired("too old resource version")
		case 2:
			ended.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		case 3:
			ended.Stop()
		case 4:
			return true, nil, apierrors.NewServiceUnavailable("flapping")
		default:
			return false, nil, nil
		}
		return true, ended, nil
	}
}

// A9: a ledger's watch that ends, is too old, or never sends a bookmark is begun anew from a list, with pauses; nothing is written for
// it, and a Secret that was lost meanwhile is put back.
func TestA9LedgerWatchesThatEnd(t *testing.T) {
	inBubble(t, func(w *world) {
		w.provider.PrependWatchReactor("configmaps", w.broke())
		w.put("p", nil)
		w.publish()
		w.written()
		w.pass(5 * time.Minute)
		w.publish()
		w.equal("writes for watches that ended", "", w.written())
		lists := 0
		for _, action := range w.provider.Actions() {
			if action.Matches("list", "configmaps") {
				lists++
			}
		}
		if lists < 2 || lists > 8 {
			t.Errorf("%d lists for four watches that ended", lists)
		}
		if err := w.provider.Tracker().Delete(secrets, twin, "p.token.liqo.io"); err != nil {
			t.Fatal(err)
		}
		w.publish()
		w.equal("writes after a loss", "patch create", w.written())
	})
}

// A11: a provider's API server that fell behind shows the ledger as it was. That costs one write, of the same tokens' Secret, and no
// more however long it says so; nothing is ever deleted.
func TestA11AnOldLedger(t *testing.T) {
	for name, old := range map[string]map[string]string{
		"without the tokens":     {},
		"of an earlier pod":      {"p.token.liqo.io": "token uid-before 0011223344556677 2026-01-01T00:00:00Z"},
		"of tokens that are old": {"p.token.liqo.io": "token uid-p 0011223344556677 2026-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.put("p", nil)
				w.publish()
				w.pass(time.Minute)
				w.written()
				if err := w.provider.Tracker().Update(configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: twin, Name: offloadingv1beta1.SecretLedger, ResourceVersion: "1"}, Data: old}, twin); err != nil {
					t.Fatal(err)
				}
				w.pass(20 * time.Minute)
				w.equal("writes", "patch", w.written())
				w.publish()
				w.pass(10 * time.Minute)
				w.equal("writes once it caught up", "", w.written())
				for _, action := range w.provider.Actions() {
					if strings.HasPrefix(action.GetVerb(), "delete") {
						t.Errorf("deleted %v", action)
					}
				}
			})
		})
	}
}

// W9: a provider that answers with a flood when it is asked for a ledger, or with a ledger without end, is not believed and costs no
// memory; once it is well again the pods get their tokens.
func TestFloodedLedger(t *testing.T) {
	inBubble(t, func(w *world) {
		flood := &corev1.ConfigMapList{}
		for i := range 1000 {
			flood.Items = append(flood.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: fmt.Sprintf("flood-%d", i)}})
		}
		flooding, lists := true, 0
		fakeapi.React(&w.provider.Fake, "list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			lists++
			return flooding, flood.DeepCopy(), nil
		})
		w.put("p", nil)
		w.pass(10 * time.Minute)
		w.equal("writes", "", w.written())
		w.set(func() {
			if flooding = false; lists > 40 {
				t.Errorf("%d lists in ten minutes", lists)
			}
		})
		w.pass(2 * time.Minute)
		w.equal("writes once it is over", "create", w.written())
		synctest.Wait()
	})
	endless := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: offloadingv1beta1.SecretLedger}, Data: map[string]string{}}
	for i := range maxEntries + 10 {
		endless.Data[fmt.Sprintf("p-%d-token", i)] = "token uid 0011223344556677 2026-01-01T00:00:00Z"
	}
	if says, ok := tokensOnly(endless); !ok || len(says.entries) != maxEntries || !says.partial {
		t.Errorf("of %d entries %d are held, known to be a part: %v", len(endless.Data), len(says.entries), says.partial)
	}
	if _, ok := tokensOnly(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: "other"}}); ok {
		t.Error("another ConfigMap is held")
	}
}
