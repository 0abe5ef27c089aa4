package claim

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch

// Path that the webhook is served at.
const Path = "/validate/claims"

type webhook struct {
	admission.Decoder
	classes client.Reader
}

// Register serves the webhook on a manager's webhook server.
func Register(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: &webhook{admission.NewDecoder(mgr.GetScheme()), mgr.GetClient()}})
}

// Handle decides about one claim of a consumer.
func (w *webhook) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	var claim corev1.PersistentVolumeClaim
	if err := w.Decode(req, &claim); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the claim: %w", err))
	}
	classes := &storagev1.StorageClassList{}
	if err := w.classes.List(ctx, classes); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("listing StorageClasses: %w", err))
	}
	if why := reflection.WhyClassNotOffered(claim.Spec.StorageClassName, classes.Items); why != "" {
		return admission.Denied("StorageClassNotAllowed: " + why)
	}
	return admission.Allowed("")
}
