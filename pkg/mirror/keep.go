package mirror

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// keep leaves a live object what is not worth making it anew for. It tells the user, once: the remote object carries a note of that,
// which outlives this process.
func (t *task) keep(live reflection.Object) {
	if t.kind().Keep == nil || t.wanted == nil || live == nil || !reflection.IsOurs(live, t.options().Home, t.options().Remote) ||
		reflection.OriginUID(live) != reflection.OriginUID(t.wanted) {
		return
	}
	kept, what := t.kind().Keep(live, t.wanted)
	if kept == nil {
		t.state.keeps("")
		return
	}
	t.wanted = kept
	if news := t.state.keeps(what); news && reflection.RefusedPartOf(live) != reflection.RefusedPartOf(kept) {
		t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected, fmt.Sprintf(
			"Reflected to cluster %q in part: %s; delete the object and create it anew to change that", t.options().Remote, what))
	}
}

// keeps takes note of what is kept, and tells whether that is news.
func (s *state) keeps(what string) (news bool) {
	news = s.kept != what
	s.kept = what
	return news
}
