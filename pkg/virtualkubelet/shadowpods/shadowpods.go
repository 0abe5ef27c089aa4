// Package shadowpods makes, reads, changes and removes ShadowPods at a provider, and holds what is read of them.
package shadowpods

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/packed"
	"liqo.io/liqo/pkg/kube/writers"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

// Resource is that of ShadowPods.
var Resource = offloadingv1beta1.GroupVersion.WithResource("shadowpods")

// fieldManager owns what is written here.
const fieldManager = "liqo-virtual-kubelet"

// In are the ShadowPods of a namespace of the provider.
func In(c peer.Clients, namespace string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(Resource).Namespace(namespace)
}

// Create makes a ShadowPod and returns its UID.
func Create(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod) (types.UID, error) {
	if c.User != "" {
		// The provider writes it down where it is missing, and refuses a wrong one: with it, admission is one step shorter.
		labelled := *shadow
		labelled.Labels = maps.Clone(shadow.Labels)
		metav1.SetMetaDataLabel(&labelled.ObjectMeta, offloadingv1beta1.CreatorUserLabel, capacity.UserLabel(c.User))
		shadow = &labelled
	}
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if c.REST != nil {
		return send(ctx, c.REST, shadow, options)
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shadow)
	if err != nil {
		return "", failed("encoding", shadow, err)
	}
	// The status belongs to the provider; its empty form would fail the validation.
	delete(raw, "status")
	made, err := In(c, shadow.Namespace).Create(ctx, &unstructured.Unstructured{Object: raw}, options)
	if err != nil {
		return "", failed("creating", shadow, err)
	}
	return made.GetUID(), nil
}

// Get reads a ShadowPod, past all caches.
func Get(ctx context.Context, c peer.Clients, namespace, name string) (*offloadingv1beta1.ShadowPod, error) {
	raw, err := In(c, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading ShadowPod %s/%s: %w", namespace, name, err)
	}
	return Typed(raw), nil
}

// Delete removes exactly this ShadowPod. One that is gone or was replaced is no error; gone tells that there is nothing to wait for.
func Delete(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod) (gone bool, err error) {
	err = In(c, shadow.Namespace).Delete(ctx, shadow.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &shadow.UID}})
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return true, nil
	default:
		return true, failed("deleting", shadow, err)
	}
}

// Annotate writes an annotation of exactly this ShadowPod.
func Annotate(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod, annotation, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": shadow.UID, "annotations": map[string]string{annotation: value}}})
	if err == nil {
		_, err = In(c, shadow.Namespace).Patch(ctx, shadow.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return failed("writing annotation "+annotation+" of", shadow, err)
	}
	return nil
}

// Change makes changes to this version of the ShadowPod only. That it is gone is no error.
func Change(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod, changes []reflection.Change) error {
	patch, err := reflection.MergePatch(shadow, changes)
	if err == nil {
		_, err = In(c, shadow.Namespace).Patch(ctx, shadow.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return failed("changing", shadow, err)
	}
	return nil
}

// Writer is who wrote a field of this ShadowPod last, other than us; empty if that is not known.
func Writer(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod, field []string) string {
	raw, err := In(c, shadow.Namespace).Get(ctx, shadow.Name, metav1.GetOptions{})
	if err != nil || raw.GetUID() != shadow.UID {
		return ""
	}
	return writers.Last(raw.GetManagedFields(), field, fieldManager)
}

// failed says what was being done.
func failed(doing string, shadow *offloadingv1beta1.ShadowPod, err error) error {
	return fmt.Errorf("%s ShadowPod %s/%s: %w", doing, shadow.Namespace, shadow.Name, err)
}

// Watch returns how the ShadowPods of a namespace are watched, and what the watch sends.
func Watch(c peer.Clients, namespace string) (example runtime.Object, follow func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	if c.REST == nil {
		return &unstructured.Unstructured{}, In(c, namespace).Watch
	}
	return &offloadingv1beta1.ShadowPod{}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return stream(ctx, c.REST, namespace, o)
	}
}

// Typed turns what the dynamic client read into a ShadowPod. What does not fit becomes an empty one of that name,
// which is never taken for ours.
func Typed(raw *unstructured.Unstructured) *offloadingv1beta1.ShadowPod {
	shadow := &offloadingv1beta1.ShadowPod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, shadow); err != nil {
		return &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{
			Name: raw.GetName(), Namespace: raw.GetNamespace(), UID: raw.GetUID(), ResourceVersion: raw.GetResourceVersion(),
		}}
	}
	shadow.ManagedFields = nil
	return shadow
}

// Hold keeps of what was read what somebody reads of a ShadowPod, in the form of a pod.
func Hold(object any) (*packed.Pod, bool) {
	shadow, ok := object.(*offloadingv1beta1.ShadowPod)
	if raw, is := object.(*unstructured.Unstructured); is {
		shadow, ok = Typed(raw), true
	}
	if !ok {
		return nil, false
	}
	reflection.SlimShadowPod(shadow)
	held, err := Pack(shadow)
	return held, err == nil
}

// Pack holds a ShadowPod in the form of a pod.
func Pack(shadow *offloadingv1beta1.ShadowPod) (*packed.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: shadow.ObjectMeta, Spec: shadow.Spec.Pod, Status: corev1.PodStatus{
		Phase: shadow.Status.Phase, ContainerStatuses: shadow.Status.ContainerStatuses}}
	for _, c := range shadow.Status.Conditions {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(c.Type), Status: corev1.ConditionStatus(c.Status),
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	return packed.Pack(pod)
}

// Of returns the ShadowPod that is held so, nothing of which may be changed; nil if there is none.
func Of(held *packed.Pod) *offloadingv1beta1.ShadowPod {
	pod := held.Unpack()
	if pod == nil {
		return nil
	}
	shadow := &offloadingv1beta1.ShadowPod{ObjectMeta: pod.ObjectMeta, Spec: offloadingv1beta1.ShadowPodSpec{Pod: pod.Spec},
		Status: offloadingv1beta1.ShadowPodStatus{Phase: pod.Status.Phase, ContainerStatuses: pod.Status.ContainerStatuses}}
	for _, c := range pod.Status.Conditions {
		shadow.Status.Conditions = append(shadow.Status.Conditions, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status),
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	return shadow
}
