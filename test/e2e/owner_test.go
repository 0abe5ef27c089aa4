package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestToldUIDOwns shows that Kubernetes' garbage collector knows the UID that a pod on the virtual node is told as its own: what is made the pod's
// by it stays as long as the pod is there, and goes with it. What names the UID that the pod has at the provider is nobody's.
func TestToldUIDOwns(t *testing.T) {
	the.shared(t)
	const namespace = "owners"
	twin := the.offloaded(t, namespace)
	spec := script("echo $TOLD; " + forever)
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOLD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}}
	owner := podOf(namespace, "owner", spec)
	the.rome.creates(t, owner)
	the.rome.ready(t, namespace, owner.Name, 1)
	var told types.UID
	eventually(t, soon, "the pod to say its UID", func(context.Context) (bool, string) {
		o := the.kubectl(t, the.rome, soon, "logs", "-n", namespace, owner.Name)
		told = types.UID(strings.TrimSpace(o.stdout))
		return told != "", o.String()
	})
	remote := &corev1.Pod{ObjectMeta: named(twin, owner.Name)}
	the.milan.reads(t, remote)

	ownedBy := func(name string, uid types.UID) *corev1.ConfigMap {
		object := &corev1.ConfigMap{ObjectMeta: named(namespace, name)}
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: uid}}
		return object
	}
	owned, nobodys := ownedBy("owned", told), ownedBy("nobodys", remote.UID)
	copied := &corev1.ConfigMap{ObjectMeta: named(twin, owned.Name)}
	// The collector hears of the two in this order.
	the.rome.creates(t, owned, nobodys)
	the.rome.misses(t, nobodys, "what names a UID that no pod here has")
	there := func(ctx context.Context) (bool, string, error) {
		found, err := the.rome.finds(ctx, client.ObjectKeyFromObject(owned), owned)
		return found && owned.DeletionTimestamp == nil, fmt.Sprintf("found: %t, deleted: %v; the pod was told %s, and is %s", found, owned.DeletionTimestamp, told, owner.UID), err
	}
	throughout(t, 2*time.Second, "what the pod owns by the UID that it was told", there)
	the.milan.sees(t, copied, "the copy of what the pod owns")

	the.rome.deletes(t, owner)
	the.rome.misses(t, owned, "what a pod owned that is gone")
	the.milan.misses(t, copied, "the copy of what a pod owned that is gone")
}
