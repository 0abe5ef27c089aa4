package shadowpod

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func seconds(n int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(n) * time.Second)) }

func shadowOf(uid string, phase corev1.PodPhase) *offloadingv1beta1.ShadowPod {
	s := &offloadingv1beta1.ShadowPod{}
	s.Namespace, s.Name, s.UID = "shop-rome", "web", "uid-"+"1"
	if uid != "" {
		s.UID = "uid-" + "2"
	}
	s.Status.Phase = phase
	return s
}

// podOf returns a running pod of the first ShadowPod, as a job's pod: it may finish.
func podOf(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c"}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Namespace, pod.Name, pod.CreationTimestamp = "shop-rome", "web", seconds(-100)
	pod.Finalizers = []string{offloadingv1beta1.ShadowPodRecordFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(shadowOf("", ""), offloadingv1beta1.GroupVersion.WithKind("ShadowPod"))}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func always(p *corev1.Pod)   { p.Spec.RestartPolicy = corev1.RestartPolicyAlways; p.Finalizers = nil }
func released(p *corev1.Pod) { p.Finalizers = nil }
func ended(phase corev1.PodPhase, at int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: seconds(at)}}}}
	}
}
func reason(text string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Reason = text } }
func disruption(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
}

// deleted at a second, with the grace period that is left; 0 is what the kubelet's last call leaves.
func deleted(at, grace int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		t := seconds(at + grace)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &t, ptr.To(int64(grace))
	}
}
func failed(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
func young(p *corev1.Pod)  { p.CreationTimestamp = seconds(-3) }

func TestDecide(t *testing.T) {
	leaving := func(phase corev1.PodPhase) *offloadingv1beta1.ShadowPod {
		s := shadowOf("", phase)
		now := seconds(0)
		s.DeletionTimestamp = &now
		return s
	}
	foreign := podOf(func(p *corev1.Pod) { p.OwnerReferences = nil })
	for name, tc := range map[string]struct {
		shadow *offloadingv1beta1.ShadowPod
		pod    *corev1.Pod
		want   Action
	}{
		"there is no pod yet":                                            {shadowOf("", ""), nil, Create},
		"the pod is gone":                                                {shadowOf("", corev1.PodRunning), nil, Create},
		"the pod of a finished one is gone":                              {shadowOf("", corev1.PodSucceeded), nil, Nothing},
		"the pod of a failed one is gone":                                {shadowOf("", corev1.PodFailed), nil, Nothing},
		"the ShadowPod is going and has no pod":                          {leaving(""), nil, Nothing},
		"the ShadowPod is going: its pod is let go":                      {leaving(""), podOf(), Release},
		"the ShadowPod is going: its pod is let go once":                 {leaving(""), podOf(released), Nothing},
		"the pod runs":                                                   {shadowOf("", ""), podOf(), Nothing},
		"the pod finished":                                               {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodSucceeded, -5)), Record},
		"the pod failed":                                                 {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -5)), Record},
		"it is recorded already":                                         {shadowOf("", corev1.PodSucceeded), podOf(ended(corev1.PodSucceeded, -5)), Release},
		"it is recorded and released":                                    {shadowOf("", corev1.PodSucceeded), podOf(ended(corev1.PodSucceeded, -5), released), Nothing},
		"it finished before it was deleted":                              {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodSucceeded, -5), deleted(-2, 30)), Record},
		"it finished before it was deleted, after the kubelet's last":    {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodSucceeded, -5), deleted(-2, 0)), Record},
		"it ended because it was deleted":                                {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -1), deleted(-5, 30)), Release},
		"it ended because it was deleted, after the kubelet's last call": {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodSucceeded, -1), deleted(-5, 0)), Release},
		"it ended in the second of the deletion":                         {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodSucceeded, -5), deleted(-5, 30)), Release},
		"it was deleted and still stops":                                 {shadowOf("", corev1.PodRunning), podOf(deleted(-5, 30)), Await},
		"it was deleted by force":                                        {shadowOf("", corev1.PodRunning), podOf(deleted(-5, 0)), Release},
		"it was deleted, stopped and let go":                             {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -1), deleted(-5, 0), released), Await},
		"it was evicted":                                                 {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -5), reason("Evicted"), disruption), Replace},
		"it went beyond its own limits":                                  {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -5), reason("Evicted")), Record},
		"it was preempted":                                               {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -5), disruption), Replace},
		"its node was lost and its deletion forced":                      {shadowOf("", corev1.PodRunning), podOf(failed, disruption, deleted(-5, 0)), Release},
		"its node shut down":                                             {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -5), reason("NodeShutdown")), Replace},
		"its node refused it":                                            {shadowOf("", corev1.PodPending), podOf(failed, reason("OutOfcpu")), Replace},
		"its node refused it just now":                                   {shadowOf("", corev1.PodPending), podOf(failed, reason("OutOfcpu"), young), Await},
		"its deadline passed":                                            {shadowOf("", corev1.PodRunning), podOf(ended(corev1.PodFailed, -1), reason("DeadlineExceeded")), Record},
		"its deadline passed before anything ran":                        {shadowOf("", corev1.PodPending), podOf(failed, reason("DeadlineExceeded")), Record},
		"a server never finishes by itself":                              {shadowOf("", corev1.PodRunning), podOf(always, ended(corev1.PodSucceeded, -5)), Replace},
		"a server was evicted":                                           {shadowOf("", corev1.PodRunning), podOf(always, ended(corev1.PodFailed, -5), reason("Evicted"), disruption), Replace},
		"a server went beyond its own limits":                            {shadowOf("", corev1.PodRunning), podOf(always, ended(corev1.PodFailed, -5), reason("Evicted")), Record},
		"a server was deleted":                                           {shadowOf("", corev1.PodRunning), podOf(always, deleted(-5, 30)), Await},
		"a server's deadline passed":                                     {shadowOf("", corev1.PodRunning), podOf(always, ended(corev1.PodFailed, -1), reason("DeadlineExceeded")), Record},
		"C6: the name is somebody else's":                                {shadowOf("", ""), foreign, Conflict},
		"C6: the name is somebody else's, and we are going":              {leaving(""), foreign, Nothing},
		"C2: a pod of an earlier ShadowPod runs":                         {shadowOf("new", ""), podOf(released), Evict},
		"C2: a pod of an earlier ShadowPod is held by us":                {shadowOf("new", ""), podOf(), Release},
		"C2: a pod of an earlier ShadowPod is going":                     {shadowOf("new", ""), podOf(released, deleted(-5, 30)), Await},
		"C2: an earlier pod's end is not recorded for its successor":     {shadowOf("new", ""), podOf(released, ended(corev1.PodSucceeded, -5)), Evict},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.shadow, tc.pod, start)
			if diff := cmp.Diff(tc.want, got.Action); diff != "" {
				t.Errorf("%s (%s)", diff, got.Message)
			}
			if needsWords := got.Action == Await || got.Action == Conflict || got.Action == Replace || got.Action == Evict; needsWords && got.Message == "" {
				t.Error("the decision does not say why")
			}
		})
	}
}

