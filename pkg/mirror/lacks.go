package mirror

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// lacks tells the user what an object does not have at the provider, when it is made and when what it is noted to lack changes: not again and
// again while somebody there keeps deleting the object.
func (t *task) lacks(made reflection.Object) {
	if t.kind().Lacks == nil || t.local == nil {
		return
	}
	if what := t.kind().Lacks(t.local, made); what != "" && t.state.mayWarn(what, t.options().Clock.Now()) {
		t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected,
			fmt.Sprintf("Reflected to cluster %q in part: %s", t.options().Remote, what))
	}
}
