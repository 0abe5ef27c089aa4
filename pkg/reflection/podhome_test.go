package reflection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Which pods lack their API server follows from how they were sent, not from what is configured by now.
func TestLacksAPIServer(t *testing.T) {
	home := readPod(t, "testdata/pod/home.yaml")
	own := home.DeepCopy()
	for i := range own.Spec.Containers {
		own.Spec.Containers[i].Env = append(own.Spec.Containers[i].Env, corev1.EnvVar{Name: apiHost, Value: "api.example.org"})
	}
	noTokens := home.DeepCopy()
	noTokens.Spec.Volumes = nil
	for i := range noTokens.Spec.Containers {
		noTokens.Spec.Containers[i].VolumeMounts = nil
	}
	for sentence, tc := range map[string]struct {
		pod  *corev1.Pod
		api  HomeAPI
		want bool
	}{
		"sent without an address":                {home, HomeAPI{Enabled: true}, true},
		"sent with an address":                   {home, reachableHome, false},
		"sent while support is off":              {home, HomeAPI{}, false},
		"a pod that names its API server itself": {own, HomeAPI{Enabled: true}, false},
		"a pod without tokens":                   {noTokens, HomeAPI{Enabled: true}, false},
		"a pod that uses the provider's server":  {readPod(t, "testdata/pod/remote.yaml"), HomeAPI{Enabled: true}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			shadow, refusal := ShadowPod(tc.pod, PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome", API: tc.api})
			if refusal != nil {
				t.Fatalf("refused: %+v", refusal)
			}
			if got := LacksAPIServer(tc.pod, shadow); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// The condition comes with the status that is written anyway, and stays as it is.
func TestMissingAPIServerIsACondition(t *testing.T) {
	local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "r"}, Spec: local.Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	in := StatusInput{NoAPIServer: true, Now: metav1.Unix(1000, 0).Time}
	local.Status, _ = LocalStatus(local, remote, in)
	first := condition(local.Status.Conditions, offloadingv1beta1.APIServerReachableCondition)
	if first == nil || first.Status != corev1.ConditionFalse || first.Reason != offloadingv1beta1.ReasonNoAPIServerAddress {
		t.Fatalf("the condition is %+v", first)
	}
	in.Now = metav1.Unix(2000, 0).Time
	again, _ := LocalStatus(local, remote, in)
	if second := condition(again.Conditions, offloadingv1beta1.APIServerReachableCondition); second == nil || *second != *first {
		t.Errorf("later it is %+v, before %+v", second, first)
	}
	local.Status.Conditions = nil
	in.NoAPIServer = false
	without, _ := LocalStatus(local, remote, in)
	if c := condition(without.Conditions, offloadingv1beta1.APIServerReachableCondition); c != nil {
		t.Errorf("a pod that has its API server says %+v", c)
	}
}
