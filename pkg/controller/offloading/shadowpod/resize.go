package shadowpod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// In twin namespaces, bound there: pods/resize patch.

// resize gives the containers of the Pod what those of the ShadowPod ask for since that was changed, within its user's grant. What
// the grant or the provider's rules refuse is told by an Event, and tried again when there may be room: the Pod runs on as it is.
// What was asked for once is not asked for again, whatever the provider's admission or autoscaler made of it.
func (r *reconciler) resize(ctx context.Context, s *scope) error {
	if s.shadow.Generation <= 1 || Terminal(s.pod.Status.Phase) {
		return nil // what the provider's admission made of the first specification stays
	}
	now := asked(&s.shadow.Spec.Pod)
	// Pods of earlier versions do not say what was asked for: they are held to what is asked for now.
	before, known := s.pod.Annotations[offloadingv1beta1.ResourcesAskedAnnotation]
	changed := s.pod.DeepCopy()
	if before != now {
		resized(changed.Spec.Containers, s.shadow.Spec.Pod.Containers)
		resized(changed.Spec.InitContainers, s.shadow.Spec.Pod.InitContainers)
	}
	if equality.Semantic.DeepEqual(s.pod.Spec, changed.Spec) {
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
		err = supported(r.SubResource("resize").Patch(ctx, changed, client.StrategicMergeFrom(s.pod, client.MergeFromWithOptimisticLock{})))
	}
	switch class := reconcile.Classify(err); {
	case err == nil:
		return r.remember(ctx, changed, now)
	case class == reconcile.Refused || class == reconcile.Terminal:
		s.decision.After = reconcile.RefusedRetry
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonResizeFailed, "Resize", "%s", conditions.Bound(err.Error()))
		return r.settle(ctx, s, false)
	case client.IgnoreNotFound(err) == nil:
		return nil
	default:
		return fmt.Errorf("resizing Pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
}

// supported tells an API server that has no resize of pods (Kubernetes before 1.33) from one that does not have the Pod: the first
// does not answer in words of Kubernetes.
func supported(err error) error {
	if apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return reconcile.Refuse(offloadingv1beta1.ReasonResizeFailed, errors.New("the provider's Kubernetes cannot resize pods in place"))
	}
	return err
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
