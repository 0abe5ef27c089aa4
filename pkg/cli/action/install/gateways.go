package install

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/diagnosis"
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
		images[&servers.Items[i]] = r.image(servers.Items[i].Spec.ServerTemplateRef, networkingv1beta1.ServerTemplate, templates.Server)
	}
	for i := range clients.Items {
		images[&clients.Items[i]] = r.image(clients.Items[i].Spec.ClientTemplateRef, networkingv1beta1.ClientTemplate, templates.Client)
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

// image is that of the gateways of a template, if it is the installation's own; empty if not.
func (r *rollout) image(ref corev1.ObjectReference, own string, content runtime.RawExtension) string {
	if cmp.Or(ref.Name, own) != own || cmp.Or(ref.Namespace, r.cluster.LiqoNamespace) != r.cluster.LiqoNamespace {
		return ""
	}
	var template struct {
		Spec struct {
			Deployment struct {
				Spec struct {
					Template struct {
						Spec struct {
							Containers []struct {
								Image string `json:"image"`
							} `json:"containers"`
						} `json:"spec"`
					} `json:"template"`
				} `json:"spec"`
			} `json:"deployment"`
		} `json:"spec"`
	}
	// What is no template is refused where it is written.
	if err := json.Unmarshal(content.Raw, &template); err != nil || len(template.Spec.Deployment.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return template.Spec.Deployment.Spec.Template.Spec.Containers[0].Image
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
