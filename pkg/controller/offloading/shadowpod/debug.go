package shadowpod

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// In twin namespaces, bound there: pods/ephemeralcontainers patch.

// debugRefusals is how many ephemeral containers may be refused in one pass, so that what one consumer asks for in vain does not
// keep the others waiting.
const debugRefusals = 3

// debug gives the Pod the ephemeral containers that the ShadowPod got since, one by one: what the provider's rules refuse is told,
// is not tried again until something changes, and keeps no newer one away. The pod itself is in order.
func (r *reconciler) debug(ctx context.Context, s *scope) error {
	lacking := lacks(s.pod, s.shadow)
	if len(lacking) == 0 {
		s.changeVerdict(nil)
		return nil
	}
	if len(r.Check(&s.shadow.Spec.Pod)) > 0 {
		return nil // admission said so already
	}
	var refused []string
	// The newest one is what somebody waits for; those before it had their turn when they were new.
	for _, wanted := range slices.Backward(lacking) {
		if len(refused) == debugRefusals {
			break
		}
		if refusal, err := r.whyNotNamed(ctx, s, &wanted); err != nil {
			return err
		} else if refusal != nil {
			refused = append(refused, fmt.Sprintf("ephemeral container %s: %v", wanted.Name, refusal))
			continue
		}
		err := add(ctx, r.Client, s, wanted)
		switch {
		case err == nil:
		case reconcile.Classify(err) == reconcile.Refused:
			refused = append(refused, fmt.Sprintf("ephemeral container %s: %v", wanted.Name, err))
		case apierrors.IsNotFound(err):
			return nil
		default:
			return fmt.Errorf("adding ephemeral container %s to Pod %s/%s: %w", wanted.Name, s.pod.Namespace, s.pod.Name, err)
		}
	}
	s.changeVerdict(refused)
	return nil
}

// add gives the Pod an ephemeral container more. Streams go to containers that the Pod's annotation names: this one is named before it is there,
// and only once it would be let in. One of the same name that an administrator of the provider added is never named.
func add(ctx context.Context, c client.Client, s *scope, wanted corev1.EphemeralContainer) error {
	with := func(options ...client.SubResourcePatchOption) (*corev1.Pod, error) {
		changed := s.pod.DeepCopy()
		changed.Spec.EphemeralContainers = append(changed.Spec.EphemeralContainers, wanted)
		patch := client.StrategicMergeFrom(s.pod, client.MergeFromWithOptimisticLock{})
		return changed, c.SubResource("ephemeralcontainers").Patch(ctx, changed, patch, options...)
	}
	names, known := s.pod.Annotations[offloadingv1beta1.ContainersAnnotation]
	if known && !slices.Contains(strings.Split(names, ","), wanted.Name) {
		if _, err := with(client.DryRunAll); err != nil {
			return err
		}
		named := s.pod.DeepCopy()
		named.Annotations[offloadingv1beta1.ContainersAnnotation] = names + "," + wanted.Name
		if err := c.Patch(ctx, named, client.MergeFromWithOptions(s.pod, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		s.pod = named
	}
	changed, err := with()
	if err == nil {
		s.pod = changed
	}
	return err
}

// lacks returns the ephemeral containers of a ShadowPod that its Pod does not have.
func lacks(pod *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) []corev1.EphemeralContainer {
	if len(shadow.Spec.Pod.EphemeralContainers) == 0 {
		return nil
	}
	has := sets.New[string]()
	for i := range pod.Spec.EphemeralContainers {
		has.Insert(pod.Spec.EphemeralContainers[i].Name)
	}
	var lacking []corev1.EphemeralContainer
	for _, wanted := range shadow.Spec.Pod.EphemeralContainers {
		if !has.Has(wanted.Name) {
			lacking = append(lacking, wanted)
		}
	}
	return lacking
}
