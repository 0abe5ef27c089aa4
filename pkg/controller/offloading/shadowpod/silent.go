package shadowpod

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// silence is why a pod is stopped.
const silence = "the consumer gave no sign of life for as long as the pod says in annotation " + offloadingv1beta1.OnPartitionAnnotation

// recheck is how soon it is looked again for the first sign of a consumer.
const recheck = 30 * time.Second

// stopped tells whether a ShadowPod's pod was stopped for want of a sign of its consumer.
func stopped(shadow *offloadingv1beta1.ShadowPod) bool {
	ready := meta.FindStatusCondition(shadow.Status.Conditions, corev1beta1.ConditionReady)
	return shadow.Status.Phase == corev1.PodFailed && ready != nil && ready.Reason == offloadingv1beta1.ReasonStoppedOnPartition
}

// Silent tells what is done next about a ShadowPod whose consumer was heard of last at the given time, and which is to be stopped after so
// long without, given what would be done otherwise. The zero time says that the consumer has never given a sign: it may be one that gives
// none, so nothing follows from that. A pod that finished is not stopped, and no ShadowPod is older than itself.
func (d Decision) Silent(shadow *offloadingv1beta1.ShadowPod, pod *corev1.Pod, last time.Time, after time.Duration, now time.Time) Decision {
	over := Terminal(shadow.Status.Phase) || !shadow.DeletionTimestamp.IsZero()
	if over || d.Action == Record || d.Action == Release || pod != nil && !metav1.IsControlledBy(pod, shadow) {
		return d
	}
	left := recheck
	if !last.IsZero() {
		if made := shadow.CreationTimestamp.Time; made.After(last) {
			last = made
		}
		left = after - now.Sub(last)
	}
	switch {
	case left <= 0:
		return Decision{Action: Stop, Message: silence}
	case d.Action == Await && d.After == 0:
		// It is looked again before long.
	case d.After == 0 || left < d.After:
		d.After = left
	}
	return d
}

// heard is when a consumer wrote its Lease last, by the clock of this cluster's API server: what the Lease says itself is by the consumer's.
func heard(renewed bool, fields []metav1.ManagedFieldsEntry) (last time.Time) {
	if !renewed {
		return last
	}
	for _, entry := range fields {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
