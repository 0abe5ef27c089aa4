package network

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

// gateways makes the two ends of the tunnel.
func (r *run) gateways(ctx context.Context) error {
	if err := r.direction(ctx); err != nil {
		return err
	}
	r.report.Server, r.report.Client = r.server.id, r.client.id
	endpoint, err := r.serve(ctx)
	if err != nil {
		return err
	}
	return r.dial(ctx, endpoint)
}

// direction finds out which side has the server: as it is already, or else as the settings say.
func (r *run) direction(ctx context.Context) error {
	r.client, r.server = r.local, r.remote
	if r.settings.ServerHere {
		r.client, r.server = r.server, r.client
	}
	reverse, err := r.client.hasAny(ctx, &networkingv1beta1.GatewayServerList{})
	if err == nil && !reverse {
		reverse, err = r.server.hasAny(ctx, &networkingv1beta1.GatewayClientList{})
	}
	if err != nil {
		return err
	}
	if reverse {
		r.client, r.server = r.server, r.client
		r.observer.Note(progress.Info, "", fmt.Sprintf("the gateway server is in %s already, and stays there", r.server.id))
	}
	lost, err := r.down(ctx)
	r.up = err == nil && lost == ""
	return err
}

// hasAny tells whether there is an object for the peer that is to stay.
func (s side) hasAny(ctx context.Context, list client.ObjectList) (bool, error) {
	if err := s.cluster.List(ctx, list, s.ofPeer()...); err != nil {
		return false, err
	}
	switch typed := list.(type) {
	case *networkingv1beta1.GatewayServerList:
		return slices.ContainsFunc(typed.Items, func(g networkingv1beta1.GatewayServer) bool { return g.DeletionTimestamp.IsZero() }), nil
	case *networkingv1beta1.GatewayClientList:
		return slices.ContainsFunc(typed.Items, func(g networkingv1beta1.GatewayClient) bool { return g.DeletionTimestamp.IsZero() }), nil
	default:
		return false, nil
	}
}

// serve makes the gateway server, and waits until it can be reached.
func (r *run) serve(ctx context.Context) (*networkingv1beta1.EndpointStatus, error) {
	s := r.server
	object := &networkingv1beta1.GatewayServer{}
	err := progress.Run(ctx, r.observer, s.cluster.Name, "Making a gateway server for "+s.peerID, func(ctx context.Context, task progress.Task) (string, error) {
		change, err := s.ensure(ctx, task, object, func() error {
			if object.GetResourceVersion() == "" {
				had, err := s.recall(ctx)
				if err != nil {
					return err
				}
				object.Spec = ptr.Deref(had.Server, networkingv1beta1.GatewayServerSpec{
					Endpoint: networkingv1beta1.Endpoint{Port: networkingv1beta1.Port(DefaultPort), ServiceType: DefaultServiceType},
				})
			}
			r.settings.serve(&object.Spec, s.cluster.LiqoNamespace)
			return r.requireTemplate(ctx, s, &object.Spec.ServerTemplateRef, &networkingv1beta1.WgGatewayServerTemplate{})
		})
		r.note(change)
		if err != nil {
			return "", err
		}
		judge, hint := &judge{object: s.cluster.Describe(object)}, r.hint(ctx, s, object.Spec.Endpoint.ServiceType)
		err = until(ctx, task, s.cluster.Describe(object)+" to have an address", exposing(object.Spec.Endpoint.ServiceType),
			func(ctx context.Context) (bool, string, error) {
				if found, err := s.cluster.Get(ctx, object); err != nil || !found {
					return false, "it is gone", err
				}
				missing, err := judge.look(object.Status.Conditions, object.Generation)
				missing, _, _ = strings.Cut(missing, "; "+networkingv1beta1.NoLoadBalancers) // exposing says it
				there := reachable(&object.Status, object.Generation)
				if !there {
					hint()
				}
				return there, missing, err
			})
		return "Gateway server " + object.Name + " is at " + address(object.Status.Endpoint), err
	})
	return object.Status.Endpoint, err
}

