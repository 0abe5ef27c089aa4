package namespaceoffloading

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
)

// Path that the webhook is served at.
const Path = "/validate/namespace-offloading"

// Options configure the webhook.
type Options struct {
	// ClusterID is the local cluster's ID, a part of default twin names.
	ClusterID string
}

type webhook struct {
	admission.Decoder
	Options
}

// Register serves the webhook on a manager's webhook server.
func Register(mgr ctrl.Manager, o Options) error {
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: &webhook{Decoder: admission.NewDecoder(mgr.GetScheme()), Options: o}})
	return nil
}

// Handle decides about one NamespaceOffloading.
func (w *webhook) Handle(_ context.Context, req admission.Request) admission.Response {
	var nso, old offloadingv1beta1.NamespaceOffloading
	if err := w.Decode(req, &nso); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the NamespaceOffloading: %w", err))
	}
	if !nso.DeletionTimestamp.IsZero() {
		return admission.Allowed("")
	}
	if req.Operation != admissionv1.Update {
		return respond(w.check(&nso), "")
	}
	if err := w.DecodeRaw(req.OldObject, &old); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the old NamespaceOffloading: %w", err))
	}
	if why := changed(&old, &nso); why != "" {
		return admission.Denied(why)
	}
	return respond(w.check(&nso), stricter(old.Spec.PodOffloadingStrategy, nso.Spec.PodOffloadingStrategy))
}

func respond(why, warning string) admission.Response {
	if why != "" {
		return admission.Denied(why)
	}
	if warning != "" {
		return admission.Allowed("").WithWarnings(warning)
	}
	return admission.Allowed("")
}

// check returns why an object cannot work, or nothing.
func (w *webhook) check(nso *offloadingv1beta1.NamespaceOffloading) string {
	if nso.Name != offloadingv1beta1.NamespaceOffloadingName {
		return fmt.Sprintf("a NamespaceOffloading must be named %q, not %q", offloadingv1beta1.NamespaceOffloadingName, nso.Name)
	}
	if _, err := placement.RemoteNamespaceName(nso.Spec.NamespaceMappingStrategy, nso.Namespace, w.ClusterID, nso.Spec.RemoteNamespaceName); err != nil {
		return err.Error()
	}
	if _, err := placement.Selects(nso.Spec.ClusterSelector, "", nil); err != nil {
		return err.Error()
	}
	return ""
}

// changed returns which field changed that must not, or nothing.
func changed(old, nso *offloadingv1beta1.NamespaceOffloading) string {
	if old.Spec.NamespaceMappingStrategy != nso.Spec.NamespaceMappingStrategy {
		return "namespaceMappingStrategy cannot be changed; unoffload the namespace and offload it again"
	}
	if old.Spec.RemoteNamespaceName != nso.Spec.RemoteNamespaceName {
		return "remoteNamespaceName cannot be changed; unoffload the namespace and offload it again"
	}
	return ""
}

// stricter returns a warning if pods that run may now run where they could not be started any more.
func stricter(old, now offloadingv1beta1.PodOffloadingStrategyType) string {
	if old == now || old == "" || now == offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType {
		return ""
	}
	return fmt.Sprintf("podOffloadingStrategy %s is more restrictive than %s: pods that run already stay where they are until they are recreated", now, old)
}
