package network

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// RequireNodePort is an unmet precondition if the cluster that has, or gets, the gateway server cannot give the node port of the settings; without
// one, that of the former gateway, if there is none now.
func RequireNodePort(ctx context.Context, pair *target.Pair, settings Settings) error {
	port := ptr.Deref(settings.NodePort, 0)
	if settings.NodePort != nil && port == 0 {
		return nil
	}
	r := newRun(pair, settings, true, progress.Discard)
	if port != 0 {
		if err := r.direction(ctx); err != nil {
			return err
		}
		return r.server.requireNodePort(ctx, port, "give another one, or leave it out and the cluster chooses one")
	}
	// Whoever may not read this is told while the gateway is made.
	if r.direction(ctx) != nil {
		return nil
	}
	if found, err := r.server.find(ctx, &networkingv1beta1.GatewayServer{}); found || err != nil {
		return nil
	}
	had, err := r.server.recall(ctx)
	if err != nil || had.Server == nil || had.Server.Endpoint.NodePort == 0 {
		return nil
	}
	return r.server.requireNodePort(ctx, had.Server.Endpoint.NodePort, "the former gateway had it: give another one, or --gw-server-service-nodeport 0")
}

// usualFirst and usualLast are the node ports of an API server that was given no others (--service-node-port-range).
const usualFirst, usualLast = 30000, 32767

// unmaking is how long a Service that was made for a try may take to be removed.
const unmaking = 10 * time.Second

// requireNodePort asks the API server, which alone knows its range of node ports, by a Service that is not made; for a port outside the usual
// range by one that is made and removed at once, because dry runs do not look at the range. A user who may make no Services gets no answer, and the
// gateway's own Service has its port already.
func (s side) requireNodePort(ctx context.Context, port int32, wayOut string) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.cluster.LiqoNamespace, GenerateName: "liqo-node-port-", Labels: map[string]string{corev1beta1.ManagedLabel: "true"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolUDP, Port: DefaultPort, NodePort: port}},
		},
	}
	err := s.cluster.Client.Create(ctx, service.DeepCopy(), client.DryRunAll)
	if err == nil && (port < usualFirst || port > usualLast) {
		if err = s.cluster.Client.Create(ctx, service); err == nil {
			return s.unmake(ctx, service)
		}
	}
	if !apierrors.IsInvalid(err) || s.hasNodePort(ctx, port) {
		return nil
	}
	return failure.Unmet(wayOut,
		"cluster %s cannot give node port %d: %s", s.cluster.Name, port, cause(err))
}

// unmake removes the Service that was made to see whether there is such a port, also when the command is interrupted: it has the port.
func (s side) unmake(ctx context.Context, service *corev1.Service) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmaking)
	defer cancel()
	if err := s.cluster.Remove(ctx, service); err != nil {
		return failure.Unmet(fmt.Sprintf("remove it: kubectl delete service --namespace %s %s", service.Namespace, service.Name),
			"a Service that was made to try the node port is left in cluster %s: %v", s.cluster.Name, err)
	}
	return nil
}

// hasNodePort tells whether the gateway server for the peer has that node port.
func (s side) hasNodePort(ctx context.Context, port int32) bool {
	server := &networkingv1beta1.GatewayServer{}
	if found, err := s.find(ctx, server); err != nil || !found {
		return false
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: networkingv1beta1.GatewayPrefix + server.Name}}
	found, err := s.cluster.Get(ctx, service)
	return err == nil && found && len(service.Spec.Ports) > 0 && service.Spec.Ports[0].NodePort == port
}

// cause is why an API server finds an object invalid, without the object's name.
func cause(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err.Error()
	}
	var messages []string
	for _, cause := range status.Status().Details.Causes {
		messages = append(messages, cause.Message)
	}
	if len(messages) == 0 {
		return err.Error()
	}
	return strings.Join(messages, "; ")
}
