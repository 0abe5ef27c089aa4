package reflection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestTheDigestOfWhatIsAsked(t *testing.T) {
	amounts := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	spec := func(requests, limits corev1.ResourceList) *corev1.PodSpec {
		return &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}}
	}
	together := spec(amounts("cpu", "1", "memory", "1Gi"), nil)
	together.Resources = &corev1.ResourceRequirements{Limits: amounts("cpu", "1")}
	of := ResourcesAsked(spec(amounts("cpu", "1", "memory", "1Gi"), nil))
	for name, tc := range map[string]struct {
		other *corev1.PodSpec
		same  bool
	}{
		"the same":                     {spec(amounts("cpu", "1", "memory", "1Gi"), nil), true},
		"the same in other words":      {spec(amounts("cpu", "1000m", "memory", "1073741824"), nil), true},
		"something else besides":       {spec(amounts("cpu", "1", "memory", "1Gi", "example.com/gpu", "1"), amounts("example.com/gpu", "1")), true},
		"more cpu":                     {spec(amounts("cpu", "1001m", "memory", "1Gi"), nil), false},
		"more memory":                  {spec(amounts("cpu", "1", "memory", "2Gi"), nil), false},
		"a limit":                      {spec(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "1")), false},
		"a limit instead of a request": {spec(amounts("cpu", "1"), amounts("memory", "1Gi")), false},
		"a limit of the pod":           {together, false},
		"a request of nothing":         {spec(amounts("memory", "1Gi"), nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ResourcesAsked(tc.other) == of; got != tc.same {
				t.Errorf("the digests are the same: %t, want %t", got, tc.same)
			}
		})
	}
}

// What a pod asks for is seen once it is at the ShadowPod, at the remote pod, and with the kubelet of that; or if it is refused.
func TestTheObservedGenerationWaitsForASize(t *testing.T) {
	asking := func(cpu string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}
	}
	type pods struct {
		local   *corev1.Pod
		shadow  *offloadingv1beta1.ShadowPod
		remote  *corev1.Pod
		refused bool
	}
	old := asking("1")
	for name, tc := range map[string]struct {
		change func(*pods)
		want   int64
	}{
		"all is done":                       {func(*pods) {}, 2},
		"the ShadowPod has the old size":    {func(p *pods) { p.shadow.Spec.Pod = old }, 1},
		"the provider refused that":         {func(p *pods) { p.shadow.Spec.Pod, p.refused = old, true }, 2},
		"the remote pod has the old size":   {func(p *pods) { p.remote.Annotations[offloadingv1beta1.ResourcesAskedAnnotation] = ResourcesAsked(&old) }, 1},
		"the kubelet has not looked":        {func(p *pods) { p.remote.Status.ObservedGeneration = 4 }, 1},
		"the kubelet does not say":          {func(p *pods) { p.remote.Status.ObservedGeneration = 0 }, 2},
		"the remote pod does not say":       {func(p *pods) { p.remote.Annotations = nil }, 2},
		"nothing is known of it":            {func(p *pods) { p.shadow, p.remote = nil, nil }, 1},
		"it has not started":                {func(p *pods) { p.shadow, p.remote, p.local.Status.Phase = nil, nil, corev1.PodPending }, 2},
		"it goes":                           {func(p *pods) { p.shadow.Spec.Pod, p.local.DeletionTimestamp = old, &metav1.Time{} }, 2},
		"it was seen before":                {func(p *pods) { p.shadow.Spec.Pod, p.local.Status.ObservedGeneration = old, 2 }, 2},
		"nothing ever changed":              {func(p *pods) { p.local.Generation, p.local.Status.ObservedGeneration, p.shadow.Spec.Pod = 1, 0, old }, 1},
		"the provider's controller refused": {func(p *pods) { refuse(p.shadow, p.remote, old, 3) }, 2},
		"it refused an earlier size":        {func(p *pods) { refuse(p.shadow, p.remote, old, 2) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pods{
				local: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: asking("2"),
					Status: corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: 1}},
				shadow: &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: offloadingv1beta1.ShadowPodSpec{Pod: asking("2000m")}},
				remote: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 5}, Status: corev1.PodStatus{ObservedGeneration: 5}},
			}
			p.remote.Annotations = map[string]string{offloadingv1beta1.ResourcesAskedAnnotation: ResourcesAsked(&p.shadow.Spec.Pod)}
			tc.change(p)
			if got := ObservedGeneration(p.local, p.shadow, p.remote, p.refused); got != tc.want {
				t.Errorf("generation %d is observed, want %d", got, tc.want)
			}
		})
	}
}

// refuse has the provider's controller refuse the size of a generation of the ShadowPod, so that the remote pod keeps the old one.
func refuse(shadow *offloadingv1beta1.ShadowPod, remote *corev1.Pod, old corev1.PodSpec, generation int64) {
	remote.Annotations[offloadingv1beta1.ResourcesAskedAnnotation] = ResourcesAsked(&old)
	shadow.Status.Conditions = []metav1.Condition{{Type: string(corev1.PodResizePending), Status: metav1.ConditionTrue, ObservedGeneration: generation}}
}
