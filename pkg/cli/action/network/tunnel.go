package network

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/progress"
)

// keyLength is the length of a key of WireGuard.
const keyLength = 32

// keys gives each side the public key of the other one.
func (r *run) keys(ctx context.Context) error {
	if r.settings.NoKeys {
		return nil
	}
	for _, ends := range [][2]side{{r.server, r.client}, {r.client, r.server}} {
		if err := r.trust(ctx, ends[0], ends[1]); err != nil {
			return err
		}
	}
	return nil
}

// trust gives a side the public key of the other one.
func (r *run) trust(ctx context.Context, to, of side) error {
	return progress.Run(ctx, r.observer, to.cluster.Name, "Taking over the public key of "+of.id, func(ctx context.Context, task progress.Task) (string, error) {
		var key []byte
		err := until(ctx, task, "the public key of cluster "+of.id, "look the reason up in docs/troubleshooting.md, and run the same command again",
			func(ctx context.Context) (bool, string, error) {
				var missing string
				var err error
				key, missing, err = r.keyOf(ctx, of)
				return err == nil && missing == "", missing, err
			})
		if err != nil {
			return "", err
		}
		object := &networkingv1beta1.PublicKey{}
		change, err := to.ensure(ctx, task, object, func() error {
			if !bytes.Equal(object.Spec.PublicKey, key) {
				object.Spec.PublicKey = key
			}
			return nil
		})
		r.note(change)
		return fmt.Sprintf("PublicKey %s %s", object.Name, change), err
	})
}

// gateway is what one side says of its end of the tunnel.
type gateway struct {
	found      bool
	generation int64
	conditions []metav1.Condition
	keys       *corev1.ObjectReference
}

// gatewayOf reads a side's end of the tunnel.
func (r *run) gatewayOf(ctx context.Context, s side) (gateway, error) {
	if s.id == r.server.id {
		object := &networkingv1beta1.GatewayServer{}
		found, err := s.find(ctx, object)
		return gateway{found, object.Generation, object.Status.Conditions, object.Status.SecretRef}, err
	}
	object := &networkingv1beta1.GatewayClient{}
	found, err := s.find(ctx, object)
	return gateway{found, object.Generation, object.Status.Conditions, object.Status.SecretRef}, err
}

// keyOf reads the public key of a side's gateway.
func (r *run) keyOf(ctx context.Context, s side) (key []byte, missing string, err error) {
	end, err := r.gatewayOf(ctx, s)
	if err != nil || end.keys == nil {
		return nil, "the gateway has no keys yet", err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: end.keys.Name}}
	found, err := s.cluster.Get(ctx, secret)
	switch {
	case err != nil || !found:
		return nil, fmt.Sprintf("there is no %s", s.cluster.Describe(secret)), err
	case len(secret.Data[networkingv1beta1.PublicKeyKey]) != keyLength:
		return nil, fmt.Sprintf("%s has no %d bytes under %s", s.cluster.Describe(secret), keyLength, networkingv1beta1.PublicKeyKey), nil
	default:
		return secret.Data[networkingv1beta1.PublicKeyKey], "", nil
	}
}

// connected waits until both gateways say that the tunnel is up, and each cluster that nothing is amiss with its gateway: what info shows.
func (r *run) connected(ctx context.Context) error {
	return progress.Run(ctx, r.observer, "", "Waiting for the tunnel", func(ctx context.Context, task progress.Task) (string, error) {
		next := fmt.Sprintf("see whether %s can be reached by UDP from the nodes of cluster %s, and what 'liqoctl network status' says in both clusters",
			r.report.Endpoint, r.client.id)
		err := until(ctx, task, "the networks of "+r.local.id+" and "+r.remote.id+" to be connected", next, func(ctx context.Context) (bool, string, error) {
			lost, err := r.down(ctx)
			if err == nil && lost == "" {
				lost, err = r.amiss(ctx)
			}
			return err == nil && lost == "", lost, err
		})
		r.report.Connected = err == nil
		return "The networks of " + r.local.id + " and " + r.remote.id + " are connected", err
	})
}

// amiss says what else of the network is not as it should be, although the tunnel is up: a gateway whose pod is not ready yet, and what a
// ForeignCluster says, which follows a moment later; nothing if all is well.
func (r *run) amiss(ctx context.Context) (string, error) {
	var waiting []string
	for _, s := range []side{r.server, r.client} {
		end, err := r.gatewayOf(ctx, s)
		if err != nil {
			return "", err
		}
		if !looked(end.conditions, end.generation) || !meta.IsStatusConditionTrue(end.conditions, corev1beta1.ConditionReady) {
			waiting = append(waiting, s.id+": its gateway: "+said(end.conditions, end.generation))
			continue
		}
		peer, err := s.cluster.ForeignCluster(ctx, s.peerID)
		if err != nil {
			return "", err
		}
		if peer == nil {
			continue
		}
		for _, c := range peer.Status.Modules.Networking.Conditions {
			// Nodes that do not come into the tunnel are asked afterwards, by a packet of each, and told of.
			if c.Status != corev1beta1.StatusEstablished && c.Status != corev1beta1.StatusReady && c.Reason != networkingv1beta1.ReasonOverlaySilent {
				waiting = append(waiting, fmt.Sprintf("%s: %s: %s", s.id, c.Reason, c.Message))
			}
		}
	}
	return strings.Join(waiting, "; "), nil
}

// down says which sides do not say that the tunnel is up, and what they wait for; nothing if it is up.
func (r *run) down(ctx context.Context) (string, error) {
	var waiting []string
	for _, end := range []struct {
		side side
		role string
	}{{r.server, "server"}, {r.client, "client"}} {
		lost, err := r.waitsFor(ctx, end.side)
		if err != nil {
			return "", err
		}
		if lost != "" {
			waiting = append(waiting, fmt.Sprintf("%s (%s): %s", end.side.id, end.role, lost))
		}
	}
	return strings.Join(waiting, "; "), nil
}

// waitsFor says what a side's end of the tunnel waits for; nothing if the tunnel is up.
func (r *run) waitsFor(ctx context.Context, s side) (string, error) {
	end, err := r.gatewayOf(ctx, s)
	if err != nil {
		return "", err
	}
	if !end.found {
		return "there is no gateway", nil
	}
	list := &networkingv1beta1.ConnectionList{}
	if err := s.cluster.List(ctx, list, s.ofPeer()...); err != nil {
		return "", err
	}
	if len(list.Items) == 0 {
		return "the gateway has not reported yet (" + said(end.conditions, end.generation) + ")", nil
	}
	for i := range list.Items {
		if list.Items[i].State() != networkingv1beta1.Connected {
			return Lost(&list.Items[i]), nil
		}
	}
	return "", nil
}

// Lost says why a tunnel is not up, or not as it should be; nothing if all is well.
func Lost(c *networkingv1beta1.Connection) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, corev1beta1.ConditionReady)
	words := []string{string(c.State())}
	switch {
	case ready != nil && ready.Status != metav1.ConditionTrue:
		words = append(words, ready.Reason, ready.Message)
	case c.Status.Value == networkingv1beta1.Connected:
		return ""
	}
	return strings.TrimSuffix(strings.Join(words, ": "), ": ")
}
