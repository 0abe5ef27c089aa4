package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const consumerTenant = corev1beta1.TenantNamespacePrefix + provider

// TestKnobs changes one setting of each sort as a user does: values with liqoctl install --set, the VirtualNode, objects and a
// namespace with kubectl. Each takes effect on a peering at work; neither the pods that run nor the virtual kubelet are touched.
func TestKnobs(t *testing.T) {
	the.alone(t)
	const namespace = "knobs"
	twin := the.offloaded(t, namespace)
	labelled := func(name string) *corev1.ConfigMap {
		config := &corev1.ConfigMap{ObjectMeta: named(namespace, name), Data: map[string]string{"word": "open"}}
		config.Labels = map[string]string{"stays": "here", "travels": "far", "later": "too"}
		return config
	}
	service := &corev1.Service{ObjectMeta: named(namespace, "web"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	spec := script(forever)
	spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "used"}}}}
	the.rome.creates(t, labelled("used"), labelled("unused"), service, podOf(namespace, "user", spec))
	the.rome.ready(t, namespace, "user", 1)
	crossed := func(what string, want map[string]bool) {
		t.Helper()
		the.milan.has(t, twin, what, want)
	}
	everything := map[string]bool{"ConfigMap used": true, "ConfigMap unused": true, "Service web": true}
	crossed("by default", everything)
	before := the.atWork(t, twin)

	changed := false
	reset := func() {
		the.liqoctl(t, 4*time.Minute, append(the.installArgs(t, the.rome), "--reset-values")...).succeeds(t)
		changed = false
	}
	t.Cleanup(func() {
		if changed {
			reset()
		}
		the.patchVirtualNode(t, `{"spec":{"offloadingPatch":{"labelsNotReflected":null}}}`)
	})
	t.Run("values", func(t *testing.T) {
		the.recordFailure(t)
		changed = true
		the.liqoctl(t, 4*time.Minute, append(the.installArgs(t, the.rome),
			"--set", "offloading.reflection.configmap.type=Referenced", "--set", "offloading.reflection.service.type=AllowList",
			"--set", "offloading.reflection.secret.workers=0", "--set", "offloading.reflection.skip.labels={stays}")...).succeeds(t)
		crossed("with other policies", map[string]bool{"ConfigMap used": true, "ConfigMap unused": false, "Service web": false})
		the.milan.labels(t, twin, "used", map[string]bool{"stays": false, "travels": true})
		the.rome.creates(t, &corev1.Secret{ObjectMeta: named(namespace, "late")})
		the.kubectl(t, the.rome, soon, "annotate", "service", "web", "-n", namespace, offloadingv1beta1.AllowReflectionAnnotation+"=").succeeds(t)
		crossed("with workers for Services, but none for Secrets", map[string]bool{"Service web": true, "Secret late": false})

		reset()
		everything["Secret late"] = true
		crossed("by default again", everything)
		the.milan.labels(t, twin, "used", map[string]bool{"stays": true, "travels": true})
	})
	t.Run("the VirtualNode", func(t *testing.T) {
		the.recordFailure(t)
		the.patchVirtualNode(t, `{"spec":{"offloadingPatch":{"labelsNotReflected":["later"]}}}`)
		the.milan.labels(t, twin, "used", map[string]bool{"later": false, "travels": true})
		the.patchVirtualNode(t, `{"spec":{"offloadingPatch":{"labelsNotReflected":null}}}`)
		the.milan.labels(t, twin, "used", map[string]bool{"later": true, "travels": true})
	})
	t.Run("annotations", func(t *testing.T) {
		the.recordFailure(t)
		skip := offloadingv1beta1.SkipReflectionAnnotation
		the.kubectl(t, the.rome, soon, "annotate", "configmap", "unused", "-n", namespace, skip+"=").succeeds(t)
		crossed("with an annotated ConfigMap", map[string]bool{"ConfigMap used": true, "ConfigMap unused": false})
		the.kubectl(t, the.rome, soon, "annotate", "namespace", namespace, skip+"=").succeeds(t)
		crossed("with an annotated namespace", map[string]bool{"ConfigMap used": false, "ConfigMap unused": false, "Service web": false})
		the.kubectl(t, the.rome, soon, "annotate", "namespace", namespace, skip+"-").succeeds(t)
		the.kubectl(t, the.rome, soon, "annotate", "configmap", "unused", "-n", namespace, skip+"-").succeeds(t)
		crossed("without annotations", everything)
	})
	if diff := cmp.Diff(before, the.atWork(t, twin)); diff != "" {
		t.Errorf("what runs was touched: %s", diff)
	}
}

