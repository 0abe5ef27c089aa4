package api

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// The API server itself keeps pods at home that no provider takes, and says why: no process of ours runs here.
func TestPodsThatNoProviderTakesStayAtHome(t *testing.T) {
	t.Parallel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("shop"), Labels: map[string]string{offloadingv1beta1.SchedulingLabel: "true"}}}
	fixture.Must(t, "creating the namespace", env.Milan.Client.Create(t.Context(), namespace))
	env.Milan.AwaitServiceAccount(t, namespace.Name)
	fixture.Must(t, "offloading it", env.Milan.Client.Create(t.Context(), offloadingOf(namespace.Name)))
	for name, tc := range map[string]struct {
		change func(*corev1.PodSpec)
		note   string
	}{
		"an ordinary pod": {func(*corev1.PodSpec) {}, ""},
		"a host path": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}, "volumes.hostPath"},
		"privileged with a host port": {func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}, "ports.hostPort, securityContext.privileged"},
		"everything tolerated": {func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }, ""},
		"an unconfined init container": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "b", SecurityContext: &corev1.SecurityContext{
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}}}
		}, "securityContext.seccompProfile.type"},
		"an empty projection": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.Await(t, fixture.Patience, "the place of the pod", func(ctx context.Context) (bool, string) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
				tc.change(&pod.Spec)
				if err := env.Milan.Client.Create(ctx, pod, client.DryRunAll); err != nil {
					return false, err.Error()
				}
				tolerated, home := false, pod.Spec.Affinity != nil
				for _, toleration := range pod.Spec.Tolerations {
					tolerated = tolerated || toleration.Key == offloadingv1beta1.VirtualNodeTaint
				}
				note := pod.Annotations[offloadingv1beta1.KeptAtHomeAnnotation]
				return note == tc.note && home == (tc.note != "") && tolerated == (tc.note == ""), fmt.Sprintf("note %q, kept off virtual nodes: %v, tolerates them: %v", note, home, tolerated)
			})
		})
	}
}
