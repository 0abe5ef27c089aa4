package virtualnode

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// now reads the VirtualNode as it is.
func (w *world) now() *offloadingv1beta1.VirtualNode {
	w.Helper()
	vn := &offloadingv1beta1.VirtualNode{}
	if !w.is(vn, "") {
		w.Fatal("the VirtualNode is gone")
	}
	return vn
}

// An earlier VirtualNode of the name was being removed: the present one is not drained for it, and is told nothing of it.
func TestAnEarlierVirtualNodeDrainsNothing(t *testing.T) {
	w := ready(t, podOn("a"))
	before := w.all()
	earlier := w.now()
	earlier.UID, earlier.DeletionTimestamp = "earlier", new(metav1.Now())
	node := &corev1.Node{}
	w.is(node, "")
	w.r.Client = w.Lagging(t, earlier, node)
	writes := w.Writes
	w.pass()
	if diff := cmp.Diff(before, w.all()); diff != "" || w.Writes != writes || len(w.evicted) > 0 {
		t.Errorf("evicted %v, %d writes: %s", w.evicted, w.Writes-writes, diff)
	}
	if w.last != nil || w.result.RequeueAfter == 0 {
		t.Errorf("error %v, again in %s", w.last, w.result.RequeueAfter)
	}
}

// The end of a VirtualNode is not decided by a cache that does not show its Node yet: pods there are drained, and the Node goes.
func TestANodeThatIsNotSeenIsDrained(t *testing.T) {
	w := ready(t, podOn("a"))
	w.begone()
	w.r.Client = w.Lagging(t, w.now(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "other"}})
	for range 20 {
		if !w.is(&corev1.Node{}, "") {
			break
		}
		w.result, w.last = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	}
	if w.is(&corev1.Node{}, "") || len(w.evicted) != 1 {
		t.Errorf("evicted %v, the Node is there: %v, error %v", w.evicted, w.is(&corev1.Node{}, ""), w.last)
	}
}

// A Deployment of ours that the cache does not show yet is not taken for somebody else's.
func TestADeploymentThatIsNotSeenIsOurs(t *testing.T) {
	w := ready(t)
	before, node, bound := w.all(), &corev1.Node{}, virtualNodes()
	w.is(node, "")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(bound), bound); err != nil {
		t.Fatal(err)
	}
	seen := &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "virtual-kubelet-default"}, Spec: *template()}
	w.r.Client = w.Lagging(t, w.now(), node, seen, tenantNamespace(), bound)
	w.result, w.last = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	if diff := cmp.Diff(before, w.all()); diff != "" || w.last != nil || !strings.HasPrefix(w.condition("Ready"), "True") {
		t.Errorf("%s, error %v: %s", w.condition("Ready"), w.last, diff)
	}
}

// Another VirtualNode of the cluster that the cache does not show yet needs the NamespaceMap: the twins would go with it.
func TestAnotherVirtualNodeThatIsNotSeenKeepsTheMap(t *testing.T) {
	w := ready(t)
	sibling := virtualNode()
	sibling.Name, sibling.UID = "milan-gpu", ""
	if err := w.Create(context.Background(), sibling); err != nil {
		t.Fatal(err)
	}
	w.begone()
	nm := &offloadingv1beta1.NamespaceMap{}
	w.is(nm, "")
	w.r.Client = w.Lagging(t, w.now(), nm)
	for range 20 {
		if !w.is(&offloadingv1beta1.VirtualNode{}, "") {
			break
		}
		w.result, w.last = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	}
	if w.is(&offloadingv1beta1.VirtualNode{}, "") || !w.is(&offloadingv1beta1.NamespaceMap{}, "") {
		t.Errorf("the VirtualNode is there: %v, the NamespaceMap: %v, error %v", w.is(&offloadingv1beta1.VirtualNode{}, ""), w.is(&offloadingv1beta1.NamespaceMap{}, ""), w.last)
	}
}

// Two virtual nodes of a cluster are removed together, as by unpeering. The one that is drained first leaves the NamespaceMap to the other,
// whose pods would go with the twins; the last takes it.
func TestTheLastThatIsDrainedTakesTheMap(t *testing.T) {
	w := ready(t)
	sibling := virtualNode()
	sibling.Name, sibling.UID, sibling.Finalizers = "milan-gpu", "", []string{offloadingv1beta1.VirtualNodeFinalizer}
	node := &corev1.Node{}
	w.is(node, "")
	theirs := node.DeepCopy()
	theirs.ObjectMeta = metav1.ObjectMeta{Name: sibling.Name, Labels: maps.Clone(node.Labels), Annotations: maps.Clone(node.Annotations)}
	theirs.Labels[offloadingv1beta1.VirtualNodeLabel] = sibling.Name
	for _, o := range []client.Object{sibling, theirs} {
		if err := w.Create(context.Background(), o); err != nil {
			t.Fatal(err)
		}
	}
	if !isNodeOf(theirs, sibling) {
		t.Fatal("the other Node is not the sibling's")
	}
	if err := w.Delete(context.Background(), sibling); err != nil {
		t.Fatal(err)
	}
	w.begone()
	w.pass()
	if w.is(&offloadingv1beta1.VirtualNode{}, "") || !w.is(&offloadingv1beta1.NamespaceMap{}, "") {
		t.Fatalf("the VirtualNode is there: %v, the NamespaceMap: %v; %s", w.is(&offloadingv1beta1.VirtualNode{}, ""), w.is(&offloadingv1beta1.NamespaceMap{}, ""), w.condition("Ready"))
	}
	w.Rest(t, func() bool {
		_, err := w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(sibling)})
		return err != nil
	})
	if w.is(&offloadingv1beta1.VirtualNode{}, sibling.Name) || w.is(&offloadingv1beta1.NamespaceMap{}, "") {
		t.Errorf("the last VirtualNode is there: %v, the NamespaceMap: %v", w.is(&offloadingv1beta1.VirtualNode{}, sibling.Name), w.is(&offloadingv1beta1.NamespaceMap{}, ""))
	}
}
