package mirror

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// TestTokensOfPodsAreNotOurs: Secrets with pods' tokens stand in the same ledger, and are neither removed as if their origin
// were gone, nor taken over by a local Secret of the name.
func TestTokensOfPodsAreNotOurs(t *testing.T) {
	inBubble(t, func(w *world) {
		local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "p", UID: "pod"}}
		tokens := func(end time.Time) *corev1.Secret {
			s := reflection.TokenSecret(local, reflection.PodInput{Home: home, Remote: provider, Node: provider, Namespace: there}, "shadow",
				map[string]string{"v-abcdef": end.String()}, end)
			s.Name = "p-token" // that of an earlier version, which Secrets of users may have, too
			return s
		}
		publish := func(end time.Time) {
			entry, ok := reflection.TokenEntryOf(tokens(end))
			if !ok {
				t.Fatal("the tokens have no entry")
			}
			s := secret("a", "1")
			w.remote.put(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: offloadingv1beta1.SecretLedger},
				Data:       map[string]string{"p-token": entry.String(), "a": string(s.UID) + " " + reflection.SecretHash(s)},
			})
			w.rest()
		}
		w.remote.put(tokens(time.Now()))
		publish(time.Now())
		w.start()
		for range 3 {
			publish(time.Now().Add(time.Hour))
			w.pass(time.Hour)
		}
		touched := func() []string {
			return slices.DeleteFunc(w.remote.took(false), func(call string) bool { return !strings.Contains(call, "p-token") })
		}
		w.equal("calls about the tokens", []string(nil), touched())

		w.local.put(secret("p-token", "mine"))
		w.pass(time.Minute)
		object := w.remote.objects[kindOf(tokens(time.Now()))+"/"+there+"/p-token"]
		if s, ok := object.(*corev1.Secret); !ok || len(s.OwnerReferences) != 1 || string(s.Data["key"]) != "" {
			t.Errorf("the tokens became %v", object)
		}
		if events := w.events.took(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, offloadingv1beta1.ReasonNameConflict) }) {
			t.Errorf("the user was told %v", events)
		}
		w.local.drop(secret("p-token", ""))
		w.pass(time.Minute)
		for _, call := range touched() {
			if strings.HasPrefix(call, "delete") {
				t.Errorf("the tokens were removed: %s", call)
			}
		}
	})
}
