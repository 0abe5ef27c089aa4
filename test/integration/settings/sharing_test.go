package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
	"liqo.io/liqo/test/lab/config"
)

// The virtual node shows the share of what the provider has free, and follows it: nodes and pods that come and go, and what the provider's
// administrator says. The resource is one that nobody else uses.
func TestTheNodeFollowsWhatTheProviderHasFree(t *testing.T) {
	w := env.Peered(t)
	widgets := corev1.ResourceName("example.org/" + fixture.Unique("widgets"))
	uses := func(pod *corev1.Pod, n string) *corev1.Pod {
		amount := corev1.ResourceList{widgets: resource.MustParse(n)}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
		return pod
	}
	has := func(n string) (name string) {
		name = fixture.Unique("shared")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{config.SimulatedAnnotation: "fake"}}}
		fixture.Must(t, "creating a Node", env.Milan.Client.Create(t.Context(), node))
		t.Cleanup(func() { _ = env.Milan.Client.Delete(context.Background(), node) })
		fixture.Await(t, fixture.Patience, "Node "+name+" to be ready", func(ctx context.Context) (bool, string) {
			err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(node), node)
			return err == nil && fixture.NodeReady(node), fmt.Sprint(node.Status.Conditions, err)
		})
		patch := fmt.Sprintf(`{"status":{"capacity":{%q:%q},"allocatable":{%q:%q}}}`, widgets, n, widgets, n)
		fixture.Must(t, "giving a Node devices", env.Milan.Client.Status().Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))))
		return name
	}
	shows := func(sentence, want string) {
		t.Helper()
		since := time.Now()
		fixture.Await(t, fixture.Patience, sentence+": the Node to show "+want, func(ctx context.Context) (bool, string) {
			node := &corev1.Node{}
			err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: w.Node}, node)
			got := node.Status.Allocatable[widgets]
			return err == nil && got.Cmp(resource.MustParse(want)) == 0, fmt.Sprintf("it shows %s, error %v", got.String(), err)
		})
		t.Logf("%s: shown after %s", sentence, time.Since(since).Round(100*time.Millisecond))
	}
	has("100")
	shows("100 are free", "90")

	namespace := env.Offloaded(t)
	fixture.Must(t, "creating a pod that crosses", env.Rome.Client.Create(t.Context(), uses(world.Pod(namespace, "crosses"), "10")))
	world.AwaitPods(t, env.Milan, namespace, 1)
	own := uses(world.Pod(namespace, "own"), "50")
	own.Namespace = metav1.NamespaceDefault
	fixture.Must(t, "creating a pod of the provider's own", env.Milan.Client.Create(t.Context(), own))
	t.Cleanup(func() { _ = env.Milan.Client.Delete(context.Background(), own) })
	shows("the provider's own pods take 50, and the consumer's 10", "45")
	more := has("150")
	shows("200 are free", "180")

	defer w.Milan.Rewrite(t, nil)
	w.Milan.Rewrite(t, map[string]any{"offloading": map[string]any{"sharingPercentage": 25}})
	shows("the installation offers a quarter, without a restart", "50")
	w.Milan.Rewrite(t, nil)
	shows("and as much as before", "180")

	tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ProviderNamespace, Name: "rome"}}
	share := func(percent string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"limits":{"sharingPercentage":`+percent+`}}}`))
		fixture.Must(t, "changing what a Tenant is offered", env.Milan.Client.Patch(t.Context(), tenant, patch))
	}
	share("50")
	defer share("null")
	shows("the Tenant gets half", "100")
	share("1")
	shows("less is offered than runs", "10")
	fixture.Await(t, fixture.Patience, "the slice to say so", func(ctx context.Context) (bool, string) {
		slice := &authv1beta1.ResourceSlice{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}, slice)
		return err == nil && world.Status(slice, authv1beta1.OverCommittedCondition).Status == "True", fmt.Sprint(slice.Status.Summary, err)
	})
	over := func(want bool) {
		t.Helper()
		fixture.Await(t, fixture.Patience, fmt.Sprintf("the Node to say that more runs than is offered: %t", want), func(ctx context.Context) (bool, string) {
			node := &corev1.Node{}
			err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: w.Node}, node)
			says := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return string(c.Type) == offloadingv1beta1.OverCommittedCondition && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, string(widgets)+" ")
			})
			return err == nil && says == want && fixture.NodeReady(node), fmt.Sprint(node.Status.Conditions, err)
		})
	}
	over(true)
	share("null")
	over(false)
	fixture.Must(t, "removing a Node", env.Milan.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: more}}))
	shows("a node went", "45")
}
