package shadowpod

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

// checkCordon decides about a ShadowPod that is resized where grants are not enforced: a cordon holds there, too.
func (w *webhook) checkCordon(ctx context.Context, req admission.Request, old, shadow *offloadingv1beta1.ShadowPod, consumer string) admission.Response {
	if sameRequests(&old.Spec.Pod, &shadow.Spec.Pod) {
		return admission.Allowed("")
	}
	grant, err := w.grant(ctx, consumer, req.UserInfo.Username)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if grant == nil {
		return admission.Allowed("")
	}
	if refusal := capacity.CheckCordon(grant, &old.Spec.Pod, &shadow.Spec.Pod); refusal != nil {
		return refuse(refusal.Reason, "%s", refusal.Message)
	}
	return admission.Allowed("")
}
