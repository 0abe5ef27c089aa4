package shadowpod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// In twin namespaces, bound there: pods/resize patch.

// resize gives the containers of the Pod what those of the ShadowPod ask for since that was changed, within its user's grant. What
// the grant or the provider's rules refuse is told, and tried again when there may be room: the Pod runs on as it is.
// What was asked for once is not asked for again, whatever the provider's admission or autoscaler made of it.
func (r *reconciler) resize(ctx context.Context, s *scope) error {
	if s.shadow.Generation <= 1 || Terminal(s.pod.Status.Phase) {
		return nil // what the provider's admission made of the first specification stays
	}
	now := reflection.ResourcesAsked(&s.shadow.Spec.Pod)
	// Pods of earlier versions do not say what was asked for: they are held to what is asked for now.
	before, known := s.pod.Annotations[offloadingv1beta1.ResourcesAskedAnnotation]
	changed := s.pod.DeepCopy()
	if before != now {
		resized(changed.Spec.Containers, s.shadow.Spec.Pod.Containers)
		resized(changed.Spec.InitContainers, s.shadow.Spec.Pod.InitContainers)
		together(&changed.Spec, s.shadow.Spec.Pod.Resources)
	}
	if equality.Semantic.DeepEqual(s.pod.Spec, changed.Spec) {
		s.sizeVerdict(nil)
		if err := r.settle(ctx, s, true); err != nil {
			return err
		}
		if known && before != now {
			return r.remember(ctx, s.pod, now)
		}
		return nil
	}
	if problems := r.Check(&s.shadow.Spec.Pod); len(problems) > 0 {
		return nil // admission said so already
	}
	err := r.claim(ctx, s.shadow, s.pod)
	if err == nil {
		err = r.patchSize(ctx, s.pod, changed)
	}
	switch class := reconcile.Classify(err); {
	case err == nil:
		s.sizeVerdict(nil)
		return r.remember(ctx, changed, now)
	case class == reconcile.Refused || class == reconcile.Terminal:
		s.again(reconcile.RefusedRetry)
		s.sizeVerdict(err)
		return r.settle(ctx, s, false)
	case client.IgnoreNotFound(err) == nil:
		return nil
	default:
		return fmt.Errorf("resizing Pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
}

// patchSize resizes a Pod; changed becomes what the API server made of it. One that does not resize what a pod has as a whole
// (Kubernetes before 1.36) may drop that without a word.
func (r *reconciler) patchSize(ctx context.Context, pod, changed *corev1.Pod) error {
	wanted := changed.Spec.Resources.DeepCopy()
	err := supported(r.SubResource("resize").Patch(ctx, changed, client.StrategicMergeFrom(pod, client.MergeFromWithOptimisticLock{})))
	if err != nil || wanted == nil {
		return err
	}
	got := ptr.Deref(changed.Spec.Resources, corev1.ResourceRequirements{})
	if lacksAny(got.Requests, wanted.Requests) || lacksAny(got.Limits, wanted.Limits) {
		return reconcile.Refuse(offloadingv1beta1.ReasonResizeFailed,
			errors.New("the provider's Kubernetes cannot resize in place what a pod has as a whole (spec.resources)"))
	}
	return nil
}

// lacksAny tells whether one list has no amount at all of something that another one has. What the amounts are is the provider's
// admission's matter.
func lacksAny(list, wanted corev1.ResourceList) bool {
	for name := range wanted {
		if _, there := list[name]; !there {
			return true
		}
	}
	return false
}

// supported tells an API server that has no resize of pods (Kubernetes before 1.33) from one that does not have the Pod: the first
// does not answer in words of Kubernetes.
func supported(err error) error {
	if apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return reconcile.Refuse(offloadingv1beta1.ReasonResizeFailed, errors.New("the provider's Kubernetes cannot resize pods in place"))
	}
	return err
}

// together brings the amounts of cpu and memory that a specification asks for as a whole into a Pod.
func together(pod *corev1.PodSpec, wants *corev1.ResourceRequirements) {
	if wants == nil {
		return
	}
	has := ptr.Deref(pod.Resources, corev1.ResourceRequirements{})
	overlay(&has.Requests, wants.Requests)
	overlay(&has.Limits, wants.Limits)
	if len(has.Requests)+len(has.Limits) > 0 {
		pod.Resources = &has
	}
}

// resized brings the amounts of cpu and memory that one list of containers asks for into another. What only the Pod has belongs
// to the provider.
func resized(pod, shadow []corev1.Container) {
	for i := range pod {
		for j := range shadow {
			if pod[i].Name == shadow[j].Name {
				overlay(&pod[i].Resources.Requests, shadow[j].Resources.Requests)
				overlay(&pod[i].Resources.Limits, shadow[j].Resources.Limits)
			}
		}
	}
}

func overlay(has *corev1.ResourceList, wants corev1.ResourceList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if want, asked := wants[name]; asked {
			if *has == nil {
				*has = corev1.ResourceList{}
			}
			(*has)[name] = want.DeepCopy()
		}
	}
}

// remember writes on a Pod what was asked for it last, so that what the provider makes of it afterwards stays. A write of its
// own: the API server takes no annotations from a resize.
func (r *reconciler) remember(ctx context.Context, pod *corev1.Pod, digest string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{offloadingv1beta1.ResourcesAskedAnnotation: digest},
	}})
	if err != nil {
		return fmt.Errorf("encoding what Pod %s/%s was resized to: %w", pod.Namespace, pod.Name, err)
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := r.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting what Pod %s/%s was resized to: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
