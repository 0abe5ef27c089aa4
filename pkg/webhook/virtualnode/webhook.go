package virtualnode

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/webhook/patch"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes;vkoptionstemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes;namespaces,verbs=get;list;watch

// Paths that the webhooks are served at.
const (
	MutatePath   = "/mutate/virtualnodes"
	ValidatePath = "/validate/virtualnodes"
)

// Options configure the webhooks.
type Options struct {
	// Namespace is Liqo's own, where the default VkOptionsTemplate is.
	Namespace string
}

type webhook struct {
	client.Reader
	admission.Decoder
	Options
}

// Register serves the webhooks on a manager's webhook server.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Namespace == "" {
		o.Namespace = corev1beta1.DefaultNamespace
	}
	w := &webhook{Reader: mgr.GetClient(), Decoder: admission.NewDecoder(mgr.GetScheme()), Options: o}
	mgr.GetWebhookServer().Register(MutatePath, &admission.Webhook{Handler: admission.HandlerFunc(w.mutate)})
	mgr.GetWebhookServer().Register(ValidatePath, &admission.Webhook{Handler: admission.HandlerFunc(w.validate)})
	return nil
}

// mutate fills in what one VirtualNode leaves open.
func (w *webhook) mutate(ctx context.Context, req admission.Request) admission.Response {
	var vn offloadingv1beta1.VirtualNode
	if err := w.Decode(req, &vn); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the VirtualNode: %w", err))
	}
	if !vn.DeletionTimestamp.IsZero() {
		return admission.Allowed("")
	}
	before := vn.DeepCopy()
	if vn.Labels == nil {
		vn.Labels = map[string]string{}
	}
	vn.Labels[corev1beta1.RemoteClusterIDLabel] = string(vn.Spec.ClusterID)
	vn.Labels[corev1beta1.TypeLabel] = corev1beta1.VirtualNodeType
	template, err := w.template(ctx, &vn)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if template != nil {
		if vn.Spec.CreateNode == nil {
			vn.Spec.CreateNode = ptr.To(template.Spec.CreateNode)
		}
		if vn.Spec.DisableNetworkCheck == nil {
			vn.Spec.DisableNetworkCheck = ptr.To(template.Spec.DisableNetworkCheck)
		}
	}
	return patch.Between(before, &vn)
}

// template reads the VkOptionsTemplate of a VirtualNode; nil if there is none, which the controller reports.
func (w *webhook) template(ctx context.Context, vn *offloadingv1beta1.VirtualNode) (*offloadingv1beta1.VkOptionsTemplate, error) {
	key := client.ObjectKey{Namespace: w.Namespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}
	if ref := vn.Spec.VkOptionsTemplateRef; ref != nil && ref.Name != "" {
		key.Name = ref.Name
		if ref.Namespace != "" {
			key.Namespace = ref.Namespace
		}
	}
	var template offloadingv1beta1.VkOptionsTemplate
	err := w.Get(ctx, key, &template)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading VkOptionsTemplate %s: %w", key, err)
	}
	return &template, nil
}

// validate decides about one VirtualNode.
func (w *webhook) validate(ctx context.Context, req admission.Request) admission.Response {
	var vn, old offloadingv1beta1.VirtualNode
	if err := w.Decode(req, &vn); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the VirtualNode: %w", err))
	}
	if req.Operation == admissionv1.Update {
		if err := w.DecodeRaw(req.OldObject, &old); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the old VirtualNode: %w", err))
		}
		if old.Spec.ClusterID != vn.Spec.ClusterID {
			return admission.Denied("clusterID cannot be changed; create another VirtualNode")
		}
		return admission.Allowed("")
	}
	for _, check := range []func(context.Context, *offloadingv1beta1.VirtualNode) (string, error){w.checkNamespace, w.checkName} {
		why, err := check(ctx, &vn)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if why != "" {
			return admission.Denied(why)
		}
	}
	return admission.Allowed("")
}

// checkNamespace wants a VirtualNode in the tenant namespace of its cluster.
func (w *webhook) checkNamespace(ctx context.Context, vn *offloadingv1beta1.VirtualNode) (string, error) {
	var ns corev1.Namespace
	if err := w.Get(ctx, client.ObjectKey{Name: vn.Namespace}, &ns); err != nil {
		return "", fmt.Errorf("reading Namespace %s: %w", vn.Namespace, err)
	}
	id := string(vn.Spec.ClusterID)
	if ns.Labels[corev1beta1.TenantNamespaceLabel] != "true" || ns.Labels[corev1beta1.RemoteClusterIDLabel] != id {
		return fmt.Sprintf("namespace %s is not the tenant namespace of cluster %q: create the VirtualNode in namespace %s%s",
			vn.Namespace, id, corev1beta1.TenantNamespacePrefix, id), nil
	}
	return "", nil
}

// checkName wants the name of a VirtualNode to be free: it becomes the name of a Node.
func (w *webhook) checkName(ctx context.Context, vn *offloadingv1beta1.VirtualNode) (string, error) {
	var list offloadingv1beta1.VirtualNodeList
	if err := w.List(ctx, &list); err != nil {
		return "", fmt.Errorf("listing VirtualNodes: %w", err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Name == vn.Name && other.Namespace != vn.Namespace {
			return fmt.Sprintf("a VirtualNode named %s exists in namespace %s, and both would be the same Node: choose another name", vn.Name, other.Namespace), nil
		}
	}
	var node corev1.Node
	err := w.Get(ctx, client.ObjectKey{Name: vn.Name}, &node)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Node %s: %w", vn.Name, err)
	}
	if node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType && node.Labels[corev1beta1.RemoteClusterIDLabel] == string(vn.Spec.ClusterID) {
		return "", nil
	}
	return fmt.Sprintf("a Node named %s exists: choose another name", vn.Name), nil
}
