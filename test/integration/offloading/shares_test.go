package offloading

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A second share of milan by command, and a virtual node of it under a name of its own: it has what was granted, is cordoned with the slice,
// and goes with it, grant and all. The peering's own share stays as it is.
func TestSharesByCommand(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	const name, node = "shares", "shares-second"
	rome := env.Rome.Target(t)
	create := share.CreateOptions{Cluster: rome, ProviderID: "milan", Name: name, Resources: world.Quantities("cpu", "1", "memory", "1Gi", "pods", "5"),
		NoVirtualNode: true, Timeout: fixture.Patience}
	for _, again := range []string{"", " again"} {
		fixture.Must(t, "asking for a share"+again, share.Create(t.Context(), create))
	}
	create.Resources = world.Quantities("cpu", "2")
	if err := share.Create(t.Context(), create); err == nil {
		t.Error("a slice that asks for something else was taken for the one that is wanted")
	}
	virtual := share.NodeOptions{Cluster: rome, ProviderID: "milan", Name: node, SliceName: name, Timeout: fixture.Patience,
		Wish: offloadingv1beta1.VirtualNodeSpec{Labels: map[string]string{"share": "second"}, CreateNode: ptr.To(false)}}
	for _, again := range []string{"", " again"} {
		fixture.Must(t, "making a virtual node"+again, share.CreateNode(t.Context(), virtual))
	}
	made := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: node}}
	state := func(what string, done func() bool) {
		t.Helper()
		fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(made), made)
			return err == nil && done(), fmt.Sprintf("%+v %+v %v", made.Spec, made.Status, err)
		})
	}
	// What was not asked for by quantity follows what is free.
	state("the virtual node to have what is granted", func() bool {
		asked := &authv1beta1.ResourceSlice{}
		fixture.Must(t, "reading the slice", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: name}, asked))
		return len(asked.Status.Resources) > 0 && cmp.Equal(asked.Status.Resources, made.Spec.ResourceQuota.Hard) && made.Spec.Labels["share"] == "second"
	})
	copied := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ProviderNamespace, Name: name}}
	fixture.Must(t, "cordoning the slice at milan", env.Milan.Client.Patch(t.Context(), copied.DeepCopy(),
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"liqo.io/cordon":"true"}}}`))))
	state("the virtual node to be cordoned", func() bool { return conditions.Find(made.Status.Summary, offloadingv1beta1.CordonedCondition) != nil })

	fixture.Must(t, "deleting the slice", share.Delete(t.Context(), share.DeleteOptions{Cluster: rome, Name: name, Timeout: fixture.Patience}))
	world.AwaitGone(t, env.Rome, made)
	world.AwaitGone(t, env.Milan, copied)
	nodes, err := share.Nodes(t.Context(), share.GetOptions{Cluster: rome, PeerID: "milan"})
	stay := func(name string) bool {
		return slices.ContainsFunc(nodes, func(n offloadingv1beta1.VirtualNode) bool { return n.Name == name && n.DeletionTimestamp.IsZero() })
	}
	if err != nil || !stay("milan") || stay(node) {
		t.Errorf("left are %d virtual nodes, milan %v, %s %v, %v", len(nodes), stay("milan"), node, stay(node), err)
	}
}
