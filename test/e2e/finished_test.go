package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// TestRecreatedPod shows that a pod of the same name with a new UID is a new pod, whatever ran under that name before (C2).
func TestRecreatedPod(t *testing.T) {
	the.shared(t)
	const namespace = "recreated"
	twin := the.offloaded(t, namespace)
	set := statefulSet(namespace, "db", script(forever))
	the.rome.creates(t, set)
	before := the.rome.ready(t, namespace, "db", 1)[0]
	replaceImage(t, set)
	the.rome.deletes(t, &before, client.GracePeriodSeconds(0))
	becomesOtherImage(t, namespace, twin, &before)
}

// replaceImage lets the next pod of a StatefulSet have another image.
func replaceImage(t *testing.T, set *appsv1.StatefulSet) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q,"command":null}]}}}}`, otherImage)
	if err := the.rome.Patch(t.Context(), set, client.RawPatch("application/strategic-merge-patch+json", []byte(patch))); err != nil {
		t.Fatalf("changing the image of %s: %v", client.ObjectKeyFromObject(set), err)
	}
	// Kubernetes is told of StatefulSets and of pods on two ways: a pod that goes before it knows of the image is made again as it was.
	wanted := set.Generation
	eventually(t, soon, fmt.Sprintf("Kubernetes to know generation %d of StatefulSet %s", wanted, set.Name), func(ctx context.Context) (bool, string) {
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return false, err.Error()
		}
		return set.Status.ObservedGeneration >= wanted, fmt.Sprintf("generation %d", set.Status.ObservedGeneration)
	})
}

// becomesOtherImage waits until both clusters run the next pod of that name.
func becomesOtherImage(t *testing.T, namespace, twin string, before *corev1.Pod) {
	t.Helper()
	var local corev1.Pod
	eventually(t, patience, "the new pod at both clusters", func(ctx context.Context) (bool, string) {
		var remote corev1.Pod
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(before), &local); err != nil {
			return false, err.Error()
		}
		if err := the.milan.Get(ctx, client.ObjectKey{Namespace: twin, Name: before.Name}, &remote); err != nil {
			return false, err.Error()
		}
		return local.UID != before.UID && isReady(&local) && origin(&remote) == string(local.UID) && remote.Spec.Containers[0].Image == otherImage,
			fmt.Sprintf("local UID %s (was %s), remote origin %s, remote image %s: %s", local.UID, before.UID, origin(&remote),
				remote.Spec.Containers[0].Image, describe([]corev1.Pod{local, remote}))
	})
	if restarts := local.Status.ContainerStatuses[0].RestartCount; restarts != 0 {
		t.Errorf("a new pod has no restarts: %d", restarts)
	}
}

// TestFinishedJob shows that a Job that completed at the provider stays so, whatever happens there to its pod and node (C14, C15).
func TestFinishedJob(t *testing.T) {
	the.alone(t)
	the.settled(t)
	const namespace = "jobs"
	twin := the.offloaded(t, namespace)
	lost := the.nodeWithoutManager(t)
	the.rome.creates(t, job(namespace, "first", script("echo done")), job(namespace, "second", script("echo done")),
		deployment(namespace, "service", 1, script(forever)))
	first, second := completes(t, namespace, "first"), completes(t, namespace, "second")
	service := the.rome.ready(t, namespace, "service", 1)[0]
	remote := &corev1.Pod{ObjectMeta: named(twin, first.Name)}
	the.milan.reads(t, remote)
	the.kubectl(t, the.rome, soon, "logs", "-n", namespace, first.Name).succeeds(t).says(t, "done")

	the.milan.deletes(t, remote)
	the.milan.misses(t, remote, "the pod that was deleted at the provider")
	throughout(t, 6*time.Second, "the completion of the Job whose remote pod was deleted", staysCompleted(twin, first))

	second2 := &corev1.Pod{ObjectMeta: named(twin, second.Name)}
	serving := &corev1.Pod{ObjectMeta: named(twin, service.Name)}
	the.milan.reads(t, second2)
	the.milan.reads(t, serving)
	if second2.Spec.NodeName != lost || serving.Spec.NodeName != lost {
		t.Fatalf("pods on %s wanted, the one node that takes pods: %s", lost, describe([]corev1.Pod{*second2, *serving}))
	}
	the.loseNode(t, lost)
	// Kubernetes looks for pods of vanished nodes every 20 s, and takes a node for vanished after 40 s.
	the.milan.missesWithin(t, 3*time.Minute, second2, "the finished pod of the lost node")
	throughout(t, 3*time.Second, "the completion of the Job whose node was lost", staysCompleted(twin, second))

	// What had not finished is made again, on another node, for the same pod.
	eventually(t, patience, "the running pod of the lost node to run again elsewhere", func(ctx context.Context) (bool, string) {
		again, local := &corev1.Pod{}, &corev1.Pod{}
		if err := the.milan.Get(ctx, client.ObjectKeyFromObject(serving), again); err != nil {
			return false, err.Error()
		}
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(&service), local); err != nil {
			return false, err.Error()
		}
		return again.UID != serving.UID && origin(again) == string(service.UID) && isReady(local) && local.UID == service.UID &&
			local.Status.ContainerStatuses[0].RestartCount > 0, describe([]corev1.Pod{*again, *local})
	})
}

// completes waits for a Job and returns its pod.
func completes(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	object := &batchv1.Job{ObjectMeta: named(namespace, name)}
	var pods []corev1.Pod
	eventually(t, patience, "Job "+name+" to complete", func(ctx context.Context) (bool, string) {
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		var err error
		if pods, err = the.rome.pods(ctx, namespace, client.MatchingLabels{appLabel: name}); err != nil {
			return false, err.Error()
		}
		return object.Status.Succeeded == 1 && len(pods) == 1, fmt.Sprintf("%d succeeded, %d failed; %s", object.Status.Succeeded, object.Status.Failed, describe(pods))
	})
	return &pods[0]
}

// staysCompleted checks that a finished pod is what it was, and that nothing runs for it at the provider.
func staysCompleted(twin string, pod *corev1.Pod) look {
	return func(ctx context.Context) (bool, string, error) {
		now, remote := &corev1.Pod{}, &corev1.Pod{}
		if there, err := the.rome.finds(ctx, client.ObjectKeyFromObject(pod), now); !there {
			return false, "no pod at home", err
		}
		if now.UID != pod.UID || now.Status.Phase != corev1.PodSucceeded {
			return false, describe([]corev1.Pod{*now}), nil
		}
		there, err := the.milan.finds(ctx, client.ObjectKey{Namespace: twin, Name: pod.Name}, remote)
		return !there, "at the provider " + describe([]corev1.Pod{*remote}), err
	}
}

// nodeWithoutManager returns the only node of milan that takes pods until the test ends: the one without our own pods.
func (s *suite) nodeWithoutManager(t *testing.T) string {
	t.Helper()
	managers := &corev1.PodList{}
	if err := s.milan.List(t.Context(), managers, client.InNamespace("liqo")); err != nil {
		t.Fatalf("listing Liqo's pods at milan: %v", err)
	}
	ours := map[string]bool{}
	for i := range managers.Items {
		// The agent of a node goes with it.
		if pod := &managers.Items[i]; !pod.Spec.HostNetwork {
			ours[pod.Spec.NodeName] = true
		}
	}
	declared, _ := s.lab.Spec().Cluster(provider)
	var free string
	for _, node := range declared.Nodes {
		if !ours[node.Name] {
			free = node.Name
		}
	}
	if s.world.connects() && free != "" {
		s.movesGateway(t, free)
	}
	for _, node := range declared.Nodes {
		if !ours[node.Name] {
			continue
		}
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		s.milan.changes(t, object, func() { object.Spec.Unschedulable = true })
		t.Cleanup(func() { s.milan.changes(t, object, func() { object.Spec.Unschedulable = false }) })
	}
	if free == "" {
		t.Fatalf("no node of milan is without Liqo's pods: %s", describe(managers.Items))
	}
	return free
}

// movesGateway has the gateway of milan run on another node than one that is to be lost: nothing takes over from it.
func (s *suite) movesGateway(t *testing.T, from string) {
	t.Helper()
	pod := gatewayPod(t, s.milan)
	if pod.Spec.NodeName != from {
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: from}}
	s.milan.changes(t, node, func() { node.Spec.Unschedulable = true })
	s.milan.deletes(t, &pod)
	eventually(t, patience, "the gateway to run on another node than "+from, func(ctx context.Context) (bool, string) {
		pods, err := s.milan.pods(ctx, pod.Namespace, client.MatchingLabels{networkingv1beta1.GatewayNameLabel: s.rome.name})
		return err == nil && len(pods) == 1 && isReady(&pods[0]) && pods[0].Spec.NodeName != from, fmt.Sprintf("%s %v", describe(pods), err)
	})
	s.milan.changes(t, node, func() { node.Spec.Unschedulable = false })
}

// loseNode takes the power from a node of milan and removes it from the cluster; it is back when the test ends.
func (s *suite) loseNode(t *testing.T, name string) {
	t.Helper()
	if err := s.breaks(t).KillNode(t.Context(), provider, name); err != nil {
		t.Fatalf("killing node %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := s.breaks(t).StartNode(context.WithoutCancel(t.Context()), provider, name); err != nil {
			t.Errorf("starting node %s: %v", name, err)
			return
		}
		eventually(t, patience, "node "+name+" to be ready again", func(ctx context.Context) (bool, string) {
			node := &corev1.Node{}
			if err := s.milan.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
				return false, err.Error()
			}
			_, seen := readyCondition(node)
			return takesPods(node), seen
		})
	})
	// Uncordon comes first, so that the pods of the lost node have somewhere to go.
	nodes := &corev1.NodeList{}
	if err := s.milan.List(t.Context(), nodes); err != nil {
		t.Fatalf("listing nodes: %v", err)
	}
	for i := range nodes.Items {
		s.milan.changes(t, &nodes.Items[i], func() { nodes.Items[i].Spec.Unschedulable = false })
	}
	s.milan.deletes(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}
