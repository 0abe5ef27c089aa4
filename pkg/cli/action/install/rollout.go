package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
)

// imagePatience is how long an image may be missing before an installation is given up: registries have bad moments.
const imagePatience = time.Minute

// rollout waits for what the controller manager makes of an installation: virtual kubelets and gateways.
type rollout struct {
	cluster *target.Cluster
	// missing is since when an image cannot be had, by what is said about it.
	missing map[string]time.Time
}

// why says which virtual kubelets do not run as the installation wants them; empty if all do.
func (r *rollout) why(ctx context.Context) (string, error) {
	installation, err := r.cluster.Installed(ctx)
	if err != nil || installation == nil {
		return "", err
	}
	nodes, templates := &offloadingv1beta1.VirtualNodeList{}, &offloadingv1beta1.VkOptionsTemplateList{}
	for _, list := range []client.ObjectList{nodes, templates} {
		if err := r.cluster.List(ctx, list); err != nil {
			return "", err
		}
	}
	byKey := map[client.ObjectKey]*offloadingv1beta1.VkOptionsTemplate{}
	for i := range templates.Items {
		byKey[client.ObjectKeyFromObject(&templates.Items[i])] = &templates.Items[i]
	}
	own := client.ObjectKey{Namespace: r.cluster.LiqoNamespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}
	image := installation.Config.VirtualKubelet.Image
	if t := byKey[own]; len(nodes.Items) > 0 && image != "" && (t == nil || t.Spec.ContainerImage != image) {
		return "the controller manager has not told virtual kubelets their settings yet", nil
	}
	var reasons []string
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !node.DeletionTimestamp.IsZero() {
			continue
		}
		why, err := r.whyNot(ctx, node, byKey[templateOf(node, own)])
		if err != nil {
			return "", err
		}
		if why != "" {
			reasons = append(reasons, fmt.Sprintf("virtual kubelet %s/%s: %s", node.Namespace, node.Name, why))
		}
	}
	return strings.Join(reasons, "; "), nil
}

// whyNot says why the virtual kubelet of one node does not run as its template wants it.
func (r *rollout) whyNot(ctx context.Context, node *offloadingv1beta1.VirtualNode, t *offloadingv1beta1.VkOptionsTemplate) (string, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: node.Namespace, Name: node.Name}}
	found, err := r.cluster.Get(ctx, deployment)
	if err != nil {
		return "", err
	}
	if !found {
		return "it has no Deployment yet", nil
	}
	if t != nil && node.Spec.Template == nil && !runs(deployment, t.Spec.ContainerImage) {
		return "the controller manager has not given it image " + t.Spec.ContainerImage + " yet", nil
	}
	why, err := diagnosis.Deployment(ctx, r.cluster, deployment)
	if err != nil || why == "" {
		return why, err
	}
	return why, r.imaged(ctx, &part{
		pods: []client.ListOption{client.InNamespace(node.Namespace), client.MatchingLabels{offloadingv1beta1.VirtualNodeLabel: node.Name}},
		name: "virtual kubelet", of: node, values: "virtualKubelet.image",
	})
}

// part is what runs for a virtual node or for a peer.
type part struct {
	// pods are found by these.
	pods []client.ListOption
	// name is what it is called, of the object that it runs for.
	name string
	of   client.Object
	// values say which image it has.
	values string
}

// templateOf is the template of a virtual node.
func templateOf(node *offloadingv1beta1.VirtualNode, own client.ObjectKey) client.ObjectKey {
	ref := node.Spec.VkOptionsTemplateRef
	if ref == nil || ref.Name == "" {
		return own
	}
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, own.Namespace), Name: ref.Name}
}

func runs(deployment *appsv1.Deployment, image string) bool {
	return slices.ContainsFunc(deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Image == image })
}

// imaged gives up when an image cannot be had for long.
func (r *rollout) imaged(ctx context.Context, of *part) error {
	pods := &corev1.PodList{}
	if err := r.cluster.List(ctx, pods, of.pods...); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		why, final := diagnosis.WhyNoImage(pod)
		if why == "" || pod.DeletionTimestamp != nil {
			continue
		}
		since, known := r.missing[pod.Name]
		if !known {
			since = time.Now()
			r.missing[pod.Name] = since
		}
		if final || time.Since(since) > imagePatience {
			return failure.New(failure.Failed, "name images that the nodes can have with the values "+of.values+" and tag, and run the same command again; "+
				"the earlier "+of.name+" works meanwhile, if there was one", "the %s %s/%s cannot be started: %s", of.name, of.of.GetNamespace(), of.of.GetName(), why)
		}
	}
	return nil
}
