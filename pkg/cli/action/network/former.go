package network

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// former is the gateway to a peer that a cluster had last. It names no keys: the next gateway has new ones.
type former struct {
	Server *networkingv1beta1.GatewayServerSpec `json:"server,omitempty"`
	Client *networkingv1beta1.GatewayClientSpec `json:"client,omitempty"`
}

// remember notes the gateway to the peer on the peer's Configuration, which outlives it.
func (s side) remember(ctx context.Context) error {
	had, server, dialer := former{}, &networkingv1beta1.GatewayServer{}, &networkingv1beta1.GatewayClient{}
	if found, err := s.find(ctx, server); err != nil {
		return err
	} else if found {
		server.Spec.SecretRef = corev1.LocalObjectReference{}
		had.Server = &server.Spec
	}
	if found, err := s.find(ctx, dialer); err != nil {
		return err
	} else if found {
		dialer.Spec.SecretRef = corev1.LocalObjectReference{}
		// The next server may be elsewhere.
		dialer.Spec.Endpoint = networkingv1beta1.ClientEndpoint{}
		had.Client = &dialer.Spec
	}
	configuration := &networkingv1beta1.Configuration{}
	found, err := s.find(ctx, configuration)
	if err != nil || !found || had == (former{}) {
		return err
	}
	note, err := json.Marshal(had)
	if err != nil || configuration.Annotations[networkingv1beta1.FormerGatewayAnnotation] == string(note) {
		return err
	}
	changed := configuration.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, networkingv1beta1.FormerGatewayAnnotation, string(note))
	if err := s.cluster.Client.Patch(ctx, changed, client.MergeFrom(configuration)); err != nil {
		return fmt.Errorf("changing %s: %w", s.cluster.Describe(configuration), err)
	}
	return nil
}

// recall reads what remember noted. What cannot be read is as if nothing had been noted.
func (s side) recall(ctx context.Context) (former, error) {
	had, configuration := former{}, &networkingv1beta1.Configuration{}
	if _, err := s.find(ctx, configuration); err != nil {
		return former{}, err
	}
	if json.Unmarshal([]byte(configuration.Annotations[networkingv1beta1.FormerGatewayAnnotation]), &had) != nil {
		return former{}, nil
	}
	return had, nil
}
