package pod

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// What pods run without at the provider each of them says, and one Event tells.
func TestWhatPodsRunWithoutIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		asks                       func(*corev1.Pod)
		has                        func(*corev1.PodSpec) bool
		condition, reason, message string
	}{
		"namespaces of their hosts": {
			func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.HostPID = true, true },
			func(spec *corev1.PodSpec) bool { return spec.HostNetwork || spec.HostPID },
			offloadingv1beta1.HostNamespacesCondition, offloadingv1beta1.ReasonHostNamespacesOff, "hostNetwork, hostPID are off",
		},
		"a priority": {
			func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = "urgent", ptr.To[int32](1000) },
			func(spec *corev1.PodSpec) bool { return spec.PriorityClassName != "" || spec.Priority != nil },
			offloadingv1beta1.PriorityCondition, offloadingv1beta1.ReasonPriorityNotKept, `priority 1000 (PriorityClass "urgent")`,
		},
		"the priority that all pods have": {
			func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = "ordinary", ptr.To[int32](0) },
			func(spec *corev1.PodSpec) bool { return spec.PriorityClassName != "" || spec.Priority != nil },
			offloadingv1beta1.PriorityCondition, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.provider()
			const count = 3
			for i := range count {
				w.add(newPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("uid-", i)), tc.asks))
			}
			w.start()
			w.offload()
			for i := range count {
				name := fmt.Sprint("p", i)
				w.eventually("the pod runs, and says without what", func() bool {
					list := w.pod(name).Status.Conditions
					at := slices.IndexFunc(list, func(c corev1.PodCondition) bool { return string(c.Type) == tc.condition })
					return isReady(w.pod(name)) && (at < 0) == (tc.reason == "") &&
						(at < 0 || list[at].Status == corev1.ConditionFalse && list[at].Reason == tc.reason && strings.Contains(list[at].Message, tc.message))
				})
				if spec := w.shadow(name).Spec.Pod; tc.has(&spec) {
					t.Errorf("the ShadowPod asks for it: %v", spec)
				}
			}
			w.calm()
			told := w.events.all()
			if wanted := tc.reason != ""; wanted != (len(told) == 1) || wanted && (!strings.HasPrefix(told[0], tc.reason) || !strings.Contains(told[0], tc.message)) {
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
		})
	}
}
