package gateway

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/fabric/agent"
)

// owner is the field manager of what the agent writes.
const owner = "liqo-gateway"

// connections writes the gateway's Connection.
type connections struct {
	*agent.Writer[networkingv1beta1.Connection]
}

func newConnections(write func(context.Context, networkingv1beta1.Connection) error) connections {
	return connections{agent.NewWriter(isThere, write)}
}

// connectionOf is the Connection that a gateway is to have, without its status.
func connectionOf(o own, name, peer string) networkingv1beta1.Connection {
	controller := true
	return networkingv1beta1.Connection{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.meta.Namespace, Name: name,
			Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer, corev1beta1.ManagedLabel: "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: networkingv1beta1.GroupVersion.String(), Kind: o.kind, Name: o.meta.Name, UID: o.meta.UID, Controller: &controller,
			}},
		},
		Spec: networkingv1beta1.ConnectionSpec{Type: o.end, GatewayRef: o.rendered},
	}
}

// want says what is to be there, where something else is.
func (c connections) want(wanted networkingv1beta1.Connection, there *networkingv1beta1.Connection, now time.Time) {
	if there == nil || !isThere(wanted, *there) {
		c.Want(wanted, now)
	}
}

// isThere tells whether what is wanted of a Connection is there.
func isThere(wanted, there networkingv1beta1.Connection) bool {
	return sameConnection(wanted, there) && sameStatus(wanted.Status, there.Status)
}

// sameConnection tells whether what is wanted of a Connection, apart from its status, is there.
func sameConnection(wanted, there networkingv1beta1.Connection) bool {
	labelled := true
	for key, value := range wanted.Labels {
		labelled = labelled && there.Labels[key] == value
	}
	owned := func(ref metav1.OwnerReference) bool {
		return slices.ContainsFunc(there.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == ref.UID })
	}
	return labelled && wanted.Spec == there.Spec &&
		!slices.ContainsFunc(wanted.OwnerReferences, func(ref metav1.OwnerReference) bool { return !owned(ref) })
}

// write writes the gateway's Connection.
func (a *Agent) write(ctx context.Context, wanted networkingv1beta1.Connection) error {
	object := agent.Object{
		Resource: networkingv1beta1.GroupVersion.WithResource("connections"), Kind: "Connection", Namespace: wanted.Namespace, Name: wanted.Name,
	}
	metadata := map[string]any{"labels": wanted.Labels, "ownerReferences": wanted.OwnerReferences}
	if err := a.Cluster.Apply(ctx, owner, object, metadata, map[string]any{"spec": wanted.Spec}); err != nil {
		return err
	}
	status := map[string]any{"value": wanted.Status.Value, "mtu": wanted.Status.MTU, "conditions": wanted.Status.Conditions}
	if wanted.Status.Latency.Value != "" {
		status["latency"] = wanted.Status.Latency
	}
	if wanted.Status.Transit != nil {
		status["transit"] = wanted.Status.Transit
	}
	object.Part = "status"
	return a.Cluster.Apply(ctx, owner, object, nil, map[string]any{"status": status})
}