// addressPatience is how long a load balancer may take before the way out is told. Those of clouds take minutes, so that the waiting goes on.
const addressPatience = 20 * time.Second

// hint tells once, after a while, what to give where there are no load balancers: after half of the time, if there is less.
func (r *run) hint(ctx context.Context, s side, service corev1.ServiceType) func() {
	patience, since, told := addressPatience, time.Now(), service != corev1.ServiceTypeLoadBalancer
	if end, bounded := ctx.Deadline(); bounded {
		patience = min(patience, time.Until(end)/2)
	}
	return func() {
		if told || time.Since(since) < patience {
			return
		}
		told = true
		r.observer.Note(progress.Warning, s.cluster.Name, "the load balancer of the gateway server has no address yet; if the cluster has no load balancers, "+
			"interrupt this and run it again with --gw-server-service-type NodePort")
	}
}

// reachable tells whether it is known where a gateway server is, exposed as it is wanted now. An endpoint of before stays until there is
// another one.
func reachable(status *networkingv1beta1.GatewayServerStatus, generation int64) bool {
	if !looked(status.Conditions, generation) || status.SecretRef == nil || status.Endpoint == nil || len(status.Endpoint.Addresses) == 0 {
		return false
	}
	ready := meta.FindStatusCondition(status.Conditions, corev1beta1.ConditionReady)
	return ready.Status == metav1.ConditionTrue || ready.Reason == networkingv1beta1.ReasonGatewayPodPending
}

// exposing is the way out where a gateway server has no address.
func exposing(service corev1.ServiceType) string {
	if service == corev1.ServiceTypeLoadBalancer {
		return "if the cluster has no load balancers, add --gw-server-service-type NodePort"
	}
	return "look the reason up in docs/troubleshooting.md, and run the same command again"
}

// serve fills in how the gateway server is exposed: what is wanted, else what is there.
func (s *Settings) serve(spec *networkingv1beta1.GatewayServerSpec, liqoNamespace string) {
	endpoint := &spec.Endpoint
	endpoint.ServiceType = cmp.Or(s.ServiceType, endpoint.ServiceType)
	endpoint.Port = cmp.Or(networkingv1beta1.Port(s.Port), endpoint.Port)
	endpoint.NodePort = ptr.Deref(s.NodePort, endpoint.NodePort)
	if s.LoadBalancerIP != nil {
		endpoint.LoadBalancerIP = ptr.To(networkingv1beta1.IP(*s.LoadBalancerIP))
	}
	// What only other types of Services have would be refused.
	if endpoint.ServiceType != corev1.ServiceTypeLoadBalancer || ptr.Deref(endpoint.LoadBalancerIP, "") == "" {
		endpoint.LoadBalancerIP = nil
	}
	if endpoint.ServiceType == corev1.ServiceTypeClusterIP {
		endpoint.NodePort = 0
	}
	spec.MTU = networkingv1beta1.MTU(ptr.Deref(s.MTU, int32(spec.MTU)))
	s.template(&spec.ServerTemplateRef, s.ServerTemplate, "WgGatewayServerTemplate",
		types.NamespacedName{Namespace: liqoNamespace, Name: networkingv1beta1.ServerTemplate})
}

// template fills in the template that a gateway is rendered from: the wanted one, else that which is there, else the default.
func (s *Settings) template(ref *corev1.ObjectReference, wanted types.NamespacedName, kind string, otherwise types.NamespacedName) {
	if wanted.Name != "" {
		wanted.Namespace = cmp.Or(wanted.Namespace, otherwise.Namespace)
	}
	ref.Name = cmp.Or(wanted.Name, ref.Name, otherwise.Name)
	ref.Namespace = cmp.Or(wanted.Namespace, ref.Namespace, otherwise.Namespace)
	ref.Kind, ref.APIVersion = cmp.Or(ref.Kind, kind), cmp.Or(ref.APIVersion, networkingv1beta1.GroupVersion.String())
}

