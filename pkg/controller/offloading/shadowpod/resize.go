package shadowpod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// In twin namespaces, bound there: pods/resize patch.

// resize gives the containers of the Pod what those of the ShadowPod ask for since it was changed, within its user's grant. What
// the grant or the provider's rules refuse is told by an Event, and tried again when there may be room: the Pod runs on as it is.
func (r *reconciler) resize(ctx context.Context, s *scope) error {
	if s.shadow.Generation <= 1 || Terminal(s.pod.Status.Phase) {
		return nil // what the provider's admission made of the first specification stays
	}
	changed := s.pod.DeepCopy()
	resized(changed.Spec.Containers, s.shadow.Spec.Pod.Containers)
	resized(changed.Spec.InitContainers, s.shadow.Spec.Pod.InitContainers)
	if equality.Semantic.DeepEqual(s.pod.Spec, changed.Spec) {
		return r.settle(ctx, s)
	}
	if problems := r.Check(&s.shadow.Spec.Pod); len(problems) > 0 {
		return nil // admission said so already
	}
	err := r.claim(ctx, s.shadow, s.pod)
	if err == nil {
		err = r.SubResource("resize").Patch(ctx, changed, client.StrategicMergeFrom(s.pod, client.MergeFromWithOptimisticLock{}))
	}
	if class := reconcile.Classify(err); class == reconcile.Refused || class == reconcile.Terminal {
		s.decision.After = reconcile.RefusedRetry
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonResizeFailed, "Resize", "%s", conditions.Bound(err.Error()))
		return r.settle(ctx, s)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("resizing Pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
	return nil
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
