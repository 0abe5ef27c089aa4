package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
)

// maxManager bounds the name of a field manager, as API servers do; this one comes from the peer.
const maxManager = 128

// tellPutBack tells whose change of a ShadowPod was undone, if somebody but us had written one of the fields. live is as it was before.
func (r *Reconciler) tellPutBack(local *corev1.Pod, live *offloadingv1beta1.ShadowPod, changes []reflection.Change) {
	if r.options.Recorder == nil || len(live.ManagedFields) == 0 {
		return
	}
	for _, change := range changes {
		for _, manager := range mirror.Writers(live, change.Path) {
			if manager == fieldManager {
				continue
			}
			r.options.Recorder.Event(local, corev1.EventTypeWarning, offloadingv1beta1.ReasonRemoteChangeReverted, fmt.Sprintf(
				"Field %s of %s/%s in cluster %q was changed by field manager %q; it was put back", strings.Join(change.Path, "."),
				live.Namespace, live.Name, r.options.Remote, strings.ToValidUTF8(manager[:min(len(manager), maxManager)], "")))
			return
		}
	}
}
