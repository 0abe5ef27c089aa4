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
		reflection.WhyNoAPIServer(local, r.options.API, r.options.Remote))
	r.tellOfOne(local, offloadingv1beta1.ReasonHostNamespacesOff, offloadingv1beta1.HostNamespacesCondition,
		reflection.HostNamespacesMessage(&local.Spec))
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
