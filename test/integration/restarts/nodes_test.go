package restarts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
	"liqo.io/liqo/test/lab/config"
)

// A slice of certain nodes of the provider: its virtual node has a share of what these have, says what they are, follows those that come and
// go, and its pods run there.
func TestAVirtualNodeOfCertainNodes(t *testing.T) {
	w := env.Peered(t)
	// The peering's own slice asks for more than there is, so that nothing would be left for another one.
	tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ProviderNamespace, Name: "rome"}}
	limit := func(ctx context.Context, limits string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"limits":`+limits+`}}`))
		fixture.Must(t, "changing what a Tenant may have", env.Milan.Client.Patch(ctx, tenant, patch))
	}
	limit(t.Context(), `{"resources":{"cpu":"5k","memory":"5Ti","pods":"5k"}}`)
	t.Cleanup(func() { limit(context.Background(), "null") })
	pool := fixture.Unique("pool")
	joins := func(cpu string) (name string) {
		name = fixture.Unique("pooled")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{config.SimulatedAnnotation: "fake"},
			Labels: map[string]string{"pool": pool, corev1.LabelArchStable: "arm64"}}}
		fixture.Must(t, "creating a Node", env.Milan.Client.Create(t.Context(), node))
		t.Cleanup(func() { _ = env.Milan.Client.Delete(context.Background(), node) })
		fixture.Await(t, fixture.Patience, "Node "+name+" to be ready", func(ctx context.Context) (bool, string) {
			err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(node), node)
			return err == nil && fixture.NodeReady(node), fmt.Sprint(node.Status.Conditions, err)
		})
		has := node.DeepCopy()
		has.Status.Allocatable = world.Quantities("cpu", cpu, "memory", "64Gi", "pods", "100")
		has.Status.Capacity = has.Status.Allocatable
		fixture.Must(t, "giving a Node cores", env.Milan.Client.Status().Patch(t.Context(), has, client.MergeFrom(node)))
		return name
	}
	first := joins("100")
	rome, name := env.Rome.Target(t), fixture.Unique("certain")
	create := share.CreateOptions{Cluster: rome, ProviderID: "milan", Name: name, Nodes: labels.Set{"pool": pool}, Timeout: fixture.Patience}
	created := make(chan error, 1)
	go func() { created <- share.Create(t.Context(), create) }()
	fixture.Await(t, fixture.Patience, "the simulated pod of its virtual kubelet", func(ctx context.Context) (bool, string) {
		pod, seen := env.Environment.KubeletPod(ctx, name)
		return pod != nil && pod.Status.PodIP != "", seen
	})
	kubelet := env.Environment.StartKubelet(t, name)
	defer func() {
		err := share.Delete(context.Background(), share.DeleteOptions{Cluster: rome, Name: name, Timeout: fixture.Patience})
		err = errors.Join(err, kubelet.Stop(), w.Kubelet.Stop())
		w.Kubelet.Start(t) // It needs no Lease any more.
		fixture.Must(t, "giving the share back", err)
	}()
	fixture.Must(t, "asking for a share of certain nodes", <-created)
	virtual := &corev1.Node{}
	shows := func(sentence, cpu, largest string) {
		t.Helper()
		fixture.Await(t, fixture.Patience, sentence+": the Node to show "+cpu, func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: name}, virtual)
			got := virtual.Status.Allocatable[corev1.ResourceCPU]
			most := virtual.Annotations[offloadingv1beta1.LargestPodAnnotation]
			return err == nil && got.Cmp(resource.MustParse(cpu)) == 0 && strings.Contains(most, largest), fmt.Sprintf("it shows %s of at most %s a pod, error %v", got.String(), most, err)
		})
	}
	shows("one node has the label", "90", `"cpu":"100"`)
	if arch := virtual.Labels[corev1.LabelArchStable]; arch != "arm64" {
		t.Errorf("the architecture is %q, and that of its nodes arm64", arch)
	}
	joins("20")
	shows("a second one joins", "108", `"cpu":"100"`)

	namespace := env.Offloaded(t)
	pod := world.Pod(namespace, "chosen")
	pod.Spec.NodeName = name
	fixture.Must(t, "creating a pod on the virtual node", env.Rome.Client.Create(t.Context(), pod))
	fixture.Await(t, fixture.Patience, "the pod to be on a node of the pool", func(ctx context.Context) (bool, string) {
		twin, node := &corev1.Pod{}, &corev1.Node{}
		if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(pod), twin); err != nil || twin.Spec.NodeName == "" {
			return false, fmt.Sprintf("it is on none, error %v", err)
		}
		fixture.Must(t, "reading the Node", env.Milan.Client.Get(ctx, client.ObjectKey{Name: twin.Spec.NodeName}, node))
		if node.Labels["pool"] != pool {
			t.Errorf("it is on %s, which is not of the pool", node.Name)
		}
		return true, ""
	})
	fixture.Must(t, "removing a Node", env.Milan.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: first}}))
	shows("one is left", "18", `"cpu":"20"`)
}
