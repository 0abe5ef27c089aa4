package gateway

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/fabric/agent"
)

const (
	// owner is the field manager of what the agent writes.
	owner = "liqo-gateway"
	// writing is how long a write may take, and after how long one is made again that did not show.
	writing = 5 * time.Second
)

// connections writes the gateway's Connection, while others work.
type connections struct {
	cluster *agent.Cluster
	// wanted is what is to be there; written is what was, by the same goroutine that says so, and when.
	wanted  chan networkingv1beta1.Connection
	written networkingv1beta1.Connection
	when    time.Time
}

func newConnections(c *agent.Cluster) *connections {
	return &connections{cluster: c, wanted: make(chan networkingv1beta1.Connection, 1)}
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
func (c *connections) want(wanted networkingv1beta1.Connection, there *networkingv1beta1.Connection, now time.Time) {
	if there != nil && sameConnection(wanted, *there) && sameStatus(wanted.Status, there.Status) {
		return
	}
	// What was written a moment ago may not be seen yet.
	if sameConnection(wanted, c.written) && sameStatus(wanted.Status, c.written.Status) && now.Sub(c.when) < writing {
		return
	}
	c.written, c.when = wanted, now
	select {
	case <-c.wanted:
	default:
	}
	c.wanted <- wanted
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

// run writes until the context ends.
func (c *connections) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case wanted := <-c.wanted:
			if err := c.write(ctx, wanted); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Telling how the tunnel is")
			}
		}
	}
}

func (c *connections) write(ctx context.Context, wanted networkingv1beta1.Connection) error {
	ctx, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	object := agent.Object{
		Resource: networkingv1beta1.GroupVersion.WithResource("connections"), Kind: "Connection", Namespace: wanted.Namespace, Name: wanted.Name,
	}
	metadata := map[string]any{"labels": wanted.Labels, "ownerReferences": wanted.OwnerReferences}
	if err := c.cluster.Apply(ctx, owner, object, metadata, map[string]any{"spec": wanted.Spec}); err != nil {
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
	return c.cluster.Apply(ctx, owner, object, nil, map[string]any{"status": status})
}
