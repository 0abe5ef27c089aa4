package offloading

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// The provider says for a moment that a twin failed, as an older release does after an upgrade was taken back. Pods run on, and new ones run.
func TestATwinThatFailsForAMoment(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "before")))
	before := world.AwaitPods(t, env.Rome, namespace, 1)
	for i := range 5 {
		m := &offloadingv1beta1.NamespaceMap{}
		fixture.Must(t, "reading the NamespaceMap", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: "milan"}, m))
		patch := fmt.Sprintf(`{"status":{"currentMapping":{%q:{"phase":"CreationLoopBackOff"}}}}`, namespace)
		fixture.Must(t, "playing that the twin failed", env.Rome.Client.Status().Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(patch))))
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, fmt.Sprint("after-", i))))
		now := world.AwaitPods(t, env.Rome, namespace, i+2)
		if now["before"] != before["before"] {
			t.Error("the pod was made anew")
		}
	}
}
