package gateway

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/networking/template"
)

// side is one of the two ends that a tunnel has: a server waits for the peer, a client goes to it.
type side struct {
	// gateway and rendered are the kinds; resource is the one of the gateway.
	gateway, rendered, resource string
	// template is the kind of the templates, defaultTemplate the one of gateways that name none.
	template, defaultTemplate string
	newGateway                func() gateway
	newRendered               func() rendered
	newList                   func() client.ObjectList
	newTemplate               func() client.Object
	// render makes what a template says of a gateway. The error is one of reading, or lists what is wrong with the template.
	render func(ctx context.Context, reader client.Reader, from client.ObjectKey, of gateway, data template.Data) (r rendered, wrong, err error)
}

// gateway is what a GatewayServer and a GatewayClient have in common. Pointers lead into the object.
type gateway struct {
	client.Object
	templateRef corev1.ObjectReference
	secretRef   corev1.LocalObjectReference
	// renderedRef is the field of the status that names what the gateway was rendered to.
	renderedRef **corev1.ObjectReference
	status      status
}

// rendered is what a WgGatewayServer and a WgGatewayClient have in common. Pointers lead into the object.
type rendered struct {
	client.Object
	// spec is the whole one.
	spec       any
	deployment *networkingv1beta1.DeploymentTemplate
	// service is nil for clients.
	service *networkingv1beta1.ServiceTemplate
	status  status
}

// status is what all four kinds tell.
type status struct {
	secretRef **corev1.ObjectReference
	// endpoint is nil for clients.
	endpoint   **networkingv1beta1.EndpointStatus
	internal   **networkingv1beta1.InternalGatewayEndpoint
	conditions *[]metav1.Condition
}

var serverSide = side{
	gateway: "GatewayServer", rendered: "WgGatewayServer", resource: "gatewayservers",
	template: "WgGatewayServerTemplate", defaultTemplate: networkingv1beta1.ServerTemplate,
	newGateway:  func() gateway { return serverGateway(&networkingv1beta1.GatewayServer{}) },
	newRendered: func() rendered { return renderedServer(&networkingv1beta1.WgGatewayServer{}) },
	newList:     func() client.ObjectList { return &networkingv1beta1.GatewayServerList{} },
	newTemplate: func() client.Object { return &networkingv1beta1.WgGatewayServerTemplate{} },
	render: func(ctx context.Context, reader client.Reader, from client.ObjectKey, of gateway, data template.Data) (r rendered, wrong, err error) {
		found := &networkingv1beta1.WgGatewayServerTemplate{}
		if err := reader.Get(ctx, from, found); err != nil {
			return rendered{}, nil, err
		}
		object, wrong := template.Server(found, of.Object.(*networkingv1beta1.GatewayServer), data)
		if wrong != nil {
			return rendered{}, wrong, nil
		}
		return renderedServer(object), nil, nil
	},
}

var clientSide = side{
	gateway: "GatewayClient", rendered: "WgGatewayClient", resource: "gatewayclients",
	template: "WgGatewayClientTemplate", defaultTemplate: networkingv1beta1.ClientTemplate,
	newGateway:  func() gateway { return clientGateway(&networkingv1beta1.GatewayClient{}) },
	newRendered: func() rendered { return renderedClient(&networkingv1beta1.WgGatewayClient{}) },
	newList:     func() client.ObjectList { return &networkingv1beta1.GatewayClientList{} },
	newTemplate: func() client.Object { return &networkingv1beta1.WgGatewayClientTemplate{} },
	render: func(ctx context.Context, reader client.Reader, from client.ObjectKey, of gateway, data template.Data) (r rendered, wrong, err error) {
		found := &networkingv1beta1.WgGatewayClientTemplate{}
		if err := reader.Get(ctx, from, found); err != nil {
			return rendered{}, nil, err
		}
		object, wrong := template.Client(found, of.Object.(*networkingv1beta1.GatewayClient), data)
		if wrong != nil {
			return rendered{}, wrong, nil
		}
		return renderedClient(object), nil, nil
	},
}

// serves tells whether the peer comes here.
func (s side) serves() bool { return s.gateway == serverSide.gateway }

func serverGateway(o *networkingv1beta1.GatewayServer) gateway {
	return gateway{
		Object: o, templateRef: o.Spec.ServerTemplateRef, secretRef: o.Spec.SecretRef, renderedRef: &o.Status.ServerRef,
		status: status{&o.Status.SecretRef, &o.Status.Endpoint, &o.Status.InternalEndpoint, &o.Status.Conditions},
	}
}

func clientGateway(o *networkingv1beta1.GatewayClient) gateway {
	return gateway{
		Object: o, templateRef: o.Spec.ClientTemplateRef, secretRef: o.Spec.SecretRef, renderedRef: &o.Status.ClientRef,
		status: status{&o.Status.SecretRef, nil, &o.Status.InternalEndpoint, &o.Status.Conditions},
	}
}

func renderedServer(o *networkingv1beta1.WgGatewayServer) rendered {
	return rendered{
		Object: o, spec: &o.Spec, deployment: &o.Spec.Deployment, service: &o.Spec.Service,
		status: status{&o.Status.SecretRef, &o.Status.Endpoint, &o.Status.InternalEndpoint, &o.Status.Conditions},
	}
}

func renderedClient(o *networkingv1beta1.WgGatewayClient) rendered {
	return rendered{
		Object: o, spec: &o.Spec, deployment: &o.Spec.Deployment,
		status: status{&o.Status.SecretRef, nil, &o.Status.InternalEndpoint, &o.Status.Conditions},
	}
}

// viewGateway and viewRendered make the views of objects that are there already.
func viewGateway(o client.Object) gateway {
	if server, isServer := o.(*networkingv1beta1.GatewayServer); isServer {
		return serverGateway(server)
	}
	return clientGateway(o.(*networkingv1beta1.GatewayClient))
}

func viewRendered(o client.Object) rendered {
	if server, isServer := o.(*networkingv1beta1.WgGatewayServer); isServer {
		return renderedServer(server)
	}
	return renderedClient(o.(*networkingv1beta1.WgGatewayClient))
}
