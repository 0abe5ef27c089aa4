package mirror

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// refusal is what the provider refused lately, and why: it is not asked for again until the object or the settings change.
type refusal struct{ fingerprint, words string }

// relax gives up what the provider refused, if the kind works without it. It tells the user, once: the remote object carries a note
// of that, which outlives this process.
func (t *task) relax(err error, live reflection.Object) bool {
	if err == nil || t.kind().Relax == nil || t.wanted == nil || !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return false
	}
	relaxed, given := t.kind().Relax(t.wanted, err.Error())
	if relaxed == nil {
		return false
	}
	t.wanted = reflection.WithoutPart(relaxed, given)
	words := err.Error()
	if before := t.state.refused; before.fingerprint == t.fingerprint && !strings.Contains(before.words, words) {
		words = before.words + "\n" + words
	}
	t.state.refused = refusal{t.fingerprint, words}
	if note := reflection.RefusedPartOf(t.wanted); live != nil && note != "" && note == reflection.RefusedPartOf(live) {
		return true
	}
	t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected,
		fmt.Sprintf("Reflected to cluster %q in part, %s: %s", t.options().Remote, given, err))
	return true
}

// recall gives up at once what the provider refused before.
func (t *task) recall() {
	if t.kind().Relax == nil || t.wanted == nil {
		return
	}
	before := t.state.refused
	if before.words == "" || before.fingerprint != t.fingerprint {
		return
	}
	if relaxed, given := t.kind().Relax(t.wanted, before.words); relaxed != nil {
		t.wanted = reflection.WithoutPart(relaxed, given)
	}
}
