package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// W2, W3: what a provider says about a pod is checked before it is shown.
func TestBadPodStatus(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	for name, tc := range map[string]struct {
		status map[string]any
		check  func(*corev1.Pod) string
	}{
		"an address outside the provider's range": {
			map[string]any{"podIP": "8.8.8.8", "podIPs": []map[string]any{{"ip": "8.8.8.8"}}},
			func(p *corev1.Pod) string {
				if p.Status.PodIP == "8.8.8.8" {
					return "the address is shown"
				}
				return invalid(p)
			},
		},
		"a container that does not exist": {
			map[string]any{"containerStatuses": []map[string]any{
				{"name": "ghost", "image": "b", "imageID": "", "ready": true, "restartCount": 1 << 30},
				{"name": "a", "image": "b", "imageID": "", "ready": true, "restartCount": 0}}},
			func(p *corev1.Pod) string {
				for _, c := range p.Status.ContainerStatuses {
					if c.Name == "ghost" {
						return "the container is shown"
					}
				}
				return invalid(p)
			},
		},
		"a huge message": {
			map[string]any{"message": strings.Repeat("x", 100_000)},
			func(p *corev1.Pod) string {
				if len(p.Status.Message) > 2048 {
					return fmt.Sprintf("a message of %d bytes is shown", len(p.Status.Message))
				}
				if p.Status.Message == "" {
					return "no message yet"
				}
				return ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := world.Pod(namespace, fixture.Unique("pod"))
			fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
			key := client.ObjectKeyFromObject(pod)
			fixture.Await(t, 2*fixture.Patience, "the pod to run", func(ctx context.Context) (bool, string) {
				err := env.Rome.Client.Get(ctx, key, pod)
				return err == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "", fmt.Sprint(pod.Status, err)
			})
			env.Lie(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}}, tc.status)
			fixture.Await(t, fixture.Patience, "the lie to be found out", func(ctx context.Context) (bool, string) {
				if err := env.Rome.Client.Get(ctx, key, pod); err != nil {
					return false, err.Error()
				}
				wrong := tc.check(pod)
				return wrong == "", fmt.Sprintf("%s: %+v", wrong, pod.Status)
			})
		})
	}
}

func invalid(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == offloadingv1beta1.InvalidRemoteStatusCondition && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "no condition InvalidRemoteStatus"
}
