package secretledger

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/reflection"
)

// TestTokensStandInTheLedger with pod, shape and end; renewed tokens change the end only.
func TestTokensStandInTheLedger(t *testing.T) {
	local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "p", UID: "pod"}}
	tokens := func(value string, end time.Time) *corev1.Secret {
		return reflection.TokenSecret(local, reflection.PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: twinName}, "shadow",
			map[string]string{"v-abcdef": value}, end)
	}
	inBubble(t, func(b *bench) {
		end := time.Now().Add(time.Hour)
		first := tokens("first", end)
		entry, ok := reflection.TokenEntryOf(first)
		if !ok {
			t.Fatal("the tokens have no entry")
		}
		b.must(b.client.Create(b.Context(), first.DeepCopy()))
		b.pass(0)
		b.expect("new tokens", map[string]string{"p-token": entry.String()}, "create")

		live := &corev1.Secret{}
		b.must(b.client.Get(b.Context(), client.ObjectKey{Namespace: twinName, Name: "p-token"}, live))
		next := tokens("second", end.Add(time.Hour))
		live.Data, live.Annotations = next.Data, next.Annotations
		b.must(b.client.Update(b.Context(), live))
		b.pass(2 * time.Second)
		entry.Expiration = entry.Expiration.Add(time.Hour)
		b.expect("renewed tokens", map[string]string{"p-token": entry.String()}, "update")
	}, twinNamespace())
}
