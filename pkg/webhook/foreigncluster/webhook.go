package foreigncluster

import (
	"context"
	"fmt"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/webhook/patch"
)

// Path that the webhook is served at.
const Path = "/mutate/foreign-cluster"

// Options configure the webhook; there is nothing to configure.
type Options struct{}

type webhook struct {
	admission.Decoder
}

// Register serves the webhook on a manager's webhook server.
func Register(mgr ctrl.Manager, _ Options) error {
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: &webhook{Decoder: admission.NewDecoder(mgr.GetScheme())}})
	return nil
}

// Handle labels one ForeignCluster.
func (w *webhook) Handle(_ context.Context, req admission.Request) admission.Response {
	var fc corev1beta1.ForeignCluster
	if err := w.Decode(req, &fc); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the ForeignCluster: %w", err))
	}
	before := fc.DeepCopy()
	id := string(fc.Spec.ClusterID)
	if id == "" || fc.Labels[corev1beta1.RemoteClusterIDLabel] == id {
		return admission.Allowed("")
	}
	if fc.Labels == nil {
		fc.Labels = map[string]string{}
	}
	fc.Labels[corev1beta1.RemoteClusterIDLabel] = id
	return patch.Between(before, &fc)
}