// A ShadowPod whose pod is to end gets no other one; what finished by itself is recorded all the same.
func TestDecideEnding(t *testing.T) {
	for name, tc := range map[string]struct {
		shadow *offloadingv1beta1.ShadowPod
		pod    *corev1.Pod
		want   Decision
	}{
		"the pod runs":              {shadowOf("", ""), podOf(), Decision{Action: End, Grace: 7}},
		"it ends already":           {shadowOf("", ""), podOf(deleted(-5, 30)), Decision{Action: Nothing}},
		"it stopped":                {shadowOf("", ""), podOf(deleted(-5, 0)), Decision{Action: Release}},
		"it is gone":                {shadowOf("", ""), nil, Decision{Action: Nothing}},
		"it finished":               {shadowOf("", ""), podOf(ended(corev1.PodSucceeded, -5)), Decision{Action: Record}},
		"it is recorded":            {shadowOf("", corev1.PodSucceeded), podOf(ended(corev1.PodSucceeded, -5), released), Decision{Action: Nothing}},
		"it was evicted":            {shadowOf("", ""), podOf(ended(corev1.PodFailed, -5), disruption), Decision{Action: End, Grace: 7}},
		"it is an earlier one's":    {shadowOf("new", ""), podOf(released), Decision{Action: Nothing}},
		"the name is somebody else": {shadowOf("", ""), podOf(func(p *corev1.Pod) { p.OwnerReferences = nil }), Decision{Action: Nothing}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.shadow, tc.pod, start).Ending(tc.shadow, tc.pod, 7)
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for text, want := range map[string]int64{"": 0, "0": 0, "-3": 0, "soon": 0, "1.5": 0, "1": 1, "60": 60, "86400": 3600, "99999999999999999999": 0} {
		shadow := shadowOf("", "")
		shadow.Annotations = map[string]string{offloadingv1beta1.EndsInAnnotation: text}
		if got := endsIn(shadow, time.Hour); got != want {
			t.Errorf("%q: %d s, want %d", text, got, want)
		}
	}
}