// patchVirtualNode changes the VirtualNode as kubectl edit does.
func (s *suite) patchVirtualNode(t *testing.T, patch string) {
	t.Helper()
	s.kubectl(t, s.rome, soon, "patch", "virtualnodes.offloading.liqo.io", virtualNode, "-n", consumerTenant, "--type", "merge", "-p", patch).succeeds(t)
}

// atWork is what no setting may touch: the pods of the twin and those of the virtual kubelet, once they have come to rest.
func (s *suite) atWork(t *testing.T, twin string) map[string]string {
	t.Helper()
	var state map[string]string
	look := func(ctx context.Context) (map[string]string, error) {
		now := map[string]string{}
		remote, err := s.milan.pods(ctx, twin)
		if err != nil {
			return nil, err
		}
		for i := range remote {
			// Not its version: its kubelet writes when it likes.
			pod := &remote[i]
			now["pod "+pod.Name] = fmt.Sprintf("%s generation %d, labels %v, annotations %v, finalizers %v, restarted %d times",
				pod.UID, pod.Generation, pod.Labels, pod.Annotations, pod.Finalizers, restarts(pod))
		}
		kubelets, err := s.rome.pods(ctx, consumerTenant, client.MatchingLabels{offloadingv1beta1.VirtualNodeLabel: virtualNode})
		for i := range kubelets {
			now["virtual kubelet "+kubelets[i].Name] = fmt.Sprintf("%s restarted %d times", kubelets[i].UID, restarts(&kubelets[i]))
		}
		return now, err
	}
	const rest = 10
	same := 0
	eventually(t, patience, "the pods to come to rest", func(ctx context.Context) (bool, string) {
		now, err := look(ctx)
		if err != nil {
			return false, err.Error()
		}
		if same++; !cmp.Equal(now, state) {
			state, same = now, 0
		}
		return same >= rest, fmt.Sprint(now)
	})
	return state
}

// restarts is how often containers of a pod were started again.
func restarts(pod *corev1.Pod) (count int32) {
	for i := range pod.Status.ContainerStatuses {
		count += pod.Status.ContainerStatuses[i].RestartCount
	}
	return count
}

// has waits until exactly those of the named objects are in a namespace that should be.
func (c *side) has(t *testing.T, namespace, what string, want map[string]bool) {
	t.Helper()
	kinds := map[string]func() client.Object{
		"ConfigMap": func() client.Object { return &corev1.ConfigMap{} },
		"Secret":    func() client.Object { return &corev1.Secret{} },
		"Service":   func() client.Object { return &corev1.Service{} },
	}
	eventually(t, patience, fmt.Sprintf("%s in namespace %s of %s: %v", what, namespace, c.name, want), func(ctx context.Context) (bool, string) {
		seen := map[string]bool{}
		for id := range want {
			var kind, name string
			if _, err := fmt.Sscan(id, &kind, &name); err != nil {
				return false, err.Error()
			}
			err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, kinds[kind]())
			if client.IgnoreNotFound(err) != nil {
				return false, err.Error()
			}
			seen[id] = !apierrors.IsNotFound(err)
		}
		return cmp.Equal(seen, want), fmt.Sprint(seen)
	})
}

// labels waits until a ConfigMap has exactly those of the labels that it should have.
func (c *side) labels(t *testing.T, namespace, name string, want map[string]bool) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the labels of ConfigMap %s/%s at %s: %v", namespace, name, c.name, want), func(ctx context.Context) (bool, string) {
		live := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, live); err != nil {
			return false, err.Error()
		}
		seen := map[string]bool{}
		for label := range want {
			_, seen[label] = live.Labels[label]
		}
		return cmp.Equal(seen, want), fmt.Sprint(live.Labels)
	})
}
