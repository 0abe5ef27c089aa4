package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// careful leaves on SIGTERM only when it is told to, as what first finishes its work does.
const careful = `trap 'echo leaving; until [ -f /tmp/leave ]; do sleep 1; done; echo left; exit 0' TERM; echo working; while true; do sleep 1 & wait $!; done`

// TestDrain drains the virtual node with kubectl (C13): a PodDisruptionBudget holds pods back, who has to leave has the time to, and a
// local pod goes only after the remote one, whose handler of SIGTERM ran to its end.
func TestDrain(t *testing.T) {
	the.alone(t)
	const namespace, app = "drained", "careful"
	const grace = int64(120)
	twin := the.offloaded(t, namespace)
	spec := script(careful)
	*spec.TerminationGracePeriodSeconds = grace
	one := intstr.FromInt32(1)
	workers := deployment(namespace, app, 2, spec)
	the.rome.creates(t, workers, &policyv1.PodDisruptionBudget{
		ObjectMeta: named(namespace, app), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: selector(app)},
	})
	pods := the.rome.ready(t, namespace, app, 2)
	logs := map[string]*session{}
	for i := range pods {
		name := pods[i].Name
		logs[name] = talk(t, the.kubectlCommand(the.rome, "logs", "-f", "-n", namespace, name))
		logs[name].shows(t, "working")
	}
	uncordon := func() { the.kubectl(t, the.rome, soon, "uncordon", virtualNode).succeeds(t) }
	t.Cleanup(uncordon)
	drain := talk(t, the.kubectlCommand(the.rome, "drain", virtualNode, "--pod-selector="+appLabel+"="+app, "--timeout=5m"))
	drain.shows(t, "violate the pod's disruption budget")

	first := leaving(t, pods)
	second := &pods[0]
	if second.Name == first.Name {
		second = &pods[1]
	}
	logs[first.Name].shows(t, "leaving")
	remote := &corev1.Pod{ObjectMeta: named(twin, first.Name)}
	the.milan.reads(t, remote)
	if s := remote.DeletionGracePeriodSeconds; remote.DeletionTimestamp == nil || s == nil || *s != grace {
		t.Errorf("the remote pod is deleted at %v with a grace period of %v, want %d seconds", remote.DeletionTimestamp, s, grace)
	}
	throughout(t, 8*time.Second, "one pod that is leaving and one that is held", func(ctx context.Context) (bool, string, error) {
		now := []corev1.Pod{*first, *second}
		for i := range now {
			if there, err := the.rome.finds(ctx, client.ObjectKeyFromObject(&now[i]), &now[i]); !there {
				return false, "one of them is gone", err
			}
		}
		return now[0].DeletionTimestamp != nil && now[0].Status.Phase == corev1.PodRunning &&
			now[1].DeletionTimestamp == nil && isReady(&now[1]), describe(now), nil
	})
	leaves(t, namespace, twin, first, logs[first.Name])

	// With room for another pod the budget lets the second one go, too.
	uncordon()
	eventually(t, patience, "the second pod to be evicted", func(ctx context.Context) (bool, string) {
		err := the.rome.Get(ctx, client.ObjectKeyFromObject(second), second)
		return err == nil && second.DeletionTimestamp != nil, fmt.Sprintf("deleted at %v, error %v", second.DeletionTimestamp, err)
	})
	logs[second.Name].shows(t, "leaving")
	leaves(t, namespace, twin, second, logs[second.Name])
	drain.exits(t, 0)
	for _, pod := range the.rome.ready(t, namespace, app, 2) {
		the.kubectl(t, the.rome, soon, "exec", "-n", namespace, pod.Name, "--", "touch", "/tmp/leave").succeeds(t)
	}
	// A namespace whose pods take long is looked at again after a minute only: they go first.
	the.rome.deletes(t, workers, client.PropagationPolicy(metav1.DeletePropagationBackground))
	the.rome.empties(t, namespace)
	the.milan.empties(t, twin)
}

// leaving waits until one of some pods is being deleted, and returns it.
func leaving(t *testing.T, pods []corev1.Pod) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	eventually(t, soon, "a pod to be evicted", func(ctx context.Context) (bool, string) {
		for i := range pods {
			now := &corev1.Pod{}
			if err := the.rome.Get(ctx, client.ObjectKeyFromObject(&pods[i]), now); err != nil {
				return false, err.Error()
			}
			if now.DeletionTimestamp != nil {
				found = now
				return true, "it is"
			}
		}
		return false, describe(pods)
	})
	return found
}

// leaves tells a pod that is being deleted to end, and waits until it is gone in both clusters: here not before there.
func leaves(t *testing.T, namespace, twin string, pod *corev1.Pod, logs *session) {
	t.Helper()
	the.kubectl(t, the.rome, soon, "exec", "-n", namespace, pod.Name, "--", "touch", "/tmp/leave").succeeds(t)
	logs.shows(t, "left")
	early := ""
	eventually(t, patience, "pod "+pod.Name+" to be gone", func(ctx context.Context) (bool, string) {
		now := &corev1.Pod{}
		err := the.rome.Get(ctx, client.ObjectKeyFromObject(pod), now)
		if err == nil && now.UID == pod.UID {
			return false, describe([]corev1.Pod{*now})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err.Error()
		}
		remote := &corev1.Pod{}
		if err := the.milan.Get(ctx, client.ObjectKey{Namespace: twin, Name: pod.Name}, remote); !apierrors.IsNotFound(err) {
			early = fmt.Sprintf("error %v: %s", err, describe([]corev1.Pod{*remote}))
		}
		return true, "gone"
	})
	if early != "" {
		t.Errorf("pod %s was gone at home before it was at the provider: %s", pod.Name, early)
	}
}
