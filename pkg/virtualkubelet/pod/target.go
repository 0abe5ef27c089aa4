package pod

import (
	"context"
	"errors"
	"fmt"

	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/api"
)

// Twin tells the kubelet endpoint where a local pod runs. It answers from memory.
func (r *Reconciler) Twin(_ context.Context, namespace, name, uid string) (api.Target, error) {
	local := r.local(key{Namespace: namespace, Name: name})
	if local == nil || uid != "" && uid != string(local.UID) {
		return api.Target{}, fmt.Errorf("pod %s/%s: %w", namespace, name, api.ErrNotFound)
	}
	v := r.look(key{Namespace: namespace, Name: name}, local.UID)
	twin := v.namespace
	if twin == "" {
		return api.Target{}, fmt.Errorf("pod %s/%s: its namespace is not offloaded: %w", namespace, name, api.ErrNotFound)
	}
	if state := r.options.Peer.State(); !state.Connected {
		return api.Target{}, fmt.Errorf("pod %s/%s: %s: %w", namespace, name, state.Message, api.ErrNotConnected)
	}
	if v.remote != nil && !standsFor(v.remote, local) {
		return api.Target{}, fmt.Errorf("pod %s/%s: an earlier pod of that name still runs: %w", namespace, name, api.ErrNotFound)
	}
	config, err := r.options.Peer.Config()
	if errors.Is(err, peer.ErrNotConnected) {
		return api.Target{}, fmt.Errorf("pod %s/%s: %w", namespace, name, api.ErrNotConnected)
	} else if err != nil {
		return api.Target{}, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	target := api.Target{Config: config, Namespace: twin, Pod: name}
	for i := range local.Spec.InitContainers {
		target.Containers = append(target.Containers, local.Spec.InitContainers[i].Name)
	}
	for i := range local.Spec.Containers {
		target.Containers = append(target.Containers, local.Spec.Containers[i].Name)
	}
	return target, nil
}
