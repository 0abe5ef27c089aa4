package secretledger

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
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
		b.expect("new tokens", map[string]string{"p.token.liqo.io": entry.String()}, "create")

		live := &corev1.Secret{}
		b.must(b.client.Get(b.Context(), client.ObjectKey{Namespace: twinName, Name: "p.token.liqo.io"}, live))
		next := tokens("second", end.Add(time.Hour))
		live.Data, live.Annotations = next.Data, next.Annotations
		b.must(b.client.Update(b.Context(), live))
		b.pass(2 * time.Second)
		entry.Expiration = entry.Expiration.Add(time.Hour)
		b.expect("renewed tokens", map[string]string{"p.token.liqo.io": entry.String()}, "update")
	}, twinNamespace())
}

// The rights in a twin may be given long after it was made, or be taken for a while: once they are there pods do not wait for long.
func TestRightsThatComeLateHoldPodsUpForSeconds(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.stop()
		b.forbidden.Store(true)
		b.start()
		b.must(b.client.Create(b.Context(), secret("x", "1")))
		b.pass(3 * time.Minute)
		b.expect("without rights", nil)
		b.forbidden.Store(false)
		b.pass(10 * time.Second)
		b.expect("with rights", map[string]string{"x": line(secret("x", "1"))}, "create")
	}, twinNamespace())
}

// Who waits for the tokens of a pod is woken by them, not by those of an earlier pod of the name.
func TestWhoWaitsForTokensIsWoken(t *testing.T) {
	inBubble(t, func(b *bench) {
		tokens := b.tokens
		shadow := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: twinName, Name: "p", Annotations: map[string]string{"liqo.io/origin-uid": "pod"}},
			Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: reflection.TokenSecretName("p")}}}}}}}}}}}
		woken := func() bool {
			select {
			case e := <-tokens.Woken():
				return e.Object.GetName() == "p" && e.Object.GetNamespace() == twinName
			default:
				return false
			}
		}
		secret := func(uid types.UID) *corev1.Secret {
			local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "p", UID: uid}}
			return reflection.TokenSecret(local, reflection.PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: twinName}, "shadow",
				map[string]string{"v-abcdef": "x"}, time.Now().Add(time.Hour))
		}
		if tokens.Await(shadow) {
			t.Error("a Secret is there before any was made")
		}
		b.must(b.client.Create(b.Context(), secret("earlier")))
		b.pass(0)
		if !woken() || tokens.Await(shadow) {
			t.Error("the tokens of an earlier pod are taken for those of this one, or went unnoticed")
		}
		b.must(b.client.Delete(b.Context(), secret("earlier")))
		b.must(b.client.Create(b.Context(), secret("pod")))
		b.pass(2 * time.Second)
		if !woken() || !tokens.Await(shadow) {
			t.Error("the tokens of the pod went unnoticed")
		}
		// Whose Secrets are is known, too.
		b.must(b.client.Create(b.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: twinName, Name: "theirs"}}))
		b.pass(2 * time.Second)
		for name, want := range map[string]string{reflection.TokenSecretName("p"): "rome", "theirs": "", "none": ""} {
			if got := tokens.Consumer(types.NamespacedName{Namespace: twinName, Name: name}); got != want {
				t.Errorf("Secret %s is known to be of %q, want %q", name, got, want)
			}
		}
		if got := tokens.Consumer(types.NamespacedName{Namespace: "elsewhere", Name: reflection.TokenSecretName("p")}); got != "" {
			t.Errorf("a Secret of no twin is known to be of %q", got)
		}
		if len(tokens.awaited) > 0 || woken() {
			t.Errorf("somebody still waits: %v", tokens.awaited)
		}
	}, twinNamespace())
}
