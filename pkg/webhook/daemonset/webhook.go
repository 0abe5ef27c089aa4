package daemonset

import (
	"context"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/webhook/patch"
)

// Path that the webhook is served at.
const Path = "/mutate/daemonset"

type webhook struct{ admission.Decoder }

// Register serves the webhook on a manager's webhook server. Whether it is asked at all is the chart's to say.
func Register(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: &webhook{admission.NewDecoder(mgr.GetScheme())}})
}

// Handle decides about one DaemonSet that is created or changed.
func (w *webhook) Handle(_ context.Context, req admission.Request) admission.Response {
	var set appsv1.DaemonSet
	if err := w.Decode(req, &set); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the DaemonSet: %w", err))
	}
	before := changeable(&set).DeepCopy()
	if !placement.KeepOffVirtualNodes(&set.Spec.Template.Spec) {
		return admission.Allowed("")
	}
	return patch.Between(before, changeable(&set))
}

// changeable is the part of a DaemonSet that is changed here.
func changeable(set *appsv1.DaemonSet) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Affinity: set.Spec.Template.Spec.Affinity}}}}
}
