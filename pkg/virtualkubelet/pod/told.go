package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// about is something that is told of one pod of a namespace, because it is so for all alike.
type about struct{ namespace, reason string }

// tellMade tells what a pod that was sent to the provider does without there.
func (r *Reconciler) tellMade(local *corev1.Pod) {
	r.tellOfOne(local, offloadingv1beta1.ReasonNoAPIServerAddress, offloadingv1beta1.APIServerReachableCondition,
		reflection.WhyNoAPIServer(local, r.options.API(), r.options.Remote))
	r.tellOfOne(local, offloadingv1beta1.ReasonHostNamespacesOff, offloadingv1beta1.HostNamespacesCondition,
		reflection.HostNamespacesMessage(&local.Spec))
	r.tellOfOne(local, offloadingv1beta1.ReasonPriorityNotKept, offloadingv1beta1.PriorityCondition, reflection.PriorityMessage(&local.Spec))
}

// tellOfOne tells the users of a namespace what its new pods do without, of one of them in the time that an Event lasts; each shows
// it in a condition, which costs no write of its own. Nothing is told if the message is empty.
func (r *Reconciler) tellOfOne(local *corev1.Pod, reason, condition, message string) {
	if message == "" || r.options.Recorder == nil {
		return
	}
	topic, now := about{local.Namespace, reason}, r.options.Clock.Now()
	r.mu.Lock()
	last, told := r.memory.toldOfOne[topic]
	news := !told || now.Sub(last) >= eventLife
	if news {
		r.memory.toldOfOne[topic] = now
	}
	r.mu.Unlock()
	if news {
		r.options.Recorder.Event(local, corev1.EventTypeWarning, reason,
			fmt.Sprintf("%s; this is told of one pod of the namespace in an hour, condition %s shows it on each", message, condition))
	}
}

// tellOutage tells the users of a namespace, of one of its pods, that nothing is known of them or comes to them any more, and that it is again. Pods that
// show it already were told of before, by an earlier process too. An outage whose pods all failed ends with the first other one that is
// ready. A node of the provider that is not reached is told by itself: pods on others are.
func (r *Reconciler) tellOutage(local *corev1.Pod, wanted *corev1.PodStatus) {
	if _, message := verdict(wanted); message == reflection.NodeCutOff && readiness(&local.Status).Message != message {
		r.tellOfOne(local, offloadingv1beta1.ReasonNetworkUnavailable, string(corev1.PodReady), message)
	}
	was, is := outage(&local.Status), outage(wanted)
	if r.options.Recorder == nil || was == is && (is != "" || readiness(wanted).Status != corev1.ConditionTrue) {
		return
	}
	r.mu.Lock()
	told, known := r.memory.outages[local.Namespace]
	if is == "" {
		delete(r.memory.outages, local.Namespace)
	} else {
		r.memory.outages[local.Namespace] = is
	}
	r.mu.Unlock()
	switch {
	case is != "" && told != is:
		_, message := verdict(wanted)
		r.options.Recorder.Event(local, corev1.EventTypeWarning, is, message+"; this is told of one pod of the namespace")
	case is == "" && known && !reflection.Terminal(wanted.Phase):
		over := "answers"
		if told == offloadingv1beta1.ReasonNetworkUnavailable {
			over = "is reached"
		}
		r.options.Recorder.Event(local, corev1.EventTypeNormal, offloadingv1beta1.ReasonRemotePodExists,
			fmt.Sprintf("cluster %q %s again; this is told of one pod of the namespace", r.options.Remote, over))
	}
}

// outage is why nothing is known of a pod or comes to it, by what it shows; empty if neither is so.
func outage(status *corev1.PodStatus) string {
	reason, message := verdict(status)
	switch reason {
	case offloadingv1beta1.ReasonRemoteUnavailable, offloadingv1beta1.ReasonRightsRevoked:
		return reason
	case offloadingv1beta1.ReasonNetworkUnavailable:
		if message != reflection.NodeCutOff {
			return reason
		}
	}
	return ""
}

// verdict is why a pod failed, or else why it is not ready: one that was not ready before keeps the reason of that.
func verdict(status *corev1.PodStatus) (reason, message string) {
	if status.Phase == corev1.PodFailed {
		return status.Reason, status.Message
	}
	ready := readiness(status)
	return ready.Reason, ready.Message
}

// readiness is the condition of the pod's readiness; empty if there is none.
func readiness(status *corev1.PodStatus) corev1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.PodReady {
			return status.Conditions[i]
		}
	}
	return corev1.PodCondition{}
}
