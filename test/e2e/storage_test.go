package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

const (
	virtualClass = "liqo"
	// remembering writes something that nobody could guess, once, and runs for ever.
	remembering = "test -s /data/id || cat /proc/sys/kernel/random/uuid > /data/id\n" + forever
)

func claimOf(namespace, name string) *corev1.PersistentVolumeClaim {
	class := virtualClass
	return &corev1.PersistentVolumeClaim{ObjectMeta: named(namespace, name), Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}},
	}}
}

// withData mounts a claim into the spec's container.
func withData(spec corev1.PodSpec, claim string) corev1.PodSpec {
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return spec
}

// remembered is what a pod finds in its volume.
func remembered(t *testing.T, namespace, pod string) string {
	t.Helper()
	var id string
	eventually(t, patience, "pod "+pod+" to have something in its volume", func(context.Context) (bool, string) {
		o := the.kubectl(t, the.rome, time.Minute, "exec", "-n", namespace, pod, "--", "cat", "/data/id")
		id = strings.TrimSpace(o.stdout)
		return len(id) == 36, o.String()
	})
	return id
}

// TestStatefulSetOverTwoClusters shows that each replica keeps its data, wherever it is, and that the data holds the namespace.
func TestStatefulSetOverTwoClusters(t *testing.T) {
	the.shared(t)
	const namespace = "stateful"
	the.offloaded(t, namespace)
	the.rome.applies(t, namespace, "storage/statefulset.yaml")
	pods := the.rome.ready(t, namespace, "db", 2)
	nodes, ids := map[string]string{}, map[string]string{}
	remote := 0
	for _, pod := range pods {
		nodes[pod.Name], ids[pod.Name] = pod.Spec.NodeName, remembered(t, namespace, pod.Name)
		if pod.Spec.NodeName == virtualNode {
			remote++
		}
	}
	if remote != 1 {
		t.Fatalf("the replicas are not spread over both clusters: %s", describe(pods))
	}
	for i := range pods {
		the.rome.deletes(t, &pods[i])
	}
	eventually(t, patience, "new pods", func(ctx context.Context) (bool, string) {
		now, err := the.rome.pods(ctx, namespace, client.MatchingLabels{appLabel: "db"})
		for i := range now {
			if now[i].UID == pods[0].UID || now[i].UID == pods[1].UID {
				return false, describe(now)
			}
		}
		return err == nil && len(now) == 2, describe(now)
	})
	for _, pod := range the.rome.ready(t, namespace, "db", 2) {
		if pod.Spec.NodeName != nodes[pod.Name] {
			t.Errorf("pod %s went to %s, its data is on %s", pod.Name, pod.Spec.NodeName, nodes[pod.Name])
		}
		if id := remembered(t, namespace, pod.Name); id != ids[pod.Name] {
			t.Errorf("pod %s remembers %q, not %q", pod.Name, id, ids[pod.Name])
		}
	}
	the.liqoctl(t, time.Minute, "unoffload", "namespace", namespace, "--kubeconfig", the.rome.kubeconfig, "--skip-confirm").exits(t, 3).says(t, "--delete-volumes")
}

// TestMoveVolume moves a volume to the consumer and back; a pod finds the same there each time.
func TestMoveVolume(t *testing.T) {
	the.shared(t)
	const namespace = "moving"
	the.offloaded(t, namespace)
	physical := physicalNode(t)
	the.rome.creates(t, claimOf(namespace, "data"), podOf(namespace, "app", withData(script(remembering), "data")))
	the.rome.ready(t, namespace, "app", 1)
	id := remembered(t, namespace, "app")
	move := func(node string) outcome {
		return the.liqoctl(t, 5*time.Minute, "move", "volume", "data", "-n", namespace, "--target-node", node, "--kubeconfig", the.rome.kubeconfig, "--timeout", "4m")
	}
	move(physical).exits(t, 3).says(t, "app")
	for _, node := range []string{physical, virtualNode} {
		the.rome.deletes(t, &corev1.Pod{ObjectMeta: named(namespace, "app")})
		the.rome.misses(t, &corev1.Pod{ObjectMeta: named(namespace, "app")}, "the pod")
		move(node).succeeds(t)
		spec := withData(script(remembering), "data")
		spec.NodeSelector = nil
		the.rome.creates(t, podOf(namespace, "app", spec))
		if pods := the.rome.ready(t, namespace, "app", 1); pods[0].Spec.NodeName != node {
			t.Errorf("the pod runs on %s, the volume moved to %s", pods[0].Spec.NodeName, node)
		}
		if now := remembered(t, namespace, "app"); now != id {
			t.Errorf("on %s the volume holds %q, not %q", node, now, id)
		}
	}
}

// physicalNode is a node of rome.
func physicalNode(t *testing.T) string {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := the.rome.List(t.Context(), nodes); err != nil {
		t.Fatal(fmt.Errorf("listing nodes: %w", err))
	}
	for i := range nodes.Items {
		if nodes.Items[i].Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
			return nodes.Items[i].Name
		}
	}
	t.Fatal("rome has no node of its own")
	return ""
}
