package shadowpod

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// Action is what is done next about a ShadowPod.
type Action int

// The actions.
const (
	// Nothing: all is as it should be.
	Nothing Action = iota
	// Create the Pod.
	Create
	// Record that the Pod finished, then Release it.
	Record
	// Release removes our finalizer from the Pod.
	Release
	// Replace deletes a Pod that will not run again by itself, so that it can be created anew.
	Replace
	// Await the end of a Pod that is going.
	Await
	// Conflict: the name is taken by a Pod that is not ours.
	Conflict
	// End deletes the Pod because its consumer wants it to end in another time than its own; no other one is made.
	End
	// Evict deletes a Pod that an earlier ShadowPod of the name left behind.
	Evict
	// Stop records that the Pod is stopped for want of a sign of its consumer, then deletes it; no other one is made.
	Stop
)

// silence is why a pod is stopped.
const silence = "the consumer gave no sign of life for as long as the pod says in annotation " + offloadingv1beta1.OnPartitionAnnotation

// recheck is how soon it is looked again for the first sign of a consumer.
const recheck = 30 * time.Second

// settle is how long a failed Pod is looked at before it is replaced, so that a node that refuses it is not flooded.
const settle = 10 * time.Second

// Decision is an action and the words for it.
type Decision struct {
	Action Action
	// Message says what is waited for, or why.
	Message string
	// After is when to look again, if time alone changes the decision.
	After time.Duration
	// Grace is how long the Pod has to End, in seconds.
	Grace int64
}

// Ending tells what is done next about a ShadowPod whose pod is to end in the given seconds, given what would be done otherwise.
func (d Decision) Ending(shadow *offloadingv1beta1.ShadowPod, pod *corev1.Pod, grace int64) Decision {
	switch {
	case d.Action == Record, d.Action == Release:
		return d
	case pod != nil && metav1.IsControlledBy(pod, shadow) && pod.DeletionTimestamp.IsZero() && !Terminal(shadow.Status.Phase):
		return Decision{Action: End, Grace: grace, Message: "the consumer wants the pod to end"}
	default:
		return Decision{Action: Nothing}
	}
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

// stopped tells whether a ShadowPod's pod was stopped for want of a sign of its consumer.
func stopped(shadow *offloadingv1beta1.ShadowPod) bool {
	ready := meta.FindStatusCondition(shadow.Status.Conditions, corev1beta1.ConditionReady)
	return shadow.Status.Phase == corev1.PodFailed && ready != nil && ready.Reason == offloadingv1beta1.ReasonStoppedOnPartition
}

// endsIn is in how many seconds the pod of a ShadowPod is to end; zero if nobody wants that.
func endsIn(shadow *offloadingv1beta1.ShadowPod, most time.Duration) int64 {
	seconds, err := strconv.ParseInt(shadow.Annotations[offloadingv1beta1.EndsInAnnotation], 10, 32)
	if err != nil || seconds < 1 {
		return 0
	}
	return min(seconds, int64(most.Seconds()))
}

// Decide tells what is done next. pod is the Pod of the ShadowPod's name, nil if there is none.
func Decide(shadow *offloadingv1beta1.ShadowPod, pod *corev1.Pod, now time.Time) Decision {
	leaving := !shadow.DeletionTimestamp.IsZero()
	switch {
	case pod == nil && (leaving || Terminal(shadow.Status.Phase)):
		return Decision{Action: Nothing}
	case pod == nil:
		return Decision{Action: Create}
	case !metav1.IsControlledBy(pod, shadow):
		return foreign(shadow, pod)
	case leaving:
		// The garbage collector deletes the Pod; we only let it.
		return release(pod, Decision{Action: Nothing})
	case Terminal(shadow.Status.Phase):
		if stopped(shadow) && pod.DeletionTimestamp.IsZero() && !Terminal(pod.Status.Phase) {
			return Decision{Action: Stop, Message: silence}
		}
		return release(pod, Decision{Action: Nothing})
	}
	switch {
	case reflection.Finished(&pod.Spec, pod):
		return Decision{Action: Record, Message: fmt.Sprintf("the pod finished: %s", pod.Status.Phase)}
	case !pod.DeletionTimestamp.IsZero():
		return deleting(pod)
	case Terminal(pod.Status.Phase):
		// It ended in a way after which Kubernetes' own controllers would create another one.
		if age := now.Sub(pod.CreationTimestamp.Time); age < settle {
			return Decision{Action: Await, Message: "the pod failed at once and is replaced soon: " + why(pod), After: settle - age}
		}
		return Decision{Action: Replace, Message: "the pod is lost and is replaced: " + why(pod)}
	}
	return Decision{Action: Nothing}
}

// Terminal tells whether a pod of this phase never runs again.
func Terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// foreign decides about a Pod that this ShadowPod does not control.
func foreign(shadow *offloadingv1beta1.ShadowPod, pod *corev1.Pod) Decision {
	owner := metav1.GetControllerOf(pod)
	predecessor := owner != nil && owner.Kind == "ShadowPod" && owner.Name == shadow.Name && owner.UID != shadow.UID &&
		owner.APIVersion == offloadingv1beta1.GroupVersion.String()
	switch {
	case !predecessor && !shadow.DeletionTimestamp.IsZero():
		return Decision{Action: Nothing}
	case !predecessor:
		return Decision{Action: Conflict, Message: "the name is somebody else's"}
	case held(pod):
		return Decision{Action: Release}
	case pod.DeletionTimestamp.IsZero():
		return Decision{Action: Evict, Message: "an earlier pod of this name goes first"}
	default:
		return Decision{Action: Await, Message: "waiting for an earlier pod of this name to go"}
	}
}

// deleting decides about a Pod that is going and did not finish by itself. It is released only when its containers are
// stopped, because until then it may still turn out to have finished before.
func deleting(pod *corev1.Pod) Decision {
	stopped := Terminal(pod.Status.Phase) || (pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0)
	wait := Decision{Action: Await, Message: "waiting for the deleted pod to go, to create it anew"}
	if stopped {
		return release(pod, wait)
	}
	return wait
}

func release(pod *corev1.Pod, otherwise Decision) Decision {
	if held(pod) {
		return Decision{Action: Release}
	}
	return otherwise
}

func held(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, offloadingv1beta1.ShadowPodRecordFinalizer)
}

func why(pod *corev1.Pod) string {
	reason := pod.Status.Reason
	if reason == "" {
		reason = string(pod.Status.Phase)
	}
	if pod.Status.Message == "" {
		return reason
	}
	return reason + ": " + pod.Status.Message
}
