package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
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
	// Who took our rights back may have taken the twin, too, which says less.
	if state := r.options.Peer.State(); !state.Usable() && v.offload != notOffloaded {
		return api.Target{}, fmt.Errorf("pod %s/%s: %s: %w", namespace, name, state.Message, api.ErrNotConnected)
	}
	twin := v.namespace
	switch {
	case v.offload == unknown:
		return api.Target{}, fmt.Errorf("pod %s/%s: %w", namespace, name, api.ErrStandsBy)
	case twin == "":
		return api.Target{}, fmt.Errorf("pod %s/%s: its namespace is not offloaded: %w", namespace, name, api.ErrNotFound)
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
	if v.shadow != nil && standsFor(v.shadow, local) {
		target.RequestLogs = func(ctx context.Context) error { return requestLogs(ctx, v.clients, v.shadow) }
	}
	for i := range local.Spec.InitContainers {
		target.Containers = append(target.Containers, local.Spec.InitContainers[i].Name)
	}
	for i := range local.Spec.Containers {
		target.Containers = append(target.Containers, local.Spec.Containers[i].Name)
	}
	for i := range local.Spec.EphemeralContainers {
		target.Containers = append(target.Containers, local.Spec.EphemeralContainers[i].Name)
	}
	return target, nil
}

// requestLogs marks the ShadowPod as one whose pod's logs are wanted. It is written once in a ShadowPod's life.
func requestLogs(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod) error {
	if _, asked := shadow.Annotations[offloadingv1beta1.LogsRequestedAnnotation]; asked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": shadow.UID, "annotations": map[string]string{offloadingv1beta1.LogsRequestedAnnotation: "true"},
	}})
	if err != nil {
		return fmt.Errorf("encoding the request for logs of ShadowPod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	_, err = c.Dynamic.Resource(shadowPods).Namespace(shadow.Namespace).Patch(ctx, shadow.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("pod %s/%s is being removed: %w", shadow.Namespace, shadow.Name, api.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("requesting the logs of ShadowPod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	return nil
}
