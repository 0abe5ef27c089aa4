package pod

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/webhook/patch"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespaceoffloadings,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=patch

// Path that the webhook is served at.
const Path = "/mutate/pod"

// Options configure the webhook.
type Options struct {
	// RuntimeClass by which pods ask for a virtual node themselves; empty means the default one.
	RuntimeClass string
}

type webhook struct {
	client.Client
	admission.Decoder
	Options
}

// Register serves the webhook on a manager's webhook server.
func Register(mgr ctrl.Manager, o Options) error {
	w := &webhook{Client: mgr.GetClient(), Decoder: admission.NewDecoder(mgr.GetScheme()), Options: o}
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: w})
	return nil
}

// Handle decides about one new pod.
func (w *webhook) Handle(ctx context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := w.Decode(req, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the pod: %w", err))
	}
	before := changeable(&pod).DeepCopy()
	marked := pod.Labels[offloadingv1beta1.MarkedLabel] == "true"
	delete(pod.Labels, offloadingv1beta1.MarkedLabel)
	var nso offloadingv1beta1.NamespaceOffloading
	err := w.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: offloadingv1beta1.NamespaceOffloadingName}, &nso)
	if apierrors.IsNotFound(err) {
		answer := admission.Allowed("")
		if marked {
			answer = patch.Between(before, changeable(&pod))
		}
		return answer.WithWarnings(fmt.Sprintf("namespace %s is labelled for offloading but has no NamespaceOffloading: the pod stays in this cluster; "+
			"offload the namespace with 'liqoctl offload namespace %s'", req.Namespace, req.Namespace))
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("reading the NamespaceOffloading of namespace %s: %w", req.Namespace, err))
	}
	rules := placement.PodRules{Strategy: nso.Spec.PodOffloadingStrategy, Selector: nso.Spec.ClusterSelector, RuntimeClass: w.RuntimeClass,
		Never: reflection.NeverOffloaded(&pod)}
	labelled, err := w.label(ctx, &pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	changed := marked || labelled
	if marked && nso.DeletionTimestamp.IsZero() {
		w.note(ctx, &pod, req)
	}
	if nso.DeletionTimestamp.IsZero() && placement.MutatePod(&pod, rules) {
		changed = true
	}
	if !changed {
		return admission.Allowed("")
	}
	return patch.Between(before, changeable(&pod))
}

// changeable is the part of a pod that is changed here: encoding and comparing all of it would take most of an answer's time.
func changeable(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations},
		Spec:       corev1.PodSpec{Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations},
	}
}

// note labels the namespace of a pod that policy liqo-placement marked and that names no node, which therefore may be large, before the pod is there: so
// the size of it, and of those after it, is checked as they are bound. No pod waits for that to succeed.
func (w *webhook) note(ctx context.Context, pod *corev1.Pod, req admission.Request) {
	if pod.Spec.NodeName != "" || req.DryRun != nil && *req.DryRun {
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: req.Namespace}}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, offloadingv1beta1.LargePodsLabel)
	if err := w.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, label)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Labelling the namespace of a large pod failed", "namespace", req.Namespace)
	}
}

// label marks a pod that names a virtual node itself, and tells whether that changed anything. Those that the scheduler binds
// are marked by the admission policy liqo-local-pods as they are bound, before Kubernetes 1.36 by the virtual kubelet with their status.
func (w *webhook) label(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if pod.Spec.NodeName == "" || pod.Labels[offloadingv1beta1.LocalPodLabel] == "true" {
		return false, nil
	}
	var node corev1.Node
	err := w.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Node %s: %w", pod.Spec.NodeName, err)
	}
	if err != nil || node.Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
		return false, nil
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[offloadingv1beta1.LocalPodLabel] = "true"
	return true, nil
}