// requireTemplate refuses a template that is not there.
func (r *run) requireTemplate(ctx context.Context, s side, ref *corev1.ObjectReference, template client.Object) error {
	if r.unchecked {
		return nil
	}
	template.SetNamespace(ref.Namespace)
	template.SetName(ref.Name)
	found, err := s.cluster.Get(ctx, template)
	if err != nil || found {
		return err
	}
	return failure.Unmet("name one that is there by the --gw- flags, or bring back that of the chart: "+s.cluster.Command("liqoctl install"),
		"there is no template %s", s.cluster.Describe(template))
}

// dial makes the gateway client.
func (r *run) dial(ctx context.Context, server *networkingv1beta1.EndpointStatus) error {
	s := r.client
	object := &networkingv1beta1.GatewayClient{}
	return progress.Run(ctx, r.observer, s.cluster.Name, "Making a gateway client for "+s.peerID, func(ctx context.Context, task progress.Task) (string, error) {
		change, err := s.ensure(ctx, task, object, func() error {
			if object.GetResourceVersion() == "" {
				had, err := s.recall(ctx)
				if err != nil {
					return err
				}
				object.Spec = ptr.Deref(had.Client, networkingv1beta1.GatewayClientSpec{})
			}
			r.settings.dial(&object.Spec, server, r.up, s.cluster.LiqoNamespace)
			return r.requireTemplate(ctx, s, &object.Spec.ClientTemplateRef, &networkingv1beta1.WgGatewayClientTemplate{})
		})
		r.note(change)
		if err != nil {
			return "", err
		}
		judge := &judge{object: s.cluster.Describe(object)}
		endpoint := &networkingv1beta1.EndpointStatus{Addresses: object.Spec.Endpoint.Addresses, Port: object.Spec.Endpoint.Port}
		r.report.Endpoint = address(endpoint)
		return "Gateway client " + object.Name + " goes to " + r.report.Endpoint, until(ctx, task, s.cluster.Describe(object)+" to have keys",
			"look the reason up in docs/troubleshooting.md, and run the same command again", func(ctx context.Context) (bool, string, error) {
				if found, err := s.cluster.Get(ctx, object); err != nil || !found {
					return false, "it is gone", err
				}
				if object.Status.SecretRef != nil {
					return true, "", nil
				}
				missing, err := judge.look(object.Status.Conditions, object.Generation)
				return false, missing, err
			})
	})
}

// dial fills in where the gateway client goes: where the settings say, else where the server is. The endpoint of a tunnel that is up stays,
// but for what is taken back.
func (s *Settings) dial(spec *networkingv1beta1.GatewayClientSpec, server *networkingv1beta1.EndpointStatus, up bool, liqoNamespace string) {
	endpoint := &spec.Endpoint
	if !up || len(endpoint.Addresses) == 0 {
		*endpoint = networkingv1beta1.ClientEndpoint{
			Addresses: server.Addresses, Port: server.Port, Protocol: cmp.Or(server.Protocol, corev1.ProtocolUDP),
		}
	}
	switch address := s.ClientAddress; {
	case address == nil:
	case *address == "":
		endpoint.Addresses = server.Addresses
	default:
		endpoint.Addresses = []networkingv1beta1.Host{networkingv1beta1.Host(*address)}
	}
	if s.ClientPort != nil {
		endpoint.Port = cmp.Or(networkingv1beta1.Port(*s.ClientPort), server.Port)
	}
	spec.MTU = networkingv1beta1.MTU(ptr.Deref(s.MTU, int32(spec.MTU)))
	s.template(&spec.ClientTemplateRef, s.ClientTemplate, "WgGatewayClientTemplate",
		types.NamespacedName{Namespace: liqoNamespace, Name: networkingv1beta1.ClientTemplate})
}

// address is an endpoint in a word, by its first address.
func address(endpoint *networkingv1beta1.EndpointStatus) string {
	if endpoint == nil || len(endpoint.Addresses) == 0 {
		return ""
	}
	return net.JoinHostPort(string(endpoint.Addresses[0]), strconv.Itoa(int(endpoint.Port)))
}
