package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

const (
	originUID    = corev1beta1.OriginUIDAnnotation
	fieldManager = "liqo-virtual-kubelet"
)

// createShadow makes a ShadowPod and returns its UID.
func createShadow(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod) (types.UID, error) {
	if c.User != "" {
		// The provider writes it down where it is missing, and refuses a wrong one: with it, admission is one step shorter.
		labelled := *shadow
		labelled.Labels = maps.Clone(shadow.Labels)
		metav1.SetMetaDataLabel(&labelled.ObjectMeta, offloadingv1beta1.CreatorUserLabel, capacity.UserLabel(c.User))
		shadow = &labelled
	}
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if c.REST != nil {
		return sendShadow(ctx, c.REST, shadow, options)
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shadow)
	if err != nil {
		return "", fmt.Errorf("encoding ShadowPod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	// The status belongs to the provider; its empty form would fail the validation.
	delete(raw, "status")
	made, err := c.Dynamic.Resource(shadowPods).Namespace(shadow.Namespace).Create(ctx, &unstructured.Unstructured{Object: raw}, options)
	if err != nil {
		return "", fmt.Errorf("creating ShadowPod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	return made.GetUID(), nil
}

// getShadow reads a ShadowPod from the provider, past the cache.
func getShadow(ctx context.Context, c peer.Clients, namespace, name string) (*offloadingv1beta1.ShadowPod, error) {
	raw, err := c.Dynamic.Resource(shadowPods).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading ShadowPod %s/%s: %w", namespace, name, err)
	}
	return typedShadow(raw), nil
}

// deleteShadow removes exactly this ShadowPod, and asks once only. One that is gone or was replaced is no error.
func (r *Reconciler) deleteShadow(ctx context.Context, v view) error {
	if v.shadow.DeletionTimestamp != nil {
		return nil // its end is an event
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	asked, ok := r.memory.removed[v.shadow.UID]
	if pending := ok && now.Sub(asked) < creationSeen; pending {
		r.mu.Unlock()
		return nil // its end is an event
	}
	r.memory.removed[v.shadow.UID] = now
	r.mu.Unlock()
	err := v.clients.Dynamic.Resource(shadowPods).Namespace(v.shadow.Namespace).Delete(ctx, v.shadow.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &v.shadow.UID},
	})
	if err == nil {
		return nil
	}
	r.removed(v.shadow)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting ShadowPod %s/%s: %w", v.shadow.Namespace, v.shadow.Name, err)
}

// removed forgets that the ShadowPod's deletion was asked for.
func (r *Reconciler) removed(shadow *offloadingv1beta1.ShadowPod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory.removed, shadow.UID)
	delete(r.memory.ending, shadow.UID)
}

// annotateShadow writes an annotation of exactly this ShadowPod.
func annotateShadow(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod, annotation, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": shadow.UID, "annotations": map[string]string{annotation: value}}})
	if err != nil {
		return fmt.Errorf("encoding annotation %s of ShadowPod %s/%s: %w", annotation, shadow.Namespace, shadow.Name, err)
	}
	_, err = c.Dynamic.Resource(shadowPods).Namespace(shadow.Namespace).Patch(ctx, shadow.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("writing annotation %s of ShadowPod %s/%s: %w", annotation, shadow.Namespace, shadow.Name, err)
	}
	return nil
}

// patchShadow makes the changes, on this version of the ShadowPod only.
func patchShadow(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod, changes []reflection.Change) error {
	patch := map[string]any{}
	set(patch, []string{"metadata", "uid"}, string(shadow.UID))
	set(patch, []string{"metadata", "resourceVersion"}, shadow.ResourceVersion)
	for _, change := range changes {
		set(patch, change.Path, change.Value)
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a change of ShadowPod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	_, err = c.Dynamic.Resource(shadowPods).Namespace(shadow.Namespace).Patch(ctx, shadow.Name, types.MergePatchType, data,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing ShadowPod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	return nil
}

// set puts a value at a path of nested maps.
func set(in map[string]any, path []string, value any) {
	for ; len(path) > 1; path = path[1:] {
		below, ok := in[path[0]].(map[string]any)
		if !ok {
			below = map[string]any{}
			in[path[0]] = below
		}
		in = below
	}
	in[path[0]] = value
}
