package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/gatewaytemplate"
	"liqo.io/liqo/pkg/networking/template"
)

const network = "networking: {enabled: true}\nipam: {podCIDRs: [10.244.0.0/16], serviceCIDR: 10.96.0.0/12}\n"

// rendered are the gateways that the controller manager makes of the chart's templates.
func gateways(t *testing.T, values string, endpoint networkingv1beta1.Endpoint) (*networkingv1beta1.WgGatewayServer, *networkingv1beta1.WgGatewayClient) {
	t.Helper()
	objects, err := gatewaytemplate.Objects(gatewaytemplate.Options{Templates: configuration(t, values).Networking.GatewayTemplates, Namespace: "liqo"})
	if err != nil || len(objects) != 2 {
		t.Fatal(err, objects)
	}
	servers, clients := &networkingv1beta1.WgGatewayServerTemplate{}, &networkingv1beta1.WgGatewayClientTemplate{}
	for i, into := range []any{servers, clients} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, into); err != nil {
			t.Fatal(err)
		}
	}
	data := template.Data{Name: "milan", Namespace: "liqo-tenant-milan", ClusterID: "milan", GatewayUID: "u-1", SecretName: "milan-gw-keys"}
	server, err := template.Server(servers, &networkingv1beta1.GatewayServer{Spec: networkingv1beta1.GatewayServerSpec{Endpoint: endpoint}}, data)
	if err != nil {
		t.Fatal(err)
	}
	client, err := template.Client(clients, &networkingv1beta1.GatewayClient{Spec: networkingv1beta1.GatewayClientSpec{
		Endpoint: networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{"192.0.2.1"}, Port: 30000},
	}}, data)
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

// The templates of the chart become gateways, whatever the values, in a cluster of any kind.
func TestGatewaysAreRenderedFromTheChart(t *testing.T) {
	balancer := networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeLoadBalancer}
	for name, tc := range map[string]struct {
		values   string
		endpoint networkingv1beta1.Endpoint
		want     corev1.ServiceSpec
	}{
		"a load balancer": {"", balancer, corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
		"a load balancer at an address": {"", networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: ptr.To[networkingv1beta1.IP]("192.0.2.9")},
			corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "192.0.2.9"}},
		"without ports of nodes": {"  gatewayTemplates: {server: {service: {allocateLoadBalancerNodePorts: 'false'}}}", balancer,
			corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: ptr.To(false)}},
		"without ports of nodes, where there is no balancer": {"  gatewayTemplates: {server: {service: {allocateLoadBalancerNodePorts: 'false'}}}",
			networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeClusterIP}, corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
		"a port of nodes": {"", networkingv1beta1.Endpoint{Port: 443, ServiceType: corev1.ServiceTypeNodePort, NodePort: 30001},
			corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{NodePort: 30001}}}},
		"everything that values can say": {`  genevePort: 7000
  gatewayTemplates:
    container: {gateway: {image: {name: example.com/gateway, version: v9}, resources: {limits: {cpu: "1"}, requests: {memory: 1Mi}}}}
    pod: {priorityClassName: high, nodeSelector: {a: b}, tolerations: [{operator: Exists}], affinity: {nodeAffinity: {}}}
    server: {service: {annotations: {a: b}}}
imagePullSecrets: [{name: pull}]
metrics: {enabled: true}`, balancer, corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
		"nothing that can be left out": {`  gatewayTemplates:
    container: {gateway: {resources: {limits: null, requests: null}}}
priorityClass: {name: ""}`, balancer, corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
	} {
		t.Run(name, func(t *testing.T) {
			values := strings.Replace(network, "networking: {enabled: true}\n", "networking:\n  enabled: true\n"+tc.values+"\n", 1)
			server, client := gateways(t, values, tc.endpoint)
			got := *server.Spec.Service.Spec.DeepCopy()
			port := got.Ports[0]
			if port.Port != int32(tc.endpoint.Port) || port.TargetPort.StrVal != "wireguard" || port.Protocol != corev1.ProtocolUDP {
				t.Errorf("the Service has the port %+v", port)
			}
			if len(tc.want.Ports) > 0 && port.NodePort != tc.want.Ports[0].NodePort {
				t.Errorf("the Service has port %d on nodes, want %d", port.NodePort, tc.want.Ports[0].NodePort)
			}
			for label, value := range got.Selector {
				if server.Spec.Deployment.Spec.Template.Labels[label] != value {
					t.Errorf("the Service selects pods by %s=%s, which they do not have", label, value)
				}
			}
			got.Ports, got.Selector, tc.want.Ports = nil, nil, nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			checkGateway(t, "server", &server.Spec.Deployment)
			checkGateway(t, "client", &client.Spec.Deployment)
		})
	}
}

// checkGateway looks at what every gateway has to have.
func checkGateway(t *testing.T, mode string, deployment *networkingv1beta1.DeploymentTemplate) {
	t.Helper()
	pod := &deployment.Spec.Template.Spec
	c := pod.Containers[0]
	if !equality.Semantic.DeepEqual(deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels) || len(deployment.Spec.Template.Labels) == 0 {
		t.Errorf("the %s's Deployment selects %v, and its pods have %v", mode, deployment.Spec.Selector, deployment.Spec.Template.Labels)
	}
	for _, arg := range []string{"--name=milan", "--namespace=liqo-tenant-milan", "--remote-cluster-id=milan", "--mode=" + mode, "--listen-port=51840", "--keys=/etc/liqo/keys"} {
		if !slices.Contains(c.Args, arg) {
			t.Errorf("the %s's arguments %v lack %s", mode, c.Args, arg)
		}
	}
	security := c.SecurityContext
	if *pod.SecurityContext.RunAsUser != 0 || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || !*security.ReadOnlyRootFilesystem ||
		*security.AllowPrivilegeEscalation || security.Capabilities.Drop[0] != "ALL" || len(security.Capabilities.Add) != 1 || security.Privileged != nil {
		t.Errorf("the %s's pod is not hardened: %+v, %+v", mode, pod.SecurityContext, security)
	}
	if *deployment.Spec.Replicas != 1 || deployment.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType ||
		deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 || deployment.Spec.Strategy.RollingUpdate.MaxSurge.IntValue() != 1 || deployment.Name != "gw-milan" || c.ReadinessProbe == nil {
		t.Errorf("the %s's Deployment is %+v", mode, deployment.Spec)
	}
}
