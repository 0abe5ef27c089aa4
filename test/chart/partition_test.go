package chart

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/partition"
)

// asking is a pod that says what to do on a partition, and tolerates lost nodes for so many seconds; less than none is for ever.
func asking(value string, seconds int64) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
		Annotations: map[string]string{offloadingv1beta1.OnPartitionAnnotation: value}}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](30)}}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
		if seconds >= 0 {
			toleration.TolerationSeconds = &seconds
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
	}
	return pod
}

func asksOf(t *testing.T) func(now, old *corev1.Pod) string {
	policy := policyNamed(t, "", "partition.yaml", "liqo-on-partition")
	return func(now, old *corev1.Pod) string {
		if old == nil {
			return policy.asked(t, admission.Create, "pods", "", now, nil)
		}
		return policy.asked(t, admission.Update, "pods", "", now, runtime.Object(old))
	}
}

// What the API server takes is what everybody else reads.
func TestOnPartitionIsRead(t *testing.T) {
	ask := asksOf(t)
	for _, value := range []string{"keep", "stop", "fence", "stop=60s", "stop=5m", "fence=90s", "fence=48h", "stop=99999h", "", "Stop", "keep=5m", "stop=", "stop=5", "stop=0s",
		"stop=59s", "stop=-5m", "stop=1h30m", "stop=1.5h", "stop=5m ", "stop=100000h", "kill", "stop=1m;fence", "fence=1ms"} {
		_, err := partition.Of(map[string]string{offloadingv1beta1.OnPartitionAnnotation: value})
		if why := ask(asking(value, -1), nil); (why != "") != (err != nil) || strings.Count(why, "OnPartition") > 1 {
			t.Errorf("%q is read with %v, and refused with %q", value, err, why)
		}
	}
	for value, want := range map[string]string{
		"kill":     "OnPartitionNotRead: annotation liqo.io/on-partition is 'kill': write keep, stop or fence, the last two with a time if wanted, such as fence=5m",
		"stop=10s": "OnPartitionTooShort: annotation liqo.io/on-partition is 'stop=10s': the time must be at least 60s",
	} {
		if why := ask(asking(value, -1), nil); !strings.Contains(why, want) {
			t.Errorf("%q is refused with %q", value, why)
		}
	}
}

// A fenced pod is given the time on lost nodes in which its provider must have stopped it, and keeps it.
func TestAFencedPodToleratesLostNodesLongEnough(t *testing.T) {
	ask := asksOf(t)
	for _, value := range []string{"fence", "fence=60s", "fence=5m", "fence=1h"} {
		enough := int64(partition.StoppedAfter(asking(value, -1)).Seconds()) + 1
		for seconds, ok := range map[int64]bool{-1: true, 0: false, enough - 2: false, enough: true, enough + 1000: true} {
			if why := ask(asking(value, seconds), nil); (why == "") != ok || !ok && !strings.Contains(why, "FenceNeedsTime") {
				t.Errorf("%s with %d seconds: refused with %q", value, seconds, why)
			}
		}
	}
	for name, test := range map[string]struct {
		now, old *corev1.Pod
		change   func(*corev1.Pod)
		reason   string
	}{
		"with Kubernetes' defaults":         {now: asking("fence", 300)},
		"one that is stopped needs no more": {now: asking("stop=1h", 300)},
		"one that tolerates everything":     {now: asking("fence=1h", -1), change: func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }},
		"one that tolerates nothing":        {now: asking("fence", -1), change: func(p *corev1.Pod) { p.Spec.Tolerations = nil }, reason: "FenceNeedsTime"},
		"one that tolerates half":           {now: asking("fence", -1), change: func(p *corev1.Pod) { p.Spec.Tolerations = p.Spec.Tolerations[:1] }, reason: "node.kubernetes.io/unreachable with effect"},
		"one that is not evicted for it":    {now: asking("fence", -1), change: func(p *corev1.Pod) { p.Spec.Tolerations[0].Effect = corev1.TaintEffectNoSchedule }, reason: "FenceNeedsTime"},
		"one with a short one beside": {now: asking("fence", -1), change: func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, asking("", 5).Spec.Tolerations...)
		}, reason: "FenceNeedsTime"},
		"one with a long grace period":          {now: asking("fence", 300), change: func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600) }, reason: "FenceNeedsTime"},
		"a change of the time":                  {now: asking("fence=2m", 300), old: asking("fence=3m", 300), reason: "OnPartitionFixed"},
		"a pod that asks later":                 {now: asking("stop", 300), old: &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, reason: "OnPartitionFixed"},
		"a pod that asks no more":               {now: &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, old: asking("stop", 300), reason: "OnPartitionFixed"},
		"a change of something else":            {now: asking("fence", 300), old: asking("fence", 300)},
		"a change of what was always wrong":     {now: asking("kill", 0), old: asking("kill", 0)},
		"a change of what always was too short": {now: asking("fence", 5), old: asking("fence", 5)},
		"the time is taken away later":          {now: asking("fence", 5), old: asking("fence", 300), reason: "FenceNeedsTime"},
		"the time is raised":                    {now: asking("fence", 600), old: asking("fence", 300)},
		"a pod that says nothing":               {now: &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.now)
			}
			if why := ask(test.now, test.old); (why == "") != (test.reason == "") || !strings.Contains(why, test.reason) {
				t.Errorf("refused with %q, want %q", why, test.reason)
			}
		})
	}
}
