package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/networking/template"
)

// gateways says which gateways to peers do not run as the installation wants them; empty if all do.
func (r *rollout) gateways(ctx context.Context) (string, error) {
	installation, err := r.cluster.Installed(ctx)
	if err != nil || !installation.Networking() {
		return "", err
	}
	servers, clients := &networkingv1beta1.GatewayServerList{}, &networkingv1beta1.GatewayClientList{}
	for _, list := range []client.ObjectList{servers, clients} {
		if err := r.cluster.List(ctx, list); err != nil {
			return "", err
		}
	}
	templates, images := &installation.Config.Networking.GatewayTemplates, map[client.Object]string{}
	for i := range servers.Items {
		images[&servers.Items[i]] = r.serverImage(&servers.Items[i], templates.Server)
	}
	for i := range clients.Items {
		images[&clients.Items[i]] = r.clientImage(&clients.Items[i], templates.Client)
	}
	var reasons []string
	for gateway, image := range images {
		if !gateway.GetDeletionTimestamp().IsZero() {
			continue
		}
		why, err := r.whyNoGateway(ctx, gateway, image)
		if err != nil {
			return "", err
		}
		if why != "" {
			reasons = append(reasons, fmt.Sprintf("gateway %s/%s: %s", gateway.GetNamespace(), gateway.GetName(), why))
		}
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; "), nil
}

// serverImage and clientImage are the images that gateways get from the installation's own templates; empty for those of other templates. A
// template that cannot be rendered is refused where it is written.
func (r *rollout) serverImage(gateway *networkingv1beta1.GatewayServer, own runtime.RawExtension) string {
	if !r.owns(gateway.Spec.ServerTemplateRef, networkingv1beta1.ServerTemplate) {
		return ""
	}
	from := &networkingv1beta1.WgGatewayServerTemplate{Spec: networkingv1beta1.WgGatewayServerTemplateSpec{Template: own}}
	rendered, err := template.Server(from, gateway, dataOf(gateway))
	if err != nil {
		return ""
	}
	return firstImage(&rendered.Spec.Deployment.Spec.Template.Spec)
}

func (r *rollout) clientImage(gateway *networkingv1beta1.GatewayClient, own runtime.RawExtension) string {
	if !r.owns(gateway.Spec.ClientTemplateRef, networkingv1beta1.ClientTemplate) {
		return ""
	}
	from := &networkingv1beta1.WgGatewayClientTemplate{Spec: networkingv1beta1.WgGatewayClientTemplateSpec{Template: own}}
	rendered, err := template.Client(from, gateway, dataOf(gateway))
	if err != nil {
		return ""
	}
	return firstImage(&rendered.Spec.Deployment.Spec.Template.Spec)
}

// owns tells whether a template is the installation's own.
func (r *rollout) owns(ref corev1.ObjectReference, own string) bool {
	return cmp.Or(ref.Name, own) == own && cmp.Or(ref.Namespace, r.cluster.LiqoNamespace) == r.cluster.LiqoNamespace
}

func dataOf(gateway client.Object) template.Data {
	return template.Data{Name: gateway.GetName(), Namespace: gateway.GetNamespace(), GatewayUID: string(gateway.GetUID()),
		ClusterID: gateway.GetLabels()[corev1beta1.RemoteClusterIDLabel]}
}

func firstImage(spec *corev1.PodSpec) string {
	if len(spec.Containers) == 0 {
		return ""
	}
	return spec.Containers[0].Image
}

// whyNoGateway says why a gateway does not run, with the image if one is given.
func (r *rollout) whyNoGateway(ctx context.Context, gateway client.Object, image string) (string, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: gateway.GetNamespace(), Name: networkingv1beta1.GatewayPrefix + gateway.GetName()}}
	found, err := r.cluster.Get(ctx, deployment)
	if err != nil {
		return "", err
	}
	if !found {
		return "it has no Deployment yet", nil
	}
	if image != "" && !runs(deployment, image) {
		return "the controller manager has not given it image " + image + " yet", nil
	}
	why, err := diagnosis.Deployment(ctx, r.cluster, deployment)
	if err != nil || why == "" {
		return why, err
	}
	return why, r.imaged(ctx, &part{
		pods: []client.ListOption{client.InNamespace(gateway.GetNamespace()), client.MatchingLabels{networkingv1beta1.GatewayNameLabel: gateway.GetName()}},
		name: "gateway", of: gateway, values: "networking.gatewayTemplates.container.gateway.image",
	})
}
