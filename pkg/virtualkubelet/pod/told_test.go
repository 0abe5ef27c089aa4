package pod

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Pods that ask for their host's namespaces run without; each says so, and one Event tells.
func TestPodsRunWithoutTheirHostsNamespaces(t *testing.T) {
	w := newWorld(t)
	w.provider()
	const count = 3
	for i := range count {
		w.add(newPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("uid-", i)), func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.HostPID = true, true }))
	}
	w.start()
	w.offload()
	for i := range count {
		name := fmt.Sprint("p", i)
		w.eventually("the pod runs, and says without what", func() bool {
			return isReady(w.pod(name)) && slices.ContainsFunc(w.pod(name).Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == offloadingv1beta1.HostNamespacesCondition && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "hostNetwork, hostPID are off")
			})
		})
		if spec := w.shadow(name).Spec.Pod; spec.HostNetwork || spec.HostPID {
			t.Errorf("the ShadowPod asks for namespaces of its host: %v", spec)
		}
	}
	w.calm()
	if told := w.events.all(); len(told) != 1 || !strings.HasPrefix(told[0], offloadingv1beta1.ReasonHostNamespacesOff) {
		t.Errorf("events are %q", told)
	}
	w.stop()
	before := w.count()
	w.start()
	w.offload()
	w.calm()
	if w.count() != before {
		t.Errorf("a restart writes %q", w.writes[before:])
	}
}
