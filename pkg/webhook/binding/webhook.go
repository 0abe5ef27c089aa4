package binding

import (
	"context"
	"encoding/json"
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
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get

// Path that the webhook is served at.
const Path = "/validate/binding"

// schedulerUser is Kubernetes' own scheduler.
const schedulerUser = "system:kube-scheduler"

type webhook struct {
	admission.Decoder
	// nodes are read from the cache, pods from the API server, of which few are ever asked for.
	nodes, pods client.Reader
}

// Register serves the webhook on a manager's webhook server.
func Register(mgr ctrl.Manager) {
	w := &webhook{admission.NewDecoder(mgr.GetScheme()), mgr.GetClient(), mgr.GetAPIReader()}
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: w})
}

// Handle decides whether a pod may be bound to a node.
func (w *webhook) Handle(ctx context.Context, req admission.Request) admission.Response {
	var binding corev1.Binding
	if err := w.Decode(req, &binding); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the binding: %w", err))
	}
	node, largest := w.largest(ctx, binding.Target.Name)
	if len(largest) == 0 {
		return admission.Allowed("")
	}
	pod, err := w.pod(ctx, client.ObjectKey{Namespace: req.Namespace, Name: req.Name}, binding.UID)
	if err != nil {
		return admission.Allowed("") // The API server will tell of it.
	}
	why := capacity.WhyLarger(&pod.Spec, largest)
	if why == "" {
		return admission.Allowed("")
	}
	// No scheduler binds what a virtual kubelet refuses, unless the node changed just now: who does so by hand wants to see it refused as by a
	// kubelet (OutOfcpu).
	if rejected, _ := reflection.WhyRejected(pod, reflection.HostOf(&node)); rejected != "" && req.UserInfo.Username != schedulerUser {
		return admission.Allowed("")
	}
	return admission.Denied(fmt.Sprintf("%s: %s on any one node behind virtual node %s", offloadingv1beta1.ReasonLargerThanAnyNode, why, binding.Target.Name))
}

// pod is what is to be bound. Who binds it has seen it, most likely in what the API server holds in memory, which spares a read of etcd for each
// pod; what is not there yet, or an earlier one of the name, is read from etcd. The scheduler gives the UID.
func (w *webhook) pod(ctx context.Context, key client.ObjectKey, uid types.UID) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := w.pods.Get(ctx, key, pod, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
	if apierrors.IsNotFound(err) || err == nil && uid != "" && uid != pod.UID {
		err = w.pods.Get(ctx, key, pod)
	}
	return pod, err
}

// largest is a virtual node, and the largest pod that it takes; nothing if that is not known, or it is another node.
func (w *webhook) largest(ctx context.Context, name string) (node corev1.Node, largest corev1.ResourceList) {
	if err := w.nodes.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil || node.Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
		return node, nil
	}
	if json.Unmarshal([]byte(node.Annotations[offloadingv1beta1.LargestPodAnnotation]), &largest) != nil {
		return node, nil
	}
	return node, largest
}
